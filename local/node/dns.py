"""Cluster DNS: the addresses of Services, looked up in the API server for every question.

`python -m local.node.dns`, started by `local.node.cluster`. It knows `NAME.NAMESPACE.svc.cluster.local`, headless
Services included, and nothing outside the cluster.
"""

import argparse
import asyncio
import logging
import sys
from collections.abc import Callable, Sequence
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any, cast

from local.node.names import NotUnderstood, Question
from service.kube.client import Client
from service.kube.decode import Object
from service.kube.errors import KubeError, NotFound
from service.kube.resource import Resource

SERVICES = Resource(group="", version="v1", plural="services", kind="Service")
ENDPOINT_SLICES = Resource(group="discovery.k8s.io", version="v1", plural="endpointslices", kind="EndpointSlice")
SUFFIX = ["svc", "cluster", "local"]
HEADLESS = "None"

log = logging.getLogger("local.node.dns")
Sender = tuple[str | Any, int]


class Resolver(asyncio.DatagramProtocol):
    """Answers each question in a task of its own."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._tasks: set[asyncio.Task[None]] = set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keeps what answers go out by."""
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, addr: Sender) -> None:
        """A question, or something else, which is passed over."""
        try:
            question = Question.parse(data)
        except NotUnderstood as error:
            log.info("not understood: %s", error)
            return
        task = asyncio.create_task(self._answer(question, addr))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(self, question: Question, addr: Sender) -> None:
        try:
            addresses = await look_up(self._client, question.name)
        except KubeError as error:  # no answer: the pod asks again
            log.warning("%s: %s", question.name, error)
            return
        self._transport.sendto(question.answer(addresses), addr)


async def look_up(client: Client, name: str) -> list[IPv4Address] | None:
    """The addresses behind a name; None if there is no such Service."""
    labels = name.split(".")
    if labels[2:] != SUFFIX:
        return None
    service, namespace = labels[:2]
    try:
        found = await client.get(SERVICES, service, namespace=namespace)
    except NotFound:
        return None
    address = found["spec"].get("clusterIP", HEADLESS)
    if address != HEADLESS:
        return [IPv4Address(address)]
    slices = await client.list(ENDPOINT_SLICES, namespace=namespace, labels=f"kubernetes.io/service-name={service}")
    return sorted({address for each in slices for address in _ready(each)})


def _ready(slice_: Object) -> list[IPv4Address]:
    """The addresses of endpoints that take calls."""
    ready = [each for each in slice_.get("endpoints") or () if each.get("conditions", {}).get("ready", True)]
    return [IPv4Address(address) for each in ready for address in each["addresses"]]


async def serve(kubeconfig: Path, address: str, port: int, on_ready: Callable[[], None]) -> None:
    """Answers until the process is stopped."""
    async with await Client.from_kubeconfig(kubeconfig) as client:
        loop = asyncio.get_running_loop()
        await loop.create_datagram_endpoint(lambda: Resolver(client), local_addr=(address, port))
        on_ready()
        await asyncio.Event().wait()


def main(argv: Sequence[str] | None = None) -> int:
    """Parses the command line and runs."""
    parser = argparse.ArgumentParser(prog="python -m local.node.dns", description=__doc__)
    parser.add_argument("--kubeconfig", type=Path, required=True)
    parser.add_argument("--address", required=True, help="where to listen")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--ready-file", type=Path, required=True, help="made when questions are answered")
    args = parser.parse_args(argv)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    asyncio.run(serve(args.kubeconfig, args.address, args.port, args.ready_file.touch))
    return 0


if __name__ == "__main__":
    sys.exit(main())

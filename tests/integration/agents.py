"""What the agent's tests share: Nodes that stand for this machine, real bound tokens, agent processes, lookalikes."""

import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from agent.netlink import EventSource, EventsUnavailable
from crds.names import (
    ANNOTATION_RECLAIM_REQUESTED,
    RECLAIM_ANNOTATIONS,
    RECLAIM_CONFIG_KEY,
    RECLAIM_CONFIG_PREFIX,
    RECLAIM_NAMESPACE,
)
from local.cluster import LocalCluster
from service.kube.client import Client
from service.kube.resource import CONFIG_MAPS, NODES, PODS, SERVICE_ACCOUNTS
from tests.waiting import until

ROOT = Path(__file__).parents[2]
MANIFESTS = ROOT / "agent" / "manifests"
ACCOUNT = "5spot-reclaim-agent"
NODE_INFO = (
    "architecture", "bootID", "containerRuntimeVersion", "kernelVersion", "kubeProxyVersion", "kubeletVersion",
    "operatingSystem", "osImage", "systemUUID",
)  # fmt: skip


def install(cluster: LocalCluster, kubectl: Path) -> None:
    """The agent's own manifests, as an operator applies them."""
    command = [str(kubectl), f"--kubeconfig={cluster.kubeconfig}", "apply", "--server-side", "-f", str(MANIFESTS)]
    subprocess.run(command, check=True, capture_output=True)


def documents() -> list[dict[str, Any]]:
    """Every object of the manifests."""
    return [item for path in sorted(MANIFESTS.glob("*.yaml")) for item in yaml.safe_load_all(path.read_text())]


def document(kind: str) -> dict[str, Any]:
    """The only object of this kind."""
    (found,) = [item for item in documents() if item["kind"] == kind]
    return found


def events_available() -> bool:
    """Whether this kernel hands out process events to this process."""
    source = EventSource(list)
    try:
        source.open()
    except EventsUnavailable:
        return False
    source.close()
    return True


@dataclass(frozen=True)
class Host:
    """This machine under a Node of its own, as seen through an administrator's client."""

    client: Client
    cluster: LocalCluster
    name: str
    machine_id: str

    async def node(self) -> dict[str, Any]:
        return await self.client.get(NODES, self.name)

    async def request(self) -> dict[str, str]:
        """The reclaim annotations on the Node."""
        annotations = (await self.node())["metadata"].get("annotations", {})
        return {key: annotations[key] for key in RECLAIM_ANNOTATIONS if key in annotations}

    async def requested(self, within: float = 90.0) -> dict[str, str]:
        """The annotations, once they are there."""

        async def there() -> dict[str, str] | None:
            found = await self.request()
            return found if ANNOTATION_RECLAIM_REQUESTED in found else None

        return await until(there, within=within)

    async def clear(self) -> None:
        """As the controller does at the end."""
        gone = dict.fromkeys(RECLAIM_ANNOTATIONS)
        await self.client.patch(NODES, self.name, {"metadata": {"annotations": gone}})

    async def configure(self, *patterns: str) -> None:
        """As the controller projects killIfCommands."""
        name = f"{RECLAIM_CONFIG_PREFIX}{self.name}"
        body = {"metadata": {"name": name}, "data": {RECLAIM_CONFIG_KEY: json.dumps(patterns)}}
        existing = [
            item["metadata"]["name"] for item in await self.client.list(CONFIG_MAPS, namespace=RECLAIM_NAMESPACE)
        ]
        if name in existing:
            await self.client.patch(CONFIG_MAPS, name, body, namespace=RECLAIM_NAMESPACE)
        else:
            await self.client.create(CONFIG_MAPS, body, namespace=RECLAIM_NAMESPACE)

    async def set_machine_id(self, value: str) -> None:
        body = {"status": {"nodeInfo": {**(await self.node())["status"]["nodeInfo"], "machineID": value}}}
        await self.client.patch(NODES, self.name, body, subresource="status")

    async def token(self) -> str:
        """What a pod of the DaemonSet on this Node is given."""
        name = f"agent-{secrets.token_hex(4)}"
        spec = {**document("DaemonSet")["spec"]["template"]["spec"], "nodeName": self.name}
        pod = await self.client.create(PODS, {"metadata": {"name": name}, "spec": spec}, namespace=RECLAIM_NAMESPACE)
        bound = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": pod["metadata"]["uid"]}
        body = {"spec": {"boundObjectRef": bound, "expirationSeconds": 3600}}
        answer = await self.client.create_subresource(
            SERVICE_ACCOUNTS, ACCOUNT, "token", body, namespace=RECLAIM_NAMESPACE
        )
        return str(answer["status"]["token"])


async def new_host(client: Client, cluster: LocalCluster) -> Host:
    """A fresh Node that says it is this machine."""
    host = Host(client, cluster, f"host-{secrets.token_hex(4)}", secrets.token_hex(16))
    await client.create(
        NODES, {"metadata": {"name": host.name}, "spec": {"taints": [{"key": "owner", "effect": "NoSchedule"}]}}
    )
    info = {**dict.fromkeys(NODE_INFO, ""), "machineID": host.machine_id}
    await client.patch(NODES, host.name, {"status": {"nodeInfo": info}}, subresource="status")
    return host


class AgentProcess:
    """A running agent and its log."""

    def __init__(self, process: "subprocess.Popen[bytes]", log: Path) -> None:
        self.process = process
        self._log = log

    def lines(self, event: str) -> list[dict[str, Any]]:
        """Log lines of one kind so far."""
        whole = self._log.read_text().rpartition("\n")[0].splitlines()
        return [line for line in map(json.loads, whole) if line["event"] == event]

    async def says(self, event: str, times: int = 1) -> dict[str, Any]:
        """The log line of that kind, once it is there so many times."""

        def there() -> list[dict[str, Any]]:
            assert self.process.poll() is None, self._log.read_text()
            found = self.lines(event)
            return found if len(found) >= times else []

        return (await until(there, within=90))[-1]

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


@contextmanager
def agent(host: Host, token: str, folder: Path, *flags: str, under: Sequence[str] = ()) -> Iterator[AgentProcess]:
    """The agent as a process of its own, as it runs in its pod but for the container."""
    (folder / "ca.crt").write_bytes(host.cluster.authority.pem)
    (folder / "token").write_text(token)
    (folder / "machine-id").write_text(f"{host.machine_id}\n")
    command = [
        *under,
        sys.executable,
        "-m",
        "agent",
        f"--server={host.cluster.url}",
        f"--ca-file={folder}/ca.crt",
        f"--token-file={folder}/token",
        f"--machine-id-file={folder}/machine-id",
        *flags,
    ]
    log = folder / "agent.log"
    with log.open("wb") as stderr:
        process = subprocess.Popen(command, stderr=stderr, cwd=ROOT, env={**os.environ, "NODE_NAME": host.name})
    try:
        yield AgentProcess(process, log)
    finally:
        process.send_signal(signal.SIGKILL if under else signal.SIGTERM)  # unshare(1) does not heed the gentler one
        process.wait(60)


@contextmanager
def owner_starts(program: Path, *arguments: str) -> Iterator["subprocess.Popen[bytes]"]:
    """A process of the workstation's owner, for as long as the block lasts."""
    process = subprocess.Popen([program, *(arguments or ("300",))])
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def lookalike(folder: Path) -> Path:
    """A program whose name no other process on this machine has."""
    sleep = shutil.which("sleep")
    assert sleep is not None
    program = folder / f"ide-{secrets.token_hex(3)}"
    shutil.copy(sleep, program)
    return program

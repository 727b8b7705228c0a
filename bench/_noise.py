"""Workload clusters that never stop sending events, simulated by a process of its own: `python -m bench._noise FOLDER`.

It serves the kubeconfig Secrets as well, so that `service.workload.clusters` needs no other server. Prints its URL.
"""

import asyncio
import base64
import json
import ssl
import sys
import time
from contextlib import suppress
from itertools import count
from pathlib import Path

import yaml
from aiohttp import web

from local.pki import Authority

QUIET = "quiet"
STAMP = "bench.example/at"
EVERY = 0.02
NODES = 50
CHUNK = 200


def node(number: int, version: int, annotation: str) -> str:
    """A Node as small as one can be: the most events a second."""
    conditions = [{"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": str(version)}]
    names = {"name": f"node-{number}", "uid": f"u{number}", "resourceVersion": str(version)}
    metadata = {**names, "annotations": {STAMP: annotation}}
    raw = {"metadata": metadata, "spec": {"providerID": f"x://{number}"}, "status": {"conditions": conditions}}
    return json.dumps(raw)


def event(number: int, version: int, annotation: str) -> str:
    return f'{{"type":"MODIFIED","object":{node(number, version, annotation)}}}\n'


class Noise:
    """Answers for every cluster; the path says which."""

    def __init__(self, authority: Authority) -> None:
        self._authority = authority
        self.url = ""

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        if "/secrets/" in request.path:
            return web.json_response(self._secret(request.path.rpartition("/")[2].removesuffix("-kubeconfig")))
        if not request.path.endswith("/api/v1/nodes"):
            return web.json_response({})
        if "watch" not in request.query:
            items = [json.loads(node(number, 1, "")) for number in range(NODES)]
            return web.json_response({"metadata": {"resourceVersion": "1"}, "items": items})
        response = web.StreamResponse()
        await response.prepare(request)
        version = int(request.query["resourceVersion"])
        with suppress(ConnectionError):  # the reader left
            await (self._beat if f"/{QUIET}/" in request.path else self._shout)(response, version)
        return response

    async def _shout(self, response: web.StreamResponse, version: int) -> None:
        """As fast as it is read, every event a change."""
        for begin in count(version + 1, CHUNK):
            text = "".join(event(n % NODES, n, str(n)) for n in range(begin, begin + CHUNK))
            await response.write(text.encode())

    async def _beat(self, response: web.StreamResponse, version: int) -> None:
        for n in count(version + 1):
            await response.write(event(0, n, repr(time.monotonic())).encode())
            await asyncio.sleep(EVERY)

    def _secret(self, cluster: str) -> dict[str, object]:
        authority = base64.b64encode(self._authority.pem).decode()
        config = {
            "current-context": "here",
            "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [
                {"name": "c", "cluster": {"server": f"{self.url}/{cluster}", "certificate-authority-data": authority}}
            ],
            "users": [{"name": "u", "user": {"token": "t"}}],
        }
        labels = {"cluster.x-k8s.io/cluster-name": cluster}
        return {
            "metadata": {"name": f"{cluster}-kubeconfig", "labels": labels},
            "type": "cluster.x-k8s.io/secret",
            "data": {"value": base64.b64encode(yaml.safe_dump(config).encode()).decode()},
        }


async def serve(folder: Path) -> None:
    authority = Authority.create("bench CA")
    certificate, key = authority.serving("bench").write(folder / "tls")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    noise = Noise(authority)
    runner = web.ServerRunner(web.Server(noise.answer))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    noise.url = f"https://127.0.0.1:{runner.addresses[0][1]}"
    (folder / "ca.pem").write_bytes(authority.pem)
    print(noise.url, flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1])))

"""A proxy before an API server that fails a share of all requests, and counts them all by the second."""

import asyncio
import random
import ssl
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
from aiohttp import web

from local.cluster import LocalCluster

HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "host"}
LONGEST_BODY = 64 * 1024 * 1024
FAULTS = ("500", "503", "429", "cut before", "cut after")
"""An error of each kind, a connection cut before the request is passed on, and one cut after: the answer is lost."""


def per_second(moments: Iterable[float]) -> Counter[int]:
    """How many fall into each second."""
    return Counter(map(int, moments))


def busiest(moments: Iterable[float]) -> int:
    """The most that fall into one second."""
    return max(per_second(moments).values(), default=0)


@dataclass
class Proxy:
    """What it does to requests, and what it saw."""

    upstream: str
    trust: ssl.SSLContext
    failing: float = 0.0
    """The share of requests that fail."""
    url: str = ""
    moments: list[float] = field(default_factory=list)
    failed: Counter[str] = field(default_factory=Counter)
    session: aiohttp.ClientSession | None = None

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.moments.append(time.monotonic())
        fault = random.choice(FAULTS) if random.random() < self.failing else ""
        if fault:
            self.failed[fault] += 1
        if fault.isdigit():
            return _refusal(int(fault))
        if fault == "cut before":
            return _cut(request)
        return await self._pass_on(request, answer_lost=fault == "cut after")

    async def _pass_on(self, request: web.Request, *, answer_lost: bool) -> web.StreamResponse:
        assert self.session is not None
        headers = {name: value for name, value in request.headers.items() if name.lower() not in HOP_BY_HOP}
        body = await request.read()
        try:
            async with self.session.request(
                request.method, f"{self.upstream}{request.raw_path}", headers=headers, data=body or None
            ) as answer:
                return _cut(request) if answer_lost else await _relay(request, answer)
        except (aiohttp.ClientError, ConnectionError):
            return _cut(request)


async def _relay(request: web.Request, answer: aiohttp.ClientResponse) -> web.StreamResponse:
    """Piece by piece, as a watch never ends."""
    kept = {name: value for name, value in answer.headers.items() if name.lower() not in HOP_BY_HOP}
    response = web.StreamResponse(status=answer.status, headers=kept)
    await response.prepare(request)
    async for chunk in answer.content.iter_any():
        await response.write(chunk)
    await response.write_eof()
    return response


def _refusal(status: int) -> web.Response:
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "made up", "code": status}
    return web.json_response(body, status=status, headers={"Retry-After": "1"} if status == 429 else {})


def _cut(request: web.Request) -> web.Response:
    if request.transport is not None:
        request.transport.abort()
    return web.Response(status=500)  # goes nowhere


@asynccontextmanager
async def proxy(cluster: LocalCluster, directory: Path) -> AsyncIterator[Proxy]:
    """A proxy on a port of its own, with a certificate that the cluster's clients trust."""
    cluster.authority.serving("proxy").write(directory, "proxy")
    served = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    served.load_cert_chain(directory / "proxy.crt", directory / "proxy.key")
    made = Proxy(cluster.url, ssl.create_default_context(cadata=cluster.authority.pem.decode()))
    app = web.Application(client_max_size=LONGEST_BODY)
    app.router.add_route("*", "/{path:.*}", made.handle)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.2, handler_cancellation=True)
    await runner.setup()
    connector = aiohttp.TCPConnector(limit=0, ssl=made.trust)
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout, auto_decompress=False) as session:
        made.session = session
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=served)
        await site.start()
        made.url = f"https://127.0.0.1:{runner.addresses[0][1]}"
        try:
            yield made
        finally:
            await runner.cleanup()
            await asyncio.sleep(0.05)  # TLS connections take a moment to close

"""A proxy between an operator and its API server that counts writes and injects one fault at one of them.

It speaks TLS on both sides, verified on both. It passes on everything else unchanged.
"""

import asyncio
import ssl
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import orjson
from aiohttp import web
from yarl import URL

from local.cluster import LocalCluster
from tests.chaos.faults import Fault, Moment, Strike
from tests.chaos.requests import NOT_COUNTED, WRITES, Target, Write, read_write

Raw = dict[str, Any]
RETRY_AFTER = 1
PASSED_ON = ("Authorization", "Accept", "Content-Type", "User-Agent", "Accept-Encoding")
PASSED_BACK = ("Content-Type", "Content-Encoding", "Retry-After", "Audit-Id")
LARGEST = 64 * 1024 * 1024


def status_body(code: int, reason: str, message: str) -> bytes:
    """The body of an API server's error."""
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code}
    return orjson.dumps({**body, "reason": reason, "message": message})


EXPIRED = status_body(410, "Expired", "too old resource version: as the test wants it")
ANSWERS = {
    Fault.CONFLICT: (409, status_body(409, "Conflict", "the object has been modified: as the test wants it")),
    Fault.THROTTLED: (429, status_body(429, "TooManyRequests", "too many requests: as the test wants it")),
    Fault.FAILED: (500, status_body(500, "InternalError", "an internal error: as the test wants it")),
}


@dataclass(eq=False, slots=True)
class Stream:
    """A watch that is being passed on."""

    pump: asyncio.Future[None]
    request: web.Request
    expired: bool = False


class Upstream:
    """The real API server, and a certificate for proxies in front of it; shared by all proxies of a run."""

    def __init__(self, cluster: LocalCluster, directory: Path) -> None:
        self.url = cluster.url
        self.ca = cluster.authority.pem
        self.serving = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self.serving.load_cert_chain(*cluster.authority.serving("chaos proxy").write(directory, "chaos-proxy"))
        verified = ssl.create_default_context(cadata=self.ca.decode())
        self.session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=verified),
            auto_decompress=False,
            timeout=aiohttp.ClientTimeout(),
        )

    async def close(self) -> None:
        await self.session.close()


class Proxy:
    """The proxy between one case's operator and the API server."""

    def __init__(self, upstream: Upstream, namespace: str) -> None:
        self.url = ""
        self.namespace = namespace
        self.writes: list[Write] = []
        """Everything written since the beginning, leases left out."""
        self.strike: Strike | None = None
        self.struck: Write | None = None
        """The write that met the fault."""
        self.down = False
        """The operator is dead: nothing that it may still send arrives."""
        self.died = asyncio.Event()
        self.on_death: Callable[[], None] = lambda: None
        self.relists: Counter[str] = Counter()
        self._upstream = upstream
        self._seen: Counter[str] = Counter()
        self._counting = False
        self._streams: set[Stream] = set()
        self._lists: dict[str, dict[str, str]] = {}
        self._stale: dict[str, bytes] = {}
        self._runner: web.AppRunner | None = None

    # What a case does with it

    def arm(self, strike: Strike | None) -> None:
        """From now on writes are counted, and one of them meets a fault."""
        self.strike, self._counting = strike, True
        self._seen.clear()

    def counted(self) -> list[Moment]:
        """What was written since it was armed."""
        return sorted(Moment(label, nth + 1) for label, times in self._seen.items() for nth in range(times))

    def revive(self) -> None:
        """Lets a new operator connect."""
        self.down = False

    def cut(self) -> None:
        """Breaks every connection."""
        for connection in self._runner.server.connections if self._runner and self._runner.server else ():
            if connection.transport is not None:
                connection.transport.abort()

    def drop_watches(self) -> None:
        for stream in list(self._streams):
            if stream.request.transport is not None:
                stream.request.transport.abort()

    def expire_watches(self) -> None:
        """Ends all watches with 410, as an API server does that has compacted their version."""
        for stream in list(self._streams):
            stream.expired = True
            stream.pump.cancel()

    # What it does with requests

    async def handle(self, request: web.Request) -> web.StreamResponse:
        if self.down:
            return self._abort(request)
        body = await request.read()
        if self.down:
            return self._abort(request)
        if request.method in WRITES:
            return await self._write(request, body)
        if request.query.get("watch") == "true":
            return await self._watch(request)
        return await self._read(request)

    async def _write(self, request: web.Request, body: bytes) -> web.StreamResponse:
        write = read_write(request.method, request.path_qs, body, self.namespace)
        if write.target.resource in NOT_COUNTED:
            return _answer(*await self._forward(request, body))
        self.writes.append(write)
        fault = self._meets(write)
        if fault is None:
            status, headers, answer = await self._forward(request, body)
            write.status = status
            return _answer(status, headers, answer)
        return await self._spoil(request, body, write, fault)

    def _meets(self, write: Write) -> Fault | None:
        if not self._counting:
            return None
        self._seen[write.label] += 1
        strike = self.strike
        if strike is None or self.struck or strike.moment != Moment(write.label, self._seen[write.label]):
            return None
        self.struck = write
        return strike.fault

    async def _spoil(self, request: web.Request, body: bytes, write: Write, fault: Fault) -> web.StreamResponse:
        if fault in ANSWERS:
            status, answer = ANSWERS[fault]
            headers = {"Content-Type": "application/json"}
            return _answer(status, headers | ({"Retry-After": str(RETRY_AFTER)} if status == 429 else {}), answer)
        if fault in (Fault.STALE_LIST, Fault.CRASH_STALE):
            self._stale = await self._snapshot(request)
        if fault is Fault.WATCH_DROPPED:
            self.drop_watches()
        elif fault in (Fault.EXPIRED, Fault.STALE_LIST):
            self.expire_watches()
        if not fault.reaches_server:
            return self._die(request)
        write.status, headers, answer = await self._forward(request, body)
        if fault.is_death:
            return self._die(request)
        if fault is Fault.CUT:
            return self._abort(request)
        if fault is Fault.SILENT:
            await asyncio.Event().wait()  # until the client gives up
        return _answer(write.status, headers, answer)

    def _die(self, request: web.Request) -> web.StreamResponse:
        self.down = True
        self.on_death()
        self.cut()
        self.died.set()
        return self._abort(request)

    def _abort(self, request: web.Request) -> web.StreamResponse:
        if request.transport is not None:
            request.transport.abort()
        return web.Response(status=502)

    async def _read(self, request: web.Request) -> web.StreamResponse:
        if (not Target.of(request.path).name and "/namespaces/" in request.path) or request.path.endswith("/nodes"):
            self._lists[request.path_qs] = _headers(request)
            old = self._stale.pop(request.path_qs, None)
            if old is not None:
                return _answer(200, {"Content-Type": "application/json"}, old)
            self.relists[Target.of(request.path).resource] += 1
        return _answer(*await self._forward(request, None))

    async def _snapshot(self, request: web.Request) -> dict[str, bytes]:
        """Every list that the operator ever asked for, as it is now."""

        async def one(path: str, headers: dict[str, str]) -> bytes:
            _, _, body = await self._ask("GET", path, {**headers, "Accept-Encoding": "identity"}, None)
            return body

        wanted = {path: headers for path, headers in self._lists.items() if "fieldSelector" not in path}
        bodies = await asyncio.gather(*(one(path, headers) for path, headers in wanted.items()))
        return dict(zip(wanted, bodies, strict=True))

    async def _forward(self, request: web.Request, body: bytes | None) -> tuple[int, dict[str, str], bytes]:
        return await self._ask(request.method, request.path_qs, _headers(request), body)

    async def _ask(
        self, method: str, path: str, headers: dict[str, str], body: bytes | None
    ) -> tuple[int, dict[str, str], bytes]:
        url = URL(self._upstream.url + path, encoded=True)
        async with self._upstream.session.request(method, url, headers=headers, data=body) as response:
            back = {name: response.headers[name] for name in PASSED_BACK if name in response.headers}
            return response.status, back, await response.read()

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        url = URL(self._upstream.url + request.path_qs, encoded=True)
        async with self._upstream.session.get(url, headers=_headers(request)) as upstream:
            if upstream.status != 200:
                return _answer(upstream.status, {"Content-Type": "application/json"}, await upstream.read())
            response = web.StreamResponse(headers={"Content-Type": upstream.headers["Content-Type"]})
            with suppress(ConnectionError):  # the operator is gone already
                await response.prepare(request)
                await self._relay(request, response, upstream)
        return response

    async def _relay(
        self, request: web.Request, response: web.StreamResponse, upstream: aiohttp.ClientResponse
    ) -> None:
        stream = Stream(asyncio.ensure_future(_pump(upstream, response)), request)
        self._streams.add(stream)
        try:
            await stream.pump
        except asyncio.CancelledError:
            stream.pump.cancel()
            if not stream.expired:
                raise
            with suppress(ConnectionError):
                await response.write(b'{"type":"ERROR","object":' + EXPIRED + b"}\n")
        except (ConnectionError, aiohttp.ClientError):
            self._abort(request)
        finally:
            self._streams.discard(stream)


async def _pump(upstream: aiohttp.ClientResponse, response: web.StreamResponse) -> None:
    async for chunk in upstream.content.iter_any():
        await response.write(chunk)


def _headers(request: web.Request) -> dict[str, str]:
    return {name: request.headers[name] for name in PASSED_ON if name in request.headers}


def _answer(status: int, headers: dict[str, str], body: bytes) -> web.Response:
    return web.Response(status=status, headers=headers, body=body)


@asynccontextmanager
async def proxy(upstream: Upstream, namespace: str) -> AsyncIterator[Proxy]:
    """A proxy on a free port of loopback, until the block ends."""
    made = Proxy(upstream, namespace)
    app = web.Application(client_max_size=LARGEST)
    app.router.add_route("*", "/{path:.*}", made.handle)
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    made._runner = runner
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=upstream.serving)
    await site.start()
    made.url = f"https://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield made
    finally:
        made.cut()
        await runner.cleanup()

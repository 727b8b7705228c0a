"""Sends requests to one API server over HTTPS and turns failures into our errors; used by the client only.

Calls and watches have separate connection pools, so that many watches never block a call.
"""

import asyncio
import errno
import random
import socket
import time
import weakref
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Any, NamedTuple

import aiohttp
from yarl import URL

from service.kube.credentials import Credentials, Endpoint
from service.kube.decode import LINE_BYTES
from service.kube.errors import Disconnected, KubeError, TooLarge, Unauthorized, Unavailable, Untrusted, from_response

_SKEW_EVERY = 10.0
# Shorter than the idle timeout of load balancers, so that our side closes idle connections.
_KEEP_ALIVE = 30.0
_MAX_ERROR_BYTES = 256 * 1024
RETRY_PAUSES = (0.1, 0.4)
"""Seconds before the second and the third try of a request."""
RETRIED_STATUSES = frozenset({500, 502, 503, 504})
NO_ANSWER = "no API server with a certificate of the given CA answered"
"""The whole message for an address that a tenant chose: it must not reveal what is there."""
QUICK_FAILURE_SECONDS = 1.0
"""Only a failure that took less than this is retried at once."""
NOT_RETRIED = frozenset({"create_eviction"})
"""A drain repeats evictions every few seconds anyway, and for a pod with two budgets the answer is always 500."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on time and memory for the requests to one API server."""

    calls: int = 64
    call_seconds: float = 30.0
    connect_seconds: float = 10.0
    body_bytes: int = 512 * 1024 * 1024
    page_bytes: int = 16 * 1024 * 1024
    """Of one page of a list, which takes a tenth of a second to decode; if objects are large, pages are smaller."""
    line_bytes: int = LINE_BYTES
    """Of one watch event; of a longer one only the identity of the object is read."""
    values: int | None = None
    """Values in one answer or event: three bytes of JSON can need a hundred bytes of memory."""
    unacknowledged_seconds: float = 4.0
    """Less than the time between one replica's last write and the next holder's first; see `LeaseTimes.in_flight`."""


class Call(NamedTuple):
    """A finished request, for metrics; `status` is 0 if there was no answer."""

    verb: str
    resource: str
    status: int
    seconds: float


@dataclass(slots=True)
class Request:
    """One request, as the methods of the client build it."""

    verb: str
    method: str
    path: str
    resource: str
    body: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)
    most_bytes: int | None = None
    """A lower limit for the size of this answer."""

    @property
    def what(self) -> str:
        """The request as errors name it."""
        return f"{self.verb} {self.path.partition('?')[0]}"


class Transport:
    """Sessions to one API server. Connects on first use, inside the running event loop."""

    def __init__(self, endpoint: Endpoint, credentials: Credentials, limits: Limits) -> None:
        self.endpoint = endpoint
        self.credentials = credentials
        self.limits = limits
        self.guard: Callable[[], None] | None = None
        self.on_call: Callable[[Call], None] | None = None
        self.skew_seconds: float | None = None
        self._skew_read = 0.0
        self._sessions: dict[str, aiohttp.ClientSession] = {}
        self._closed = False
        self._refreshing = asyncio.Lock()

    async def call(self, request: Request) -> bytes:
        """Sends a request and returns the body of a 2xx answer; retries twice after a quick 5xx.

        So a write may reach the server more than once; all our writes are safe to repeat. A failure that took long is
        not retried here: a webhook that hangs would hang again, and the caller would wait for all tries.
        """
        for pause in RETRY_PAUSES:
            started = time.perf_counter()
            try:
                return await self._call_authenticated(request)
            except Unavailable as error:
                slow = time.perf_counter() - started > QUICK_FAILURE_SECONDS
                if slow or error.status not in RETRIED_STATUSES or request.verb in NOT_RETRIED:
                    raise
            await asyncio.sleep(pause * (0.5 + random.random()))  # noqa: S311 - spreads load
        return await self._call_authenticated(request)

    async def _call_authenticated(self, request: Request) -> bytes:
        """Retries once, after reading a refused token again or reopening a connection that the server closed."""
        header = self.credentials.authorization()
        endpoint = self.endpoint
        try:
            return await self._call_once(request, header)
        except Unauthorized:
            if not await self._refresh_credentials(header, endpoint):
                raise
        except Disconnected:
            pass
        return await self._call_once(request, self.credentials.authorization())

    @asynccontextmanager
    async def stream(self, request: Request, *, idle_seconds: float) -> AsyncIterator[aiohttp.StreamReader]:
        """Opens a streamed answer; `idle_seconds` without data end it with `Unavailable`."""
        header = self.credentials.authorization()
        endpoint = self.endpoint
        try:
            response = await self._stream_once(request, header, idle_seconds)
        except Unauthorized:
            if not await self._refresh_credentials(header, endpoint):
                raise
            response = await self._stream_once(request, self.credentials.authorization(), idle_seconds)
        try:
            with _translated(request.what, self.endpoint):
                yield response.content
        finally:
            _abort(response)

    async def replace(self, endpoint: Endpoint, credentials: Credentials) -> None:
        """Replaces the credentials; another endpoint also closes all connections."""
        self.credentials = credentials
        if endpoint is not self.endpoint:
            self.endpoint = endpoint
            await self._drop_connections()

    async def close(self) -> None:
        """Closes all connections; running and later requests fail as `Unavailable`."""
        self._closed = True
        await self._drop_connections()

    async def _drop_connections(self) -> None:
        sessions = list(self._sessions.values())
        self._sessions = {}
        # Shielded: a task that closes while it is cancelled may be cancelled again, and would leave sessions open.
        await asyncio.shield(asyncio.gather(*(session.close() for session in sessions)))

    async def _call_once(self, request: Request, header: str | None) -> bytes:
        with self._observed(request), _translated(request.what, self.endpoint):
            async with await self._open("call", request, header) as response:
                if response.status >= 300:
                    raise await self._error(request, response)
                return await self._read(response, request.most_bytes or self.limits.body_bytes)

    async def _stream_once(self, request: Request, header: str | None, idle_seconds: float) -> aiohttp.ClientResponse:
        timeout = aiohttp.ClientTimeout(
            connect=self.limits.call_seconds,  # covers a proxy too, which no other limit does
            sock_connect=self.limits.connect_seconds,
            sock_read=idle_seconds,
        )
        with self._observed(request), _translated(request.what, self.endpoint):
            response = await self._open("watch", request, header, timeout)
            if response.status >= 300:
                raise await self._error(request, response)
            return response

    async def _open(
        self, pool: str, request: Request, header: str | None, timeouts: aiohttp.ClientTimeout | None = None
    ) -> aiohttp.ClientResponse:
        if self._closed:
            # A call that outlives its client must not open connections that would never be closed.
            raise Disconnected(f"{request.what}: the client was closed")
        headers = request.headers if header is None else {**request.headers, "Authorization": header}
        session = self._sessions.get(pool) or self._connect(pool)
        if request.body is not None and self.guard is not None:
            self.guard()  # before waiting for a connection; called again right before the bytes are sent
        response = await session.request(
            request.method,
            # The path is built from quoted parts: parsing and quoting it again would cost more than everything else.
            URL(self.endpoint.server + request.path, encoded=True),
            data=request.body,
            headers=headers,
            timeout=timeouts or session.timeout,
            server_hostname=self.endpoint.server_name,
            allow_redirects=False,  # a redirect could send our token to another server
        )
        self._measure_skew(response)
        return response

    def _connect(self, pool: str) -> aiohttp.ClientSession:
        session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=self.limits.calls if pool == "call" else 0,
                ssl=self.endpoint.tls,
                keepalive_timeout=_KEEP_ALIVE,
                socket_factory=partial(socket_with_timeout, self.limits.unacknowledged_seconds),
            ),
            proxy=self.endpoint.proxy,
            request_class=self._guarded(),
            cookie_jar=aiohttp.DummyCookieJar(),
            # No compression: it costs the API server more than it saves in a cluster's own network.
            headers={"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": "5spot"},
            timeout=aiohttp.ClientTimeout(total=self.limits.call_seconds, sock_connect=self.limits.connect_seconds),
        )
        self._sessions[pool] = session
        return session

    def _guarded(self) -> type[aiohttp.ClientRequest]:
        """A request class that calls the guard when it has a connection, right before it writes."""
        # A weak reference: a class lives until the next garbage collection and would keep closed connections alive.
        owner = weakref.ref(self)

        class Guarded(aiohttp.ClientRequest):
            async def write_bytes(self, writer: Any, conn: Any, content_length: int | None = None) -> None:
                try:
                    _call_guard(owner())
                except Exception as refusal:  # noqa: BLE001 - raised in the task that waits for the answer
                    # The reader of the answer closes the connection; since Python 3.12 nothing else does.
                    conn.protocol.set_exception(refusal)
                    return
                await super().write_bytes(writer, conn, content_length)

        return Guarded

    async def _refresh_credentials(self, refused: str | None, endpoint: Endpoint) -> bool:
        async with self._refreshing:  # of many calls that are refused at once, one reads the source
            # Another endpoint may have another client certificate.
            replaced = self.endpoint is not endpoint or self.credentials.authorization() != refused
            return replaced or await self.credentials.refresh()

    async def _error(self, request: Request, response: aiohttp.ClientResponse) -> KubeError:
        body = b""
        async for chunk in response.content.iter_any():
            body += chunk
            if len(body) > _MAX_ERROR_BYTES:
                response.close()
                break
        return from_response(response.status, body, retry_after=response.headers.get("Retry-After"), what=request.what)

    async def _read(self, response: aiohttp.ClientResponse, most: int) -> bytes:
        chunks: list[bytes] = []
        size = 0
        async for chunk in response.content.iter_any():
            chunks.append(chunk)
            size += len(chunk)
            if size > most:
                response.close()
                raise TooLarge(f"the answer is larger than {most} bytes", status=response.status)
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    def _measure_skew(self, response: aiohttp.ClientResponse) -> None:
        now = time.monotonic()
        date = response.headers.get("Date")
        if date is None or now - self._skew_read < _SKEW_EVERY:
            return
        self._skew_read = now
        try:
            # The header has whole seconds: on average half a second has passed since.
            self.skew_seconds = time.time() - parsedate_to_datetime(date).timestamp() - 0.5
        except ValueError:
            self.skew_seconds = None

    @contextmanager
    def _observed(self, request: Request) -> Iterator[None]:
        """Reports how a request ended; one that was cancelled says nothing about the server and is not reported."""
        started = time.perf_counter()
        status = 200
        try:
            yield
        except KubeError as error:
            status = error.status
            raise
        except BaseException:
            status = -1
            raise
        finally:
            if self.on_call is not None and status >= 0:
                self.on_call(Call(request.verb, request.resource, status, time.perf_counter() - started))


def _call_guard(transport: Transport | None) -> None:
    if transport is None:
        raise Disconnected("the client was closed")
    if transport.guard is not None:
        transport.guard()


def socket_with_timeout(seconds: float, address: aiohttp.AddrInfoType) -> socket.socket:
    """A socket that the kernel closes if sent data is not acknowledged in time: a late write must never arrive."""
    family, kind, protocol, _, _ = address
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(1000 * seconds))
    return made


def _abort(response: aiohttp.ClientResponse) -> None:
    """Ends a stream without the TLS shutdown, which a dead peer would not answer."""
    connection = response.connection
    if connection is not None and connection.transport is not None:
        connection.transport.abort()
    response.close()


def _is_cancelled() -> bool:
    """Whether the current task itself is cancelled, and not only something that it waits for."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


@contextmanager
def _translated(what: str, endpoint: Endpoint) -> Iterator[None]:
    try:
        yield
    except (asyncio.CancelledError, TimeoutError, aiohttp.ClientError, OSError) as error:
        if isinstance(error, asyncio.CancelledError) and _is_cancelled():
            raise
        kind, message = _describe(error)
        if endpoint.confidential:
            message = NO_ANSWER
        raise kind(f"{what}: {message}") from error


def _describe(error: BaseException) -> tuple[type[Unavailable], str]:
    """The class and the message of our error for a failed connection."""
    match error:
        case asyncio.CancelledError():
            # Closing a session cancels the tasks that wait for its connections: a worker or watch would end unnoticed.
            return Disconnected, "the connection was closed"
        case aiohttp.ClientConnectorCertificateError():
            return Untrusted, f"the server's certificate cannot be verified: {error}"
        case aiohttp.ClientSSLError():
            return Untrusted, f"the TLS connection failed: {error}"
        case aiohttp.ServerDisconnectedError() | OSError(errno=errno.ECONNRESET | errno.EPIPE):
            return Disconnected, "the server closed the connection"
        case TimeoutError():
            return Unavailable, "no answer in time"
        case _:
            return Unavailable, f"{type(error).__name__}: {error}"

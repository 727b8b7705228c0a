"""Sends requests to one API server over HTTPS and turns failures into our errors; used by the client only.

Calls and watches have separate connections, so that many watches never block a call.
"""

import asyncio
import errno
import random
import re
import ssl
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import NamedTuple

from service.kube.connections import Connections, Dialer
from service.kube.credentials import Credentials, Endpoint
from service.kube.decode import LINE_BYTES
from service.kube.errors import Disconnected, KubeError, TooLarge, Unauthorized, Unavailable, Untrusted, from_response
from service.kube.exchange import BadAnswer, Connection, HttpResponse, ServerClosed

_SKEW_EVERY = 10.0
_MAX_ERROR_BYTES = 256 * 1024
_ACCEPTED = "application/json"
# No compression: it costs the API server more than it saves in a cluster's own network.
_SAME = "Accept-Encoding: identity\r\nUser-Agent: 5spot\r\n"
RETRY_PAUSES = (0.1, 0.4)
"""Seconds before the second and the third try of a request."""
RETRIED_STATUSES = frozenset({500, 502, 503, 504})
_WARNING = re.compile(r'\b299 \S+ "((?:[^"\\]|\\.)*)"')
_ESCAPED = re.compile(r"\\(.)")
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
    on_warning: Callable[[str], None] | None = None
    """Called with each warning that comes with the answer, such as one of a webhook."""

    @property
    def what(self) -> str:
        """The request as errors name it."""
        return f"{self.verb} {self.path.partition('?')[0]}"


class Transport:
    """Connections to one API server. Connects on first use, inside the running event loop."""

    def __init__(self, endpoint: Endpoint, credentials: Credentials, limits: Limits) -> None:
        self.endpoint = endpoint
        self.credentials = credentials
        self.limits = limits
        self.guard: Callable[[], None] | None = None
        self.on_call: Callable[[Call], None] | None = None
        self.skew_seconds: float | None = None
        self._skew_read = 0.0
        self._pools: dict[str, Connections] = {}
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
    async def stream(self, request: Request, *, idle_seconds: float) -> AsyncIterator[AsyncIterator[bytes]]:
        """Opens a streamed answer; `idle_seconds` without data end it with `Unavailable`."""
        header = self.credentials.authorization()
        endpoint = self.endpoint
        pool = self._pool("watch", request)
        try:
            connection = await self._stream_once(pool, request, header, idle_seconds)
        except Unauthorized:
            if not await self._refresh_credentials(header, endpoint):
                raise
            pool = self._pool("watch", request)
            connection = await self._stream_once(pool, request, self.credentials.authorization(), idle_seconds)
        try:
            with _translated(request.what, self.endpoint):
                async with aclosing(connection.pieces(idle_seconds)) as pieces:
                    yield pieces
        finally:
            connection.abort()
            pool.give_back(connection)

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
        pools = list(self._pools.values())
        self._pools = {}
        dials = [dial for pool in pools for dial in pool.close()]
        if dials:
            await asyncio.wait(dials)  # each closes its socket first
        await asyncio.sleep(0)  # the event loop closes them in its next turn

    async def _call_once(self, request: Request, header: str | None) -> bytes:
        with self._observed(request), _translated(request.what, self.endpoint):
            async with asyncio.timeout(self.limits.call_seconds):
                answer = await self._exchanged(request, header)
            self._measure_skew(answer)
            _check(request, answer, self._most(request))
            if request.on_warning is not None:
                for text in warnings_in(answer.warnings):
                    request.on_warning(text)
            return answer.body

    def _most(self, request: Request) -> int:
        """How many bytes the answer may have."""
        return request.most_bytes or self.limits.body_bytes

    async def _exchanged(self, request: Request, header: str | None) -> HttpResponse:
        pool = self._pool("call", request)
        is_write = request.body is not None and self.guard is not None
        if is_write:
            self._check_guard()  # before waiting for a connection, and again right before the bytes are sent
        connection = await pool.take()
        try:
            if is_write:
                self._check_guard()
            sent = _written(request, pool.dialer, header)
            return await connection.call(sent, self._most(request), _MAX_ERROR_BYTES)
        finally:
            pool.give_back(connection)

    def _check_guard(self) -> None:
        if self.guard is not None:
            self.guard()

    async def _stream_once(
        self, pool: Connections, request: Request, header: str | None, idle_seconds: float
    ) -> Connection:
        with self._observed(request), _translated(request.what, self.endpoint):
            async with asyncio.timeout(self.limits.call_seconds):
                connection = await pool.take()
            try:
                answer = await connection.open_stream(_written(request, pool.dialer, header), idle_seconds)
                self._measure_skew(answer)
                if answer.status >= 300:
                    answer = answer._replace(body=await _refusal(connection, idle_seconds))
                _check(request, answer, _MAX_ERROR_BYTES)
            except BaseException:
                connection.abort()
                pool.give_back(connection)
                raise
            return connection

    def _pool(self, name: str, request: Request) -> Connections:
        if self._closed:
            # A call that outlives its client must not open connections that would never be closed.
            raise Disconnected(f"{request.what}: the client was closed")
        pool = self._pools.get(name)
        if pool is None:
            dialer = Dialer(self.endpoint, self.limits.connect_seconds, self.limits.unacknowledged_seconds)
            pool = self._pools[name] = Connections(dialer, self.limits.calls if name == "call" else 0)
        return pool

    async def _refresh_credentials(self, refused: str | None, endpoint: Endpoint) -> bool:
        async with self._refreshing:  # of many calls that are refused at once, one reads the source
            # Another endpoint may have another client certificate.
            replaced = self.endpoint is not endpoint or self.credentials.authorization() != refused
            return replaced or await self.credentials.refresh()

    def _measure_skew(self, answer: HttpResponse) -> None:
        now = time.monotonic()
        if answer.date is None or now - self._skew_read < _SKEW_EVERY:
            return
        self._skew_read = now
        try:
            # The header has whole seconds: on average half a second has passed since.
            self.skew_seconds = time.time() - parsedate_to_datetime(answer.date).timestamp() - 0.5
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


def warnings_in(headers: Iterable[str]) -> Iterator[str]:
    """The texts of headers such as `299 - "spec.until: …"`."""
    for header in headers:
        for quoted in _WARNING.findall(header):
            yield _ESCAPED.sub(r"\1", quoted)


def _written(request: Request, dialer: Dialer, header: str | None) -> bytes:
    """The request as it is sent."""
    fields = {"Accept": _ACCEPTED, **request.headers}
    if header is not None:
        fields["Authorization"] = header
    if request.body is not None:
        fields["Content-Length"] = str(len(request.body))
    if not all(map(str.isprintable, fields.values())):
        raise ValueError("a header of a request must be one line")
    lines = "".join([f"{name}: {value}\r\n" for name, value in fields.items()])
    head = f"{request.method} {dialer.prefix}{request.path} HTTP/1.1\r\nHost: {dialer.host}\r\n{_SAME}{lines}\r\n"
    return head.encode() + (request.body or b"")


def _check(request: Request, answer: HttpResponse, most: int) -> None:
    """Raises the error that an answer describes."""
    if answer.status >= 300:
        raise from_response(answer.status, answer.body, retry_after=answer.retry_after, what=request.what)
    if not answer.whole:
        raise TooLarge(f"the answer is larger than {most} bytes", status=answer.status)


async def _refusal(connection: Connection, idle_seconds: float) -> bytes:
    """The body of an answer that refuses a stream, or the beginning of it."""
    body = b""
    async with aclosing(connection.pieces(idle_seconds)) as pieces:
        async for piece in pieces:
            body += piece
            if len(body) > _MAX_ERROR_BYTES:
                break
    return body


def _is_cancelled() -> bool:
    """Whether the current task itself is cancelled, and not only something that it waits for."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


@contextmanager
def _translated(what: str, endpoint: Endpoint) -> Iterator[None]:
    try:
        yield
    except (asyncio.CancelledError, TimeoutError, ServerClosed, BadAnswer, OSError) as error:
        if isinstance(error, asyncio.CancelledError) and _is_cancelled():
            raise
        kind, message = _describe(error)
        if endpoint.confidential:
            message = NO_ANSWER
        raise kind(f"{what}: {message}") from error


def _describe(error: BaseException) -> tuple[type[Unavailable], str]:  # noqa: PLR0911 - a table
    """The class and the message of our error for a failed connection."""
    match error:
        case asyncio.CancelledError():
            # Closing a session cancels the tasks that wait for its connections: a worker or watch would end unnoticed.
            return Disconnected, "the connection was closed"
        case ssl.SSLCertVerificationError():
            return Untrusted, f"the server's certificate cannot be verified: {error}"
        case ssl.SSLError():
            return Untrusted, f"the TLS connection failed: {error}"
        case ServerClosed() | OSError(errno=errno.ECONNRESET | errno.EPIPE):
            return Disconnected, "the server closed the connection"
        case TimeoutError():
            return Unavailable, "no answer in time"
        case BadAnswer():
            return Unavailable, str(error)
        case _:
            return Unavailable, f"{type(error).__name__}: {error}"

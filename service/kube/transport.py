"""Carries requests to one API server over HTTPS and turns failures into our errors; used by the client alone.

Calls and watches have connections of their own, so that many watches never starve a call.
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
# Shorter than the patience of load balancers, so that it is us who close idle connections.
_KEEP_ALIVE = 30.0
_LONGEST_EXPLANATION = 256 * 1024
RETRY_PAUSES = (0.1, 0.4)
"""Seconds before the second and the third try of a request."""
STUMBLED = frozenset({500, 502, 503, 504})
NO_ANSWER = "no API server answered that the given CA vouches for"
"""All that a message says of an address which a tenant chose: he shall not learn what is there."""
STUMBLE_SECONDS = 1.0
"""A server that stumbles says so at once."""
NOT_REPEATED = frozenset({"create_eviction"})
"""Asked again every few seconds anyway, and a pod with two budgets is answered with 500 for ever."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How long and how much we let one API server take."""

    calls: int = 64
    call_seconds: float = 30.0
    connect_seconds: float = 10.0
    body_bytes: int = 512 * 1024 * 1024
    page_bytes: int = 16 * 1024 * 1024
    """Of one part of a list, decoded in a tenth of a second; where objects are large, fewer are asked for."""
    line_bytes: int = LINE_BYTES
    """Of one event of a watch; of a longer one only the object's identity is taken in."""
    values: int | None = None
    """In one answer or event: three bytes of JSON can become a hundred in memory."""
    unacknowledged_seconds: float = 4.0
    """Less than lies between the moment a replica stops acting and the moment another may begin; see `LeaseTimes`."""


class Call(NamedTuple):
    """What a metric wants to know about a finished request; `status` is 0 when there was no answer."""

    verb: str
    resource: str
    status: int
    seconds: float


@dataclass(slots=True)
class Request:
    """One request, as the client's verbs compose it."""

    verb: str
    method: str
    path: str
    resource: str
    body: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)
    most_bytes: int | None = None
    """Of the answer, if fewer are taken in than of any other."""

    @property
    def what(self) -> str:
        """How an error names the request."""
        return f"{self.verb} {self.path.partition('?')[0]}"


class Transport:
    """Sessions to one API server. Built anywhere; connects on first use, inside the running loop."""

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
        """Sends and returns the body of a good answer; asks again, a little later, where the server stumbled.

        So a write may reach the server more than once; ours are all made to bear that. A failure that took long is
        not repeated here: a webhook that hangs would hang again, and whoever called would wait for all of it.
        """
        for pause in RETRY_PAUSES:
            started = time.perf_counter()
            try:
                return await self._call_known(request)
            except Unavailable as error:
                slow = time.perf_counter() - started > STUMBLE_SECONDS
                if slow or error.status not in STUMBLED or request.verb in NOT_REPEATED:
                    raise
            await asyncio.sleep(pause * (0.5 + random.random()))  # noqa: S311 - spreads load
        return await self._call_known(request)

    async def _call_known(self, request: Request) -> bytes:
        """A refused token is read again and a connection that the server had closed is opened again, once."""
        header, endpoint = self.credentials.authorization(), self.endpoint
        try:
            return await self._call_once(request, header)
        except Unauthorized:
            if not await self._renewed(header, endpoint):
                raise
        except Disconnected:
            pass
        return await self._call_once(request, self.credentials.authorization())

    @asynccontextmanager
    async def stream(self, request: Request, *, idle_seconds: float) -> AsyncIterator[aiohttp.StreamReader]:
        """Opens a long answer for reading; `idle_seconds` of silence end it with `Unavailable`."""
        header, endpoint = self.credentials.authorization(), self.endpoint
        try:
            response = await self._stream_once(request, header, idle_seconds)
        except Unauthorized:
            if not await self._renewed(header, endpoint):
                raise
            response = await self._stream_once(request, self.credentials.authorization(), idle_seconds)
        try:
            with _translated(request.what, self.endpoint):
                yield response.content
        finally:
            _hang_up(response)

    async def replace(self, endpoint: Endpoint, credentials: Credentials) -> None:
        """Goes on with other credentials; other TLS settings also need new connections."""
        self.credentials = credentials
        if endpoint is not self.endpoint:
            self.endpoint = endpoint
            await self._drop_connections()

    async def close(self) -> None:
        """Closes every connection for good; what is under way on them, or comes later, fails as `Unavailable`."""
        self._closed = True
        await self._drop_connections()

    async def _drop_connections(self) -> None:
        sessions, self._sessions = list(self._sessions.values()), {}
        # Whoever closes on its way out may be told once more to go: what is left would stay open.
        await asyncio.shield(asyncio.gather(*(session.close() for session in sessions)))

    async def _call_once(self, request: Request, header: str | None) -> bytes:
        with self._observed(request), _translated(request.what, self.endpoint):
            async with await self._open("call", request, header) as response:
                if response.status >= 300:
                    raise await self._error(request, response)
                return await self._read(response, request.most_bytes or self.limits.body_bytes)

    async def _stream_once(self, request: Request, header: str | None, idle_seconds: float) -> aiohttp.ClientResponse:
        patience = aiohttp.ClientTimeout(
            connect=self.limits.call_seconds,  # for a proxy too, whose answer no other limit counts
            sock_connect=self.limits.connect_seconds,
            sock_read=idle_seconds,
        )
        with self._observed(request), _translated(request.what, self.endpoint):
            response = await self._open("watch", request, header, patience)
            if response.status >= 300:
                raise await self._error(request, response)
            return response

    async def _open(
        self, pool: str, request: Request, header: str | None, patience: aiohttp.ClientTimeout | None = None
    ) -> aiohttp.ClientResponse:
        if self._closed:
            # A call that outlives its client must not open connections that nobody will close.
            raise Disconnected(f"{request.what}: the client was closed")
        headers = request.headers if header is None else {**request.headers, "Authorization": header}
        session = self._sessions.get(pool) or self._connect(pool)
        if request.body is not None and self.guard is not None:
            self.guard()  # before a connection is waited for; asked again before the bytes leave
        response = await session.request(
            request.method,
            # The path is composed from quoted parts: parsing and quoting it again would cost more than the rest.
            URL(self.endpoint.server + request.path, encoded=True),
            data=request.body,
            headers=headers,
            timeout=patience or session.timeout,
            server_hostname=self.endpoint.server_name,
            allow_redirects=False,  # a redirect could carry our token elsewhere
        )
        self._note_skew(response)
        return response

    def _connect(self, pool: str) -> aiohttp.ClientSession:
        session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=self.limits.calls if pool == "call" else 0,
                ssl=self.endpoint.tls,
                keepalive_timeout=_KEEP_ALIVE,
                socket_factory=partial(impatient_socket, self.limits.unacknowledged_seconds),
            ),
            proxy=self.endpoint.proxy,
            request_class=self._guarded(),
            cookie_jar=aiohttp.DummyCookieJar(),
            # Compression costs the API server more than a cluster's own network does.
            headers={"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": "5spot"},
            timeout=aiohttp.ClientTimeout(total=self.limits.call_seconds, sock_connect=self.limits.connect_seconds),
        )
        self._sessions[pool] = session
        return session

    def _guarded(self) -> type[aiohttp.ClientRequest]:
        """Requests that ask the guard when they have a connection, right before they write to it."""
        # A class lives until the next search for cycles, and with it would all that a closed connection held.
        owner = weakref.ref(self)

        class Guarded(aiohttp.ClientRequest):
            async def write_bytes(self, writer: Any, conn: Any, content_length: int | None = None) -> None:
                try:
                    _ask_guard(owner())
                except Exception as refusal:  # noqa: BLE001 - whatever it is, whoever waits for the answer gets it
                    # Whoever reads the answer then closes the connection; from Python 3.12 on nobody does so yet.
                    conn.protocol.set_exception(refusal)
                    return
                await super().write_bytes(writer, conn, content_length)

        return Guarded

    async def _renewed(self, refused: str | None, endpoint: Endpoint) -> bool:
        async with self._refreshing:  # of many calls refused at once, one reads the source
            # Another endpoint has another client certificate, perhaps.
            swapped = self.endpoint is not endpoint or self.credentials.authorization() != refused
            return swapped or await self.credentials.refresh()

    async def _error(self, request: Request, response: aiohttp.ClientResponse) -> KubeError:
        body = b""
        async for chunk in response.content.iter_any():
            body += chunk
            if len(body) > _LONGEST_EXPLANATION:
                response.close()
                break
        return from_response(response.status, body, retry_after=response.headers.get("Retry-After"), what=request.what)

    async def _read(self, response: aiohttp.ClientResponse, most: int) -> bytes:
        chunks, size = [], 0
        async for chunk in response.content.iter_any():
            chunks.append(chunk)
            size += len(chunk)
            if size > most:
                response.close()
                raise TooLarge(f"the answer is longer than {most} bytes", status=response.status)
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    def _note_skew(self, response: aiohttp.ClientResponse) -> None:
        now = time.monotonic()
        date = response.headers.get("Date")
        if date is None or now - self._skew_read < _SKEW_EVERY:
            return
        self._skew_read = now
        try:
            # The header has whole seconds: on average half a second has gone by since.
            self.skew_seconds = time.time() - parsedate_to_datetime(date).timestamp() - 0.5
        except ValueError:
            self.skew_seconds = None

    @contextmanager
    def _observed(self, request: Request) -> Iterator[None]:
        """Tells the observer how a request ended; one that we gave up ourselves says nothing about the server."""
        started, status = time.perf_counter(), 200
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


def _ask_guard(transport: Transport | None) -> None:
    if transport is None:
        raise Disconnected("the client was closed")
    if transport.guard is not None:
        transport.guard()


def impatient_socket(seconds: float, address: aiohttp.AddrInfoType) -> socket.socket:
    """A socket that the kernel gives up when what it sent is not acknowledged: a late write must not arrive at all."""
    family, kind, protocol, _, _ = address
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(1000 * seconds))
    return made


def _hang_up(response: aiohttp.ClientResponse) -> None:
    """Ends a stream without the TLS farewell, which a dead peer would not answer."""
    connection = response.connection
    if connection is not None and connection.transport is not None:
        connection.transport.abort()
    response.close()


def _is_cancelled() -> bool:
    """Whether somebody wants the current task to end; else only something that it waits for was cancelled."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


@contextmanager
def _translated(what: str, endpoint: Endpoint) -> Iterator[None]:
    try:
        yield
    except (asyncio.CancelledError, TimeoutError, aiohttp.ClientError, OSError) as error:
        if isinstance(error, asyncio.CancelledError) and _is_cancelled():
            raise
        kind, finding = _finding(error)
        raise kind(f"{what}: {NO_ANSWER if endpoint.confidential else finding}") from error


def _finding(error: BaseException) -> tuple[type[Unavailable], str]:
    """The error that a failed connection amounts to, and what was found."""
    match error:
        case asyncio.CancelledError():
            # To close a session cancels whoever waits for a connection of it: a worker or a watch would end unnoticed.
            return Disconnected, "the connection was closed"
        case aiohttp.ClientConnectorCertificateError():
            return Untrusted, f"the server's certificate cannot be verified: {error}"
        case aiohttp.ClientSSLError():
            return Untrusted, f"no TLS connection: {error}"
        case aiohttp.ServerDisconnectedError() | OSError(errno=errno.ECONNRESET | errno.EPIPE):
            return Disconnected, "the server closed the connection"
        case TimeoutError():
            return Unavailable, "no answer in time"
        case _:
            return Unavailable, f"{type(error).__name__}: {error}"

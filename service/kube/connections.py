"""The connections to one API server: opened when a request needs one, and kept for the next.

Used by the transport only, which has one set of them for calls and one for watches.
"""

import asyncio
import base64
import socket
import ssl
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote, urlsplit

from service.kube.credentials import Endpoint
from service.kube.exchange import BadAnswer, Connection, ServerClosed

KEEP_ALIVE_SECONDS: Final = 30.0
"""Shorter than the idle timeout of load balancers, so that our side closes idle connections."""
NEXT_ADDRESS_SECONDS: Final = 1.0
"""If a server has several addresses, the next one is tried when one has not answered for so long."""
_TUNNEL_BYTES: Final = 64 * 1024
_PORTS: Final = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server or a proxy listens."""

    host: str
    port: int
    secure: bool = True

    @classmethod
    def of(cls, url: str) -> "Address":
        """The address in a URL."""
        parts = urlsplit(url)
        host = (parts.hostname or "").encode("idna").decode() if parts.hostname else ""
        return cls(host, parts.port or _PORTS.get(parts.scheme, 443), secure=parts.scheme == "https")

    @property
    def authority(self) -> str:
        """As a proxy is asked for it."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Connections:
    """At most `most` connections that serve requests at the same time; 0 means any number."""

    def __init__(self, dialer: "Dialer", most: int) -> None:
        self.dialer = dialer
        self._most = most
        self._taken = 0
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._idle: list[Connection] = []
        self._all: set[Connection] = set()
        self._dials: set[asyncio.Task[Connection]] = set()
        self._sweep: asyncio.TimerHandle | None = None
        self.closed = False

    @property
    def idle(self) -> tuple[Connection, ...]:
        """The connections that wait for a request."""
        return tuple(self._idle)

    @property
    def waiting(self) -> int:
        """Requests that wait because all connections are in use."""
        return len(self._waiters)

    async def take(self) -> Connection:
        """A connection for one request; it must be given back, whatever becomes of the request."""
        await self._wait_for_turn()
        try:
            return self._reused() or await self._dialled()
        except BaseException:
            self._pass_on()
            raise

    def give_back(self, connection: Connection) -> None:
        """Keeps the connection for the next request, if it can serve one."""
        if connection.reusable and not self.closed:
            connection.idle_since = asyncio.get_running_loop().time()
            self._idle.append(connection)
            self._sweep_later()
        else:
            connection.abort()
            self._all.discard(connection)
        self._pass_on()

    def close(self) -> Iterable[asyncio.Task[Connection]]:
        """Closes all connections; requests that use or await one fail. What is being opened, which ends soon."""
        self.closed = True
        for connection in self._all:
            connection.abort()
        dials = tuple(self._dials)
        for dial in dials:
            dial.cancel()
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_exception(ServerClosed())
        if self._sweep is not None:
            self._sweep.cancel()
        self._idle.clear()
        self._all.clear()
        return dials

    async def _wait_for_turn(self) -> None:
        if self._most == 0 or (self._taken < self._most and not self._waiters):
            self._taken += 1
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        try:
            await waiter
        except BaseException:
            if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
                self._pass_on()  # cancelled when it was its turn
            else:
                with suppress(ValueError):
                    self._waiters.remove(waiter)
            raise

    def _pass_on(self) -> None:
        """Lets the request go on that waits longest."""
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return
        self._taken -= 1

    def _reused(self) -> Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if connection.reusable:
                return connection
            self._all.discard(connection)
        return None

    async def _dialled(self) -> Connection:
        dial = asyncio.create_task(self.dialer.dial())
        self._dials.add(dial)
        try:
            connection = await dial
        except BaseException:
            if dial.done() and not dial.cancelled() and dial.exception() is None:
                dial.result().abort()  # the request was cancelled just when its connection was open
            raise
        finally:
            self._dials.discard(dial)
        if self.closed:
            connection.abort()
            raise ServerClosed
        self._all.add(connection)
        return connection

    def _sweep_later(self) -> None:
        if self._sweep is None:
            self._sweep = asyncio.get_running_loop().call_later(KEEP_ALIVE_SECONDS, self._sweep_idle)

    def _sweep_idle(self) -> None:
        """Closes what was idle for long; the rest is looked at again later."""
        self._sweep = None
        before = asyncio.get_running_loop().time() - KEEP_ALIVE_SECONDS
        for connection in [each for each in self._idle if each.idle_since <= before or not each.reusable]:
            self._idle.remove(connection)
            self._all.discard(connection)
            connection.abort()
        if self._idle:
            self._sweep_later()


@dataclass(frozen=True, slots=True)
class Dialer:
    """Opens connections to an endpoint, through its proxy if it has one."""

    endpoint: Endpoint
    seconds: float
    """For everything from the name's lookup to the end of the TLS handshake."""
    unacknowledged_seconds: float
    host: str = field(init=False)
    """The Host header of every request."""
    prefix: str = field(init=False)
    """What the path of every request starts with, where the server is behind another one."""
    _server: Address = field(init=False)

    def __post_init__(self) -> None:
        """Reads the address once."""
        server = Address.of(self.endpoint.server)
        object.__setattr__(self, "_server", server)
        object.__setattr__(self, "host", server.authority.removesuffix(f":{_PORTS['https']}"))
        object.__setattr__(self, "prefix", urlsplit(self.endpoint.server).path.rstrip("/"))

    async def dial(self) -> Connection:
        """A new connection; raises OSError, or `TimeoutError`."""
        async with asyncio.timeout(self.seconds):
            proxy = self.endpoint.proxy
            if proxy is not None:
                return await self._through(proxy)
            made = await self._connected(self._server)
            # TLS is a step of its own: else asyncio, cancelled when it stands, would wait for the server's farewell.
            transport, _ = await asyncio.get_running_loop().create_connection(asyncio.Protocol, sock=made)
            return await self._secured(transport)

    @property
    def _name(self) -> str:
        """What the certificate must be for."""
        return self.endpoint.server_name or self._server.host

    async def _connected(self, address: Address) -> socket.socket:
        """A socket that is connected to the first address that answers."""
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
        for number, (family, kind, protocol, _, where) in enumerate(found, start=1):
            made = socket_with_timeout(self.unacknowledged_seconds, family, kind, protocol)
            try:
                async with asyncio.timeout(NEXT_ADDRESS_SECONDS if number < len(found) else None):
                    await loop.sock_connect(made, where)
            except OSError:  # TimeoutError is one
                made.close()
                if number == len(found):
                    raise
            except BaseException:
                made.close()
                raise
            else:
                return made
        raise OSError(f"{address.host} has no address")

    async def _through(self, proxy: str) -> Connection:
        """A connection that the proxy passes on without reading it."""
        address = Address.of(proxy)
        made = await self._connected(address)
        loop = asyncio.get_running_loop()
        tls = ssl.create_default_context() if address.secure else None
        name = address.host if tls else None
        transport, tunnel = await loop.create_connection(_Tunnel, sock=made, ssl=tls, server_hostname=name)
        transport.write(_connect_request(self._server, proxy))
        try:
            await tunnel.opened
        except BaseException:
            transport.abort()
            raise
        return await self._secured(transport)

    async def _secured(self, transport: asyncio.Transport) -> Connection:
        """A connection over TLS, which begins now."""
        connection = Connection()
        loop = asyncio.get_running_loop()
        try:
            secured = await loop.start_tls(transport, connection, self.endpoint.tls, server_hostname=self._name)
        except BaseException:
            transport.abort()
            raise
        assert secured is not None, "only a transport that is closed becomes None"  # noqa: S101 - narrows the type
        connection.connection_made(secured)
        return connection


class _Tunnel(asyncio.Protocol):
    """Waits until a proxy has opened a tunnel."""

    def __init__(self) -> None:
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._head = b""

    def data_received(self, data: bytes) -> None:
        """Part of the proxy's answer."""
        self._head += data
        if self.opened.done() or (b"\r\n\r\n" not in self._head and len(self._head) < _TUNNEL_BYTES):
            return
        status = self._head.split(b"\r\n", 1)[0].split(b" ")[1:2]
        if status == [b"200"]:
            self.opened.set_result(None)
        else:
            said = self._head[:100].split(b"\r\n", 1)[0].decode("latin-1")
            self.opened.set_exception(BadAnswer(f"the proxy refuses: {said!r}"))

    def connection_lost(self, exc: Exception | None) -> None:
        """The proxy closed the connection."""
        if not self.opened.done():
            self.opened.set_exception(exc or ServerClosed())


def _connect_request(server: Address, proxy: str) -> bytes:
    parts = urlsplit(proxy)
    lines = [f"CONNECT {server.authority} HTTP/1.1", f"Host: {server.authority}"]
    if parts.username is not None:
        user = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        lines.append(f"Proxy-Authorization: Basic {base64.b64encode(user.encode()).decode()}")
    return "\r\n".join([*lines, "", ""]).encode()


def socket_with_timeout(seconds: float, family: int, kind: int, protocol: int) -> socket.socket:
    """A socket that the kernel closes if sent data is not acknowledged in time: a late write must never arrive."""
    made = socket.socket(family, kind, protocol)
    made.setblocking(False)  # noqa: FBT003 - its only argument
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(1000 * seconds))
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return made

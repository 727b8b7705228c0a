"""HTTP servers as ordinary tasks: they handle no signals, and report the port that they listen on."""

import asyncio
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

import structlog
import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

# API servers keep connections open between reviews; the default of 5 s would cost a handshake each time.
KEEP_ALIVE_SECONDS: Final = 120
GRACE_SECONDS: Final = 5
# API servers send about 1 KiB of headers.
HEAD_LIMIT: Final = 64 * 1024
REQUEST_SECONDS: Final = 15.0
"""Within it a connection has to bring its first request, and every request has to be complete."""
QUEUED_MAX: Final = 16
"""Requests of one connection that wait for an answer to the one before; API servers and browsers send none."""

log = structlog.get_logger(__name__)


class _Server(uvicorn.Server):
    """uvicorn without its signal handlers: `service.app` stops the servers, in its own order."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class TooManyQueuedError(Exception):
    """A client sends requests faster than it reads answers."""


class _Protocol(HttpToolsProtocol):
    """uvicorn's protocol with limits on the head of a request, and on requests that are sent without waiting.

    Without them uvicorn collects both without end: any client could use up all memory and, with one endless header or
    thousands of requests at once, all processor time. Nor does it mind how long a request takes to arrive.
    """

    _head_bytes = 0
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._set_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_deadline()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._head_bytes += len(data)
        super().data_received(data)
        if self._head_bytes > HEAD_LIMIT and not self.transport.is_closing():
            self.send_400_response("The head of the request is too long.")
        elif self._head_bytes and self._deadline is None:
            self._set_deadline()

    def _set_deadline(self) -> None:
        self._deadline = self.loop.call_later(REQUEST_SECONDS, self.transport.close)

    def _cancel_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _unsupported_upgrade_warning(self) -> None:
        """No server here speaks WebSocket or h2c: the request is answered, and its connection ends.

        The parser takes it to have no body, and what follows may be none of HTTP.
        """
        if self.cycle is not None:
            self.cycle.keep_alive = False

    def on_message_begin(self) -> None:
        if len(self.pipeline) >= QUEUED_MAX:
            raise TooManyQueuedError  # the parser stops, and the connection ends with a 400
        super().on_message_begin()

    def on_body(self, body: bytes) -> None:
        self._head_bytes -= len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._head_bytes = 0
        self._cancel_deadline()
        super().on_message_complete()


def bound(address: str, port: int) -> socket.socket:
    """A socket that is bound but does not listen yet; `::` means every address, IPv4 too."""
    try:
        return _bound(socket.AF_INET6 if ":" in address else socket.AF_INET, address, port)
    except OSError:
        if address != "::":
            raise
        # The host has no IPv6.
        return _bound(socket.AF_INET, "0.0.0.0", port)  # noqa: S104 - what `::` asks for


def _bound(family: socket.AddressFamily, address: str, port: int) -> socket.socket:
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, int(address != "::"))
        listener.bind((address, port))
    except OSError as error:
        listener.close()
        raise OSError(error.errno, f"cannot listen on port {port}: {error.strerror}", address) from None
    return listener


@dataclass(slots=True)
class BoundServer:
    """One application on one port."""

    name: str
    app: FastAPI
    listener: socket.socket
    tls: ssl.SSLContext | None = None
    _server: _Server = field(init=False)

    def __post_init__(self) -> None:
        """Configures uvicorn; `serve` starts it."""
        self._server = _Server(config(self.app, self.tls))

    @property
    def port(self) -> int:
        """The port, also if the settings ask for a free one."""
        return int(self.listener.getsockname()[1])

    @property
    def listening(self) -> bool:
        """Whether connections are accepted."""
        return bool(self._server.started and not self._server.should_exit)

    async def serve(self) -> None:
        """Serves until `stop`."""
        log.info("listening", server=self.name, port=self.port)
        await self._server.serve(sockets=[self.listener])

    def drain(self) -> None:
        """Serves on, and ends each connection with its next answer, so that its client connects to a pod that stays."""
        config = self._server.config
        config.headers.append(("connection", "close"))
        if config.loaded:
            config.encoded_headers.append((b"connection", b"close"))

    def stop(self) -> None:
        """Accepts no more connections, and ends once open requests are answered."""
        self._server.should_exit = True


def config(app: FastAPI, tls: ssl.SSLContext | None = None) -> uvicorn.Config:
    """The configuration of every server; benchmarks use it too."""
    return uvicorn.Config(
        app,
        http=_Protocol,
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=GRACE_SECONDS,
        ssl_context_factory=(lambda _config, _default: tls) if tls else None,
    )

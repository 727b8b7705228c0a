"""HTTP servers as ordinary tasks: they leave the signals alone and say which port they got."""

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

log = structlog.get_logger(__name__)


class _Server(uvicorn.Server):
    """uvicorn without its signal handlers: stopping is decided in `service.app`, in an order of its own."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class _Protocol(HttpToolsProtocol):
    """uvicorn's protocol with a bound on the head of a request.

    It would collect headers for as long as they come: whoever may connect could use up all memory and, with one endless
    header, all time.
    """

    _beside_body = 0

    def data_received(self, data: bytes) -> None:
        self._beside_body += len(data)
        super().data_received(data)
        if self._beside_body > HEAD_LIMIT and not self.transport.is_closing():
            self.send_400_response("The head of the request is too long.")

    def on_body(self, body: bytes) -> None:
        self._beside_body -= len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._beside_body = 0
        super().on_message_complete()


def bound(address: str, port: int) -> socket.socket:
    """A socket bound, but not listening yet; on every address of both families for `::`."""
    try:
        return _bound(socket.AF_INET6 if ":" in address else socket.AF_INET, address, port)
    except OSError:
        if address != "::":
            raise
        # A host without IPv6.
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
        """Settles how uvicorn serves; it starts in `serve`."""
        self._server = _Server(config(self.app, self.tls))

    @property
    def port(self) -> int:
        """The port, also where a free one was asked for."""
        return int(self.listener.getsockname()[1])

    @property
    def listening(self) -> bool:
        """Whether connections are accepted."""
        return bool(self._server.started and not self._server.should_exit)

    async def serve(self) -> None:
        """Serves until `stop`."""
        log.info("listening", server=self.name, port=self.port)
        await self._server.serve(sockets=[self.listener])

    def stop(self) -> None:
        """Takes no more connections and ends once those in hand are answered."""
        self._server.should_exit = True


def config(app: FastAPI, tls: ssl.SSLContext | None = None) -> uvicorn.Config:
    """How every server of ours is set up; the benchmark's bare handler too."""
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

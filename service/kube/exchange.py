"""One HTTP/1.1 connection to an API server: sends a request, and takes in the answer whole or piece by piece.

It serves one request at a time. `service.kube.connections` opens and shares connections; nothing else uses them.
"""

import asyncio
import ssl
from collections.abc import AsyncGenerator
from typing import Any, Final, NamedTuple, cast

import httptools

HEAD_BYTES: Final = 64 * 1024
"""What may arrive that is not part of a body: the fields of the head and of trailers, and sizes of chunks."""
_TOO_LONG: Final = "the head of the answer is too long"
STREAM_BYTES: Final = 128 * 1024
"""A stream whose reader is slower than the server is not read further from here on."""


class ServerClosed(Exception):
    """The server or a proxy closed the connection."""


class BadAnswer(Exception):
    """The server sent something that is not HTTP."""


class HttpResponse(NamedTuple):
    """An answer, or the beginning of one; `whole` unless more was sent than was asked for."""

    status: int
    body: bytes
    retry_after: str | None
    date: str | None
    whole: bool = True
    warnings: tuple[str, ...] = ()
    """The Warning headers."""


class Connection(asyncio.Protocol):
    """A connection that is open. The fields describe the answer that is being received."""

    def __init__(self) -> None:
        self.idle_since = 0.0
        """Set by the owner when it puts the connection aside."""
        self._transport: asyncio.Transport | None = None
        self._parser: Any = None
        self._waiter: asyncio.Future[None] | None = None
        self._error: Exception | None = None
        self._expecting = False
        self._reusable = True
        self._streams = False
        self._paused = False
        self._most = 0
        self._most_of_error = 0
        self._reset()

    def _reset(self) -> None:
        self._chunks: list[bytes] = []
        self._size = 0
        self._unread = 0
        self._fields = 0
        self._status = 0
        self._retry_after: str | None = None
        self._date: str | None = None
        self._warnings: list[str] = []
        self._framed = False
        self._has_head = False
        self._complete = False
        self._cut = False

    @property
    def reusable(self) -> bool:
        """Whether another request can be sent: the last answer was received in full, and the connection is open."""
        return self._reusable and not self._expecting and self._transport is not None

    def abort(self) -> None:
        """Closes the connection without the farewell of TLS, which a dead server would not answer."""
        if self._transport is not None:
            self._transport.abort()

    async def call(self, request: bytes, most: int, most_of_error: int) -> HttpResponse:
        """Sends a request; the answer, of which at most so many bytes are received, depending on its status."""
        self._most = most
        self._most_of_error = most_of_error
        self._streams = False
        self._send(request)
        while not self._complete:
            await self._more()
        return self._answer()

    async def open_stream(self, request: bytes, idle_seconds: float) -> HttpResponse:
        """Sends a request; the head of the answer. `pieces` returns its body."""
        self._streams = True
        self._send(request)
        async with asyncio.timeout(idle_seconds):
            while not self._has_head:
                await self._more()
        return self._answer()

    async def pieces(self, idle_seconds: float) -> AsyncGenerator[bytes, None]:
        """The body as it arrives; `TimeoutError` if nothing does for so long."""
        while True:
            if self._chunks:
                yield self._take()
            elif self._complete:
                return
            else:
                async with asyncio.timeout(idle_seconds):
                    await self._more()

    def _send(self, request: bytes) -> None:
        if self._transport is None:
            raise self._error or ServerClosed
        self._reset()
        self._expecting = True
        self._transport.write(request)

    async def _more(self) -> None:
        """Waits until something happens; raises if the connection is lost."""
        if self._error is not None:
            raise self._error
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _take(self) -> bytes:
        found = self._chunks[0] if len(self._chunks) == 1 else b"".join(self._chunks)
        self._chunks = []
        self._size = 0
        if self._paused and self._transport is not None:
            self._paused = False
            self._transport.resume_reading()
        return found

    def _answer(self) -> HttpResponse:
        body = b"" if self._streams else self._take()
        return HttpResponse(
            self._status, body, self._retry_after, self._date, whole=not self._cut, warnings=tuple(self._warnings)
        )

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _fail(self, error: Exception) -> None:
        self._error = self._error or error
        self._reusable = False
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(self._error)
        self.abort()

    def _end(self, *, reusable: bool) -> None:
        if self._error is not None:
            return
        self._complete = True
        self._expecting = False
        self._reusable = reusable
        self._wake()

    # Called by the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection is open."""
        self._transport = cast("asyncio.Transport", transport)
        self._parser = httptools.HttpResponseParser(self)

    def data_received(self, data: bytes) -> None:
        """Part of an answer."""
        if self._cut or self._error is not None:
            return
        self._unread += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._fail(BadAnswer(f"the answer is not HTTP: {error}"))
        if self._unread > HEAD_BYTES:
            self._fail(BadAnswer(_TOO_LONG))

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is closed: by the server, by an error, or by us."""
        self._transport = None
        self._parser = None  # it refers to this object
        if exc is None and self._expecting and self._has_head and not self._framed:
            self._end(reusable=False)  # a body without a length ends with its connection
            return
        # An error of TLS by now means that the server did not close the connection properly.
        self._fail(ServerClosed() if exc is None or isinstance(exc, ssl.SSLError) else exc)

    # Called by the parser

    def on_message_begin(self) -> None:
        """An answer begins."""
        if not self._expecting:
            self._fail(BadAnswer("the server sent an answer without a request"))

    def on_header(self, name: bytes, value: bytes) -> None:
        """One field of the head, or of a trailer."""
        self._fields += len(name) + len(value) + 4
        if self._fields > HEAD_BYTES:
            self._fail(BadAnswer(_TOO_LONG))
        if self._has_head:
            return
        match name.lower():
            case b"content-length" | b"transfer-encoding":
                self._framed = True
            case b"date":
                self._date = value.decode("latin-1")
            case b"retry-after":
                self._retry_after = value.decode("latin-1")
            case b"warning":
                self._warnings.append(value.decode(errors="replace"))

    def on_headers_complete(self) -> None:
        """The head is complete; one that only informs is followed by another."""
        if self._complete:
            return
        self._status = self._parser.get_status_code()
        self._has_head = self._status >= 200
        if self._streams and self._has_head:
            self._wake()

    def on_body(self, body: bytes) -> None:
        """Part of the body."""
        if self._complete:
            return
        self._unread = 0
        self._size += len(body)
        if self._streams:
            self._chunks.append(body)
            if self._size > STREAM_BYTES and not self._paused and self._transport is not None:
                self._paused = True
                self._transport.pause_reading()
            self._wake()
            return
        if self._size > (self._most if self._status < 300 else self._most_of_error):
            self._cut = True
            self._end(reusable=False)
            return
        self._chunks.append(body)

    def on_message_complete(self) -> None:
        """The answer is complete."""
        self._unread = 0
        if self._has_head and not self._complete:
            self._end(reusable=bool(self._parser.should_keep_alive()))

"""A TCP relay in front of a server, whose wire a test can cut, block or leave silent."""

import asyncio
from contextlib import asynccontextmanager
from urllib.parse import urlsplit


class Wire:
    """Forwards bytes both ways. While `silent`, they are swallowed but connections stay; `cut` closes them all."""

    def __init__(self, url, trust=None):
        self._target = urlsplit(url)
        self._trust = trust
        self._writers = set()
        self._handlers = set()
        self.silent = False
        self.refusing = False
        self.closed = False
        self.connections = 0
        self.url = ""

    async def accept(self, reader, writer):
        if self.closed:  # it connected after the server had stopped listening
            writer.transport.abort()
            return
        self.connections += 1
        self._handlers.add(asyncio.current_task())
        try:
            if not self.refusing:
                await self._connect(reader, writer)
        finally:
            writer.close()
            self._handlers.discard(asyncio.current_task())

    async def _connect(self, reader, writer):
        up_reader, up_writer = await asyncio.open_connection(self._target.hostname, self._target.port, ssl=self._trust)
        self._writers |= {writer, up_writer}
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pump(reader, up_writer))
                group.create_task(self._pump(up_reader, writer))
        except* OSError:
            pass

    async def _pump(self, reader, writer):
        try:
            while data := await reader.read(65536):
                if not self.silent:
                    writer.write(data)
                    await writer.drain()
        finally:
            writer.close()

    def cut(self):
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    async def close(self):
        """Cuts everything, also what is just being connected, so that nothing outlives the test's loop."""
        self.closed = True
        self.cut()
        handlers = list(self._handlers)
        for handler in handlers:
            handler.cancel()
        await asyncio.gather(*handlers, return_exceptions=True)
        self.cut()
        await asyncio.sleep(0)  # transports close in the next round


@asynccontextmanager
async def wire(url):
    """A wire to `url`, at `wire.url`."""
    async with _listening(Wire(url)) as line:
        yield line


@asynccontextmanager
async def tls_wire(url, *, trust, serving):
    """One that ends TLS by the context `serving`, whose certificate can be changed for new connections."""
    async with _listening(Wire(url, trust), serving) as line:
        yield line


@asynccontextmanager
async def _listening(line, serving=None):
    server = await asyncio.start_server(line.accept, "127.0.0.1", 0, ssl=serving)
    line.url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield line
    finally:
        server.close()
        await line.close()

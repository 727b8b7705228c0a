"""A server that sends exactly the bytes that a test wants, and a proxy that opens tunnels."""

import asyncio
import ssl
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from local.pki import Authority
from service.kube.client import Client
from service.kube.transport import Limits


@dataclass
class Wire:
    """`answers` are sent one after the other, whatever is asked; `asked` keeps the requests, `connections` counts."""

    url: str
    authority: Authority
    answers: list[Any] = field(default_factory=list)
    asked: list[bytes] = field(default_factory=list)
    connections: int = 0

    def client(self, **limits):
        return Client.from_inline(self.url, ca=self.authority.pem, token="t0", limits=Limits(**limits))

    async def handle(self, reader, writer):
        self.connections += 1
        with suppress(ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                self.asked.append(head + await reader.readexactly(_length(head)))
                closes = await self._answer(writer)
                if closes:
                    break
        writer.close()

    async def _answer(self, writer):
        """Sends the next answer; whether the connection ends with it."""
        answer = self.answers.pop(0)
        if callable(answer):
            answer = await answer(writer)
        writer.write(answer)
        await writer.drain()
        return b"close" in answer.partition(b"\r\n\r\n")[0].lower() or answer.startswith(b"HTTP/1.0")


def _length(head):
    found = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    return int(found[0].partition(b":")[2]) if found else 0


def ok(body=b"{}", *fields):
    lines = b"".join(field + b"\r\n" for field in (*fields, b"Content-Length: %d" % len(body)))
    return b"HTTP/1.1 200 OK\r\n" + lines + b"\r\n" + body


@asynccontextmanager
async def wired(tmp_path):
    authority = Authority.create("test CA")
    wire = Wire("", authority)
    server = await asyncio.start_server(wire.handle, "127.0.0.1", 0, ssl=_tls(authority, tmp_path))
    wire.url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server:
        yield wire


def _tls(authority, tmp_path):
    certificate, key = authority.serving("test").write(tmp_path / "tls")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    return context


@asynccontextmanager
async def proxied(answer=b"HTTP/1.1 200 Connection established\r\n\r\n"):
    """An HTTP proxy: its address, and the heads of the requests that it got."""
    heads: list[bytes] = []

    async def handle(reader, writer):
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(answer)
        if b" 200 " not in answer:
            writer.close()
            return
        host, _, port = heads[-1].split(b" ")[1].decode().rpartition(":")
        there = await asyncio.open_connection(host, int(port))
        async with asyncio.TaskGroup() as group:
            group.create_task(_pump(reader, there[1]))
            group.create_task(_pump(there[0], writer))

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    async with server:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}", heads


async def _pump(reader, writer):
    with suppress(ConnectionError):
        while data := await reader.read(64 * 1024):
            writer.write(data)
            await writer.drain()
    writer.close()

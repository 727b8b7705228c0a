"""Receivers that do not behave: each attempt ends in time, takes little memory, and says nothing that is secret."""

import asyncio
import resource
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from local import pki
from service.notify import sink as sinks
from service.notify.sink import Sink, SinkOptions, Unanswered

Behaviour = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
PATIENCE = 0.5
ENDS_WITHIN = 30.0
"""Without a limit it would take a minute or for ever, however quick the machine."""
MOST_MEGABYTES = 64
ENDLESS = b"x" * 65536


async def says_nothing(_reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(60)


async def drips(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    for letter in b"HTTP/1.1 202 Accepted\r\n" * 60:
        writer.write(bytes([letter]))
        await asyncio.sleep(0.05)


async def continues_for_ever(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await repeat(writer, b"HTTP/1.1 100 Continue\r\n\r\n")


async def sends_headers_for_ever(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 202 Accepted\r\n")
    await repeat(writer, b"X-Padding: " + b"y" * 4096 + b"\r\n")


async def hangs_up(_reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
    """The connection is closed after this."""


async def talks_nonsense(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"\0\xff not HTTP \r\n\r\n")


async def sends_a_body_for_ever(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 202 Accepted\r\nContent-Length: 1000000000000\r\n\r\n")
    await repeat(writer, ENDLESS)


async def fails_with_a_body_for_ever(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 500 Oops\r\nTransfer-Encoding: chunked\r\n\r\n")
    await repeat(writer, b"10000\r\n" + ENDLESS + b"\r\n")


async def repeat(writer: asyncio.StreamWriter, text: bytes) -> None:
    while True:
        writer.write(text)
        await writer.drain()


def resident() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 1e6


@asynccontextmanager
async def listening(behaviour: Behaviour, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """The address of a server that does this with every connection."""
    tasks = set[asyncio.Task[None]]()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(behaviour(reader, writer))
        tasks.add(task)
        await asyncio.wait({task})
        writer.transport.abort()

    server = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=tls)
    try:
        yield f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/?key=secret-of-the-path"
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def behaving(behaviour: Behaviour, folder: Path) -> AsyncIterator[Sink]:
    """A sink whose receiver does this after it has read the head of a request."""
    authority = pki.Authority.create("receiver")
    authority.serving("receiver").write(folder, "server")
    (folder / "ca.crt").write_bytes(authority.pem)
    (folder / "authorization").write_text("Bearer secret-of-the-sink")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(folder / "server.crt", folder / "server.key")

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await behaviour(reader, writer)

    async with listening(answer, tls) as url:
        sink = Sink(SinkOptions(url, folder))
        try:
            yield sink
        finally:
            await sink.close()


@pytest.fixture(autouse=True)
def short_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sinks, "TIMEOUT_SECONDS", PATIENCE)


@pytest.mark.parametrize(
    "behaviour", [says_nothing, drips, continues_for_ever, sends_headers_for_ever, hangs_up, talks_nonsense]
)
async def test_without_a_proper_answer_the_attempt_ends_and_is_repeated_later(
    behaviour: Behaviour, tmp_path: Path
) -> None:
    async with behaving(behaviour, tmp_path) as sink:
        began, before = time.monotonic(), resident()
        with pytest.raises(Unanswered) as error:
            await sink.post(b"{}", "application/json")
        assert time.monotonic() - began < ENDS_WITHIN
        assert resident() - before < MOST_MEGABYTES
    assert "secret" not in str(error.value)


async def test_a_receiver_that_never_shakes_hands_is_left() -> None:
    async with listening(says_nothing) as url:
        sink = Sink(SinkOptions(url))
        with pytest.raises(Unanswered, match="TimeoutError"):
            await sink.post(b"{}", "application/json")
        await sink.close()


async def test_a_body_without_an_end_is_not_read(tmp_path: Path) -> None:
    async with behaving(sends_a_body_for_ever, tmp_path) as sink:
        began, before = time.monotonic(), resident()
        await sink.post(b"{}", "application/json")
        assert time.monotonic() - began < ENDS_WITHIN
        assert resident() - before < MOST_MEGABYTES


async def test_nor_is_that_of_a_failure(tmp_path: Path) -> None:
    async with behaving(fails_with_a_body_for_ever, tmp_path) as sink:
        before = resident()
        with pytest.raises(Unanswered, match="HTTP 500"):
            await sink.post(b"{}", "application/json")
        assert resident() - before < MOST_MEGABYTES

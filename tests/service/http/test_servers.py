import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import httpx
import pytest
from fastapi import FastAPI, Request, Response

from service.http import servers
from service.http.servers import HEAD_LIMIT, QUEUED_MAX, BoundServer, bound
from tests.waiting import until


def greeting() -> FastAPI:
    app = FastAPI(openapi_url=None)

    async def hello(_request: object) -> Response:
        return Response("hello")

    app.add_route("/", hello)
    return app


async def test_a_free_port_is_taken_reported_and_served_until_stopped():
    endpoint = BoundServer("greeting", greeting(), bound("127.0.0.1", 0))
    serving = asyncio.create_task(endpoint.serve())
    await until(lambda: endpoint.listening)
    async with httpx.AsyncClient() as client:
        assert (await client.get(f"http://127.0.0.1:{endpoint.port}/")).text == "hello"
    endpoint.stop()
    assert not endpoint.listening
    await asyncio.wait_for(serving, 60)


async def test_a_server_that_drains_answers_and_ends_the_connections_that_it_has():
    endpoint = BoundServer("greeting", greeting(), bound("127.0.0.1", 0))
    serving = asyncio.create_task(endpoint.serve())
    await until(lambda: endpoint.listening)
    async with httpx.AsyncClient() as client:
        address = f"http://127.0.0.1:{endpoint.port}/"
        assert "connection" not in (await client.get(address)).headers
        endpoint.drain()

        async def ended() -> bool:
            answer = await client.get(address)
            return answer.text == "hello" and answer.headers.get("connection") == "close"

        await until(ended)
    endpoint.stop()
    await asyncio.wait_for(serving, 60)


@asynccontextmanager
async def connected(*, seconds: float = 0.0) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A connection to a server that counts the bytes of bodies, and takes so long for it."""
    app = FastAPI(openapi_url=None)

    async def count(request: Request) -> Response:
        size = len(await request.body())
        await asyncio.sleep(seconds)
        return Response(str(size))

    app.add_route("/", count, methods=["POST"])
    endpoint = BoundServer("counting", app, bound("127.0.0.1", 0))
    serving = asyncio.create_task(endpoint.serve())
    await until(lambda: endpoint.listening)
    reader, writer = await asyncio.open_connection("127.0.0.1", endpoint.port)
    try:
        yield reader, writer
    finally:
        writer.close()
        endpoint.stop()
        await asyncio.wait_for(serving, 60)


HEAD = b"POST / HTTP/1.1\r\nHost: x\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("start", "more"),
    [
        (HEAD + b"Endless: ", b"x"),
        (HEAD, b"Another: one\r\n"),
        (b"POST /", b"x"),
        (CHUNKED + b"1\r\nx\r\n0\r\n", b"Trailer: one\r\n"),
    ],
    ids=["one header", "many headers", "path", "trailers"],
)
async def test_what_never_comes_to_its_body_is_cut_off(start: bytes, more: bytes):
    sent, piece = 0, more * (4096 // len(more))
    async with connected() as (reader, writer):
        answer = asyncio.create_task(reader.readline())
        writer.write(start)
        with suppress(ConnectionError):
            while not answer.done() and sent < 100 * HEAD_LIMIT:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0)
                sent += len(piece)
            assert await asyncio.wait_for(answer, 60) == b"HTTP/1.1 400 Bad Request\r\n"
    assert sent < 100 * HEAD_LIMIT


async def test_bodies_larger_than_any_head_are_read_one_after_the_other():
    body = b"x" * (4 * HEAD_LIMIT)
    whole = HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body
    pieces = CHUNKED + b"%x\r\n" % len(body) + body + b"\r\n0\r\n\r\n"
    async with connected() as (reader, writer):
        for request in (whole, pieces, whole):
            writer.write(request)
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 60)
            assert head.startswith(b"HTTP/1.1 200")
            assert await reader.readexactly(len(str(len(body)))) == b"%d" % len(body)


EMPTY = HEAD + b"Content-Length: 0\r\n\r\n"
ANSWERED = b"HTTP/1.1 200"


async def test_some_requests_may_wait_for_the_answer_to_the_one_before():
    async with connected() as (reader, writer):
        writer.write(EMPTY * QUEUED_MAX)
        for _ in range(QUEUED_MAX):
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 60)
            assert head.startswith(ANSWERED)
            assert await reader.readexactly(1) == b"0"


async def test_a_client_that_sends_requests_without_waiting_for_answers_is_cut_off():
    received = b""
    async with connected() as (reader, writer):
        writer.write(EMPTY * 5000)
        with suppress(ConnectionError):
            while received.count(ANSWERED) <= QUEUED_MAX + 1:
                more = await asyncio.wait_for(reader.read(HEAD_LIMIT), 60)
                if not more:
                    break
                received += more
    assert received.count(ANSWERED) <= QUEUED_MAX + 1


PARTS = (b"POST", EMPTY[:-2], HEAD + b"Content-Length: 9\r\n\r\nx")


@pytest.mark.parametrize(
    ("before", "start"),
    [(b"", b""), *((before, part) for before in (b"", EMPTY) for part in PARTS)],
    ids=["nothing", "start", "head", "body", "start of a second", "head of a second", "body of a second"],
)
async def test_a_request_that_is_not_complete_in_time_is_cut_off(
    before: bytes, start: bytes, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(servers, "REQUEST_SECONDS", 0.1)
    async with connected() as (reader, writer):
        if before:
            writer.write(before)
            await asyncio.wait_for(reader.readuntil(b"\r\n\r\n0"), 60)
        writer.write(start)
        received = await asyncio.wait_for(reader.read(), 60)
    assert ANSWERED not in received


async def test_an_answer_may_take_longer_than_a_request_and_a_connection_is_kept(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(servers, "REQUEST_SECONDS", 0.1)
    async with connected(seconds=0.3) as (reader, writer):
        for _ in range(2):
            writer.write(EMPTY)
            assert (await asyncio.wait_for(reader.readuntil(b"\r\n\r\n0"), 60)).startswith(ANSWERED)
            await asyncio.sleep(0.2)


def test_a_port_that_is_taken_is_named():
    with bound("127.0.0.1", 0) as first:
        first.listen()
        port = first.getsockname()[1]
        with pytest.raises(OSError, match=f"cannot listen on port {port}"):
            bound("127.0.0.1", port)


def test_every_address_means_both_families():
    with bound("::", 0) as listener:
        listener.listen()
        port = listener.getsockname()[1]
        socket.create_connection(("127.0.0.1", port), timeout=5).close()


def test_one_address_is_only_that_one():
    with bound("127.0.0.1", 0) as listener:
        assert listener.family is socket.AF_INET


@pytest.mark.parametrize("protocol", [b"websocket", b"h2c"])
async def test_an_upgrade_is_answered_without_a_log_line_and_ends_the_connection(
    protocol: bytes, caplog: pytest.LogCaptureFixture
):
    async with connected() as (reader, writer):
        writer.write(HEAD + b"Connection: Upgrade\r\nUpgrade: " + protocol + b"\r\n\r\n")
        received = await asyncio.wait_for(reader.read(), 60)
    assert received.startswith(ANSWERED)
    assert caplog.records == []

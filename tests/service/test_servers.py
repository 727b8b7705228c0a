import asyncio
import socket

import httpx
import pytest
from fastapi import FastAPI, Response

from service.servers import Endpoint, bound
from tests.waiting import until


def greeting() -> FastAPI:
    app = FastAPI(openapi_url=None)

    async def hello(_request: object) -> Response:
        return Response("hello")

    app.add_route("/", hello)
    return app


async def test_a_free_port_is_taken_and_told_and_served_until_stopped():
    endpoint = Endpoint("greeting", greeting(), bound("127.0.0.1", 0))
    serving = asyncio.create_task(endpoint.serve())
    await until(lambda: endpoint.listening)
    async with httpx.AsyncClient() as client:
        assert (await client.get(f"http://127.0.0.1:{endpoint.port}/")).text == "hello"
    endpoint.stop()
    assert not endpoint.listening
    await asyncio.wait_for(serving, 10)


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

"""Connections and what arrives on them: reuse, proxies, and servers that speak HTTP in their own way or not at all."""

import asyncio
import socket
from asyncio.sslproto import SSLProtocol
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import pytest

from service.kube import connections
from service.kube.errors import Disconnected, Unavailable
from service.kube.resource import CONFIG_MAPS
from tests.service.kube.wire import ok, proxied, wired
from tests.waiting import until


@pytest.fixture
async def wire(tmp_path):
    async with wired(tmp_path) as made:
        yield made


async def get(client):
    return await client.get(CONFIG_MAPS, "x", namespace="a")


async def test_a_request_is_written_as_http_has_it(wire):
    wire.answers = [ok()]
    async with wire.client() as client:
        await client.create(CONFIG_MAPS, {"a": "ü"}, namespace="a")
    head, _, body = wire.asked[0].partition(b"\r\n\r\n")
    first, *fields = head.decode().split("\r\n")
    assert first == "POST /api/v1/namespaces/a/configmaps?fieldManager=5spot-controller HTTP/1.1"
    assert dict(line.split(": ", 1) for line in fields) == {
        "Host": wire.url.removeprefix("https://"),
        "Accept-Encoding": "identity",
        "User-Agent": "5spot",
        "Accept": "application/json",
        "Content-Type": "application/json",
        "Authorization": "Bearer t0",
        "Content-Length": "10",
    }
    assert body == '{"a":"ü"}'.encode()


async def test_a_server_behind_another_one_is_asked_under_its_path(wire):
    wire.answers = [ok()]
    async with wire.client() as client:
        client.transport.endpoint = replace(client.transport.endpoint, server=f"{wire.url}/k8s/clusters/c-1")
        await get(client)
    assert wire.asked[0].startswith(b"GET /k8s/clusters/c-1/api/v1/namespaces/a/configmaps/x HTTP/1.1\r\n")


async def test_a_token_of_two_lines_is_not_sent(wire):
    async with wire.client() as client:
        client.transport.credentials.token = "a\r\nX-Forwarded-User: admin"
        with pytest.raises(ValueError, match="one line"):
            await get(client)
    assert wire.asked == []


async def test_requests_one_after_the_other_share_a_connection(wire):
    wire.answers = [ok(b'{"n":1}'), ok(b'{"n":2}'), ok(b'{"n":3}')]
    async with wire.client() as client:
        assert [await get(client) for _ in range(3)] == [{"n": 1}, {"n": 2}, {"n": 3}]
    assert wire.connections == 1


async def test_requests_at_the_same_time_share_as_many_as_are_allowed(wire):
    wire.answers = [ok()] * 6
    async with wire.client(calls=2) as client:
        await asyncio.gather(*(get(client) for _ in range(6)))
    assert wire.connections == 2


async def test_a_connection_that_the_server_will_close_is_not_used_again(wire):
    wire.answers = [ok(b"{}", b"Connection: close"), ok()]
    async with wire.client() as client:
        await get(client)
        await get(client)
    assert wire.connections == 2


async def test_the_connection_of_a_call_that_was_given_up_is_not_used_again(wire):
    asked, given_up = asyncio.Event(), asyncio.Event()

    async def late(_writer):
        asked.set()
        await given_up.wait()
        return ok(b'{"for":"another"}')

    wire.answers = [late, ok(b'{"for":"us"}')]
    async with wire.client(calls=1) as client:
        call = asyncio.create_task(get(client))
        await asked.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        given_up.set()
        assert await get(client) == {"for": "us"}
    assert wire.connections == 2


async def test_a_call_that_is_given_up_while_it_waits_leaves_its_place_to_the_next(wire):
    asked = asyncio.Event()

    async def later(_writer):
        await asked.wait()
        return ok()

    wire.answers = [later, ok()]
    async with wire.client(calls=1) as client:
        calls = [asyncio.create_task(get(client)) for _ in range(3)]
        await until(lambda: client.transport._pools and client.transport._pools["call"].waiting == 2)
        calls[1].cancel()
        asked.set()
        done = await asyncio.gather(*calls, return_exceptions=True)
    assert isinstance(done[1], asyncio.CancelledError)
    assert [done[0], done[2]] == [{}, {}]


async def test_a_connection_that_is_idle_is_closed(wire, monkeypatch):
    monkeypatch.setattr(connections, "KEEP_ALIVE_SECONDS", 0.05)
    wire.answers = [ok(), ok()]
    async with wire.client() as client:
        await get(client)
        await until(lambda: not client.transport._pools["call"].idle)
        await get(client)
    assert wire.connections == 2


async def test_a_body_in_chunks_is_one_body(wire):
    wire.answers = [
        b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n{"a"\r\n5\r\n:"b"}\r\n0\r\nX-Late: 1\r\n\r\n',
        ok(),
    ]
    async with wire.client() as client:
        assert await get(client) == {"a": "b"}
        await get(client)
    assert wire.connections == 1


async def test_a_body_without_a_length_ends_with_its_connection(wire):
    wire.answers = [b"HTTP/1.0 503 Service Unavailable\r\nRetry-After: 7\r\n\r\n<html>down</html>"] * 3
    async with wire.client() as client:
        with pytest.raises(Unavailable, match="503") as caught:
            await get(client)
    assert (caught.value.status, caught.value.retry_after) == (503, 7.0)


async def test_a_body_that_ends_too_early_is_no_answer(wire):
    wire.answers = [b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 100\r\n\r\n{}"] * 2
    async with wire.client() as client:
        with pytest.raises(Disconnected, match="closed the connection"):
            await get(client)
    assert wire.connections == 2


async def test_an_answer_that_only_informs_is_followed_by_the_real_one(wire):
    wire.answers = [b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + ok(b'{"a":1}')]
    async with wire.client() as client:
        assert await get(client) == {"a": 1}


@pytest.mark.parametrize(
    "sent",
    [
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n",
    ],
    ids=["another protocol", "two lengths", "two framings", "an upgrade"],
)
async def test_what_is_not_http_is_no_answer(wire, sent):
    wire.answers = [sent]
    async with wire.client(call_seconds=5) as client:
        with pytest.raises(Unavailable, match="not HTTP"):
            await get(client)


@pytest.mark.parametrize("head", [b"X: " + b"x" * 100_000, b"\r\n".join([b"X: 1"] * 20_000)])
async def test_an_endless_head_is_not_taken_in(wire, head):
    wire.answers = [b"HTTP/1.1 200 OK\r\n" + head + b"\r\nContent-Length: 2\r\n\r\n{}"]
    async with wire.client() as client:
        with pytest.raises(Unavailable, match="head of the answer is too long"):
            await get(client)


async def test_an_answer_without_a_request_closes_the_connection_and_answers_no_other_request(wire):
    wire.answers = [ok(b'{"a":1}') + ok(b'{"forged":true}'), ok(b'{"a":2}')]
    async with wire.client() as client:
        assert await get(client) == {"a": 1}
        assert await get(client) == {"a": 2}
    assert wire.connections == 2


async def test_a_watch_that_is_read_slowly_holds_up_its_server_and_misses_nothing(wire):
    sent = 0
    event = b'{"type":"ADDED","object":{"metadata":{"name":"' + b"x" * 60_000 + b'"}}}\n'

    async def stream(writer):
        nonlocal sent
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(400):
            writer.write(b"%x\r\n%b\r\n" % (len(event), event))
            await writer.drain()
            sent += 1
        return b"0\r\n\r\n"

    wire.answers = [stream]
    async with wire.client() as client, aclosing(client.watch(CONFIG_MAPS, "1")) as events:
        await anext(events)
        await asyncio.sleep(0.3)
        held_up = sent
        rest = [event async for event in events]
    assert held_up < 350  # the rest did not fit into the buffers on the way
    assert len(rest) == 399


async def test_a_watch_that_the_server_breaks_off_says_so(wire):
    wire.answers = [b'HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{"typ\r\n']
    async with wire.client() as client, aclosing(client.watch(CONFIG_MAPS, "1")) as events:
        with pytest.raises(Disconnected):
            await anext(events)


async def test_if_one_address_of_a_server_does_not_answer_the_next_one_is_asked(wire, monkeypatch):
    port = int(wire.url.rpartition(":")[2])
    nowhere, refuses, there = ("192.0.2.1", port), ("127.0.0.1", 1), ("127.0.0.1", port)
    loop = asyncio.get_running_loop()

    async def lookup(*_args, **_options):
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", where) for where in (nowhere, refuses, there)]

    monkeypatch.setattr(connections, "NEXT_ADDRESS_SECONDS", 0.05)
    monkeypatch.setattr(loop, "getaddrinfo", lookup)
    wire.answers = [ok()]
    async with wire.client() as client:
        await get(client)


async def test_a_name_that_is_not_known_is_unavailable(wire):
    async with wire.client() as client:
        client.transport.endpoint = replace(client.transport.endpoint, server="https://there.invalid:1")
        with pytest.raises(Unavailable, match="gaierror"):
            await get(client)


# Proxies


async def test_a_proxy_is_asked_for_a_tunnel_and_sees_nothing_of_what_passes(wire):
    wire.answers = [ok(b'{"a":1}'), ok(b'{"a":2}')]
    async with proxied() as (address, heads), wire.client() as client:
        client.transport.endpoint = replace(client.transport.endpoint, proxy=f"http://us%40er:pa%3Ass@{address}")
        assert await get(client) == {"a": 1}
        assert await get(client) == {"a": 2}
        await client.close()
    server = wire.url.removeprefix("https://")
    assert heads == [
        f"CONNECT {server} HTTP/1.1\r\nHost: {server}\r\nProxy-Authorization: Basic dXNAZXI6cGE6c3M=\r\n\r\n".encode()
    ]


async def test_a_proxy_that_refuses_is_named(wire):
    async with proxied(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n") as (address, _), wire.client() as client:
        client.transport.endpoint = replace(client.transport.endpoint, proxy=f"http://{address}")
        with pytest.raises(Unavailable, match=r"the proxy refuses: .*407"):
            await get(client)
    assert wire.asked == []


async def test_a_proxy_that_is_not_there_is_unavailable(wire):
    async with wire.client() as client:
        client.transport.endpoint = replace(client.transport.endpoint, proxy="http://127.0.0.1:1")
        with pytest.raises(Unavailable, match="ConnectionRefusedError"):
            await get(client)


async def test_a_request_that_is_cancelled_just_when_its_connection_is_open_leaves_none_behind():
    class Opened:
        aborted = False

        def abort(self):
            self.aborted = True

    class AtOnce:
        async def dial(self):
            return opened

    opened: Any = Opened()
    dialer: Any = AtOnce()
    pool = connections.Connections(dialer, 1)
    taking = asyncio.create_task(pool.take())
    await asyncio.sleep(0)  # it dials
    await asyncio.sleep(0)  # the connection is open, but the request does not know yet
    taking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await taking
    assert opened.aborted
    opened.aborted = False
    assert await asyncio.wait_for(pool.take(), 5) is opened  # its place is free again


async def test_a_request_that_is_cancelled_just_when_tls_stands_closes_its_socket_at_once(wire, monkeypatch):
    loop = asyncio.get_running_loop()
    sockets: list[Any] = []
    completed = SSLProtocol._on_handshake_complete

    def cancelled_at_once(self, error):
        sockets.append(self._transport)
        loop.call_soon(request.cancel)
        completed(self, error)

    async with wire.client() as client:
        request = asyncio.create_task(get(client))
        monkeypatch.setattr(SSLProtocol, "_on_handshake_complete", cancelled_at_once)
        await asyncio.wait({request})
        assert request.cancelled()
        assert sockets[0].is_closing(), "it does not wait for the server's farewell"

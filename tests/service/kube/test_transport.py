"""Requests on the wire, and what becomes of servers that misbehave."""

import asyncio
import os
import socket
import time
from contextlib import aclosing
from dataclasses import replace
from email.utils import formatdate

import pytest
from aiohttp import web

from local.pki import Authority
from service.kube.credentials import Token, TokenFile
from service.kube.errors import Disconnected, Invalid, Rejected, TooManyRequests, Unauthorized, Unavailable, Untrusted
from service.kube.resource import CONFIG_MAPS
from service.kube.transport import Call, Limits
from service.sharding.leases import LeaseTimes
from tests.service.kube.answering import answering, status
from tests.waiting import until


@pytest.fixture
async def server(tmp_path):
    async with answering(tmp_path) as server:
        yield server


def always(response):
    async def answer(_request):
        return response() if callable(response) else response

    return answer


async def get(client):
    return await client.get(CONFIG_MAPS, "x", namespace="a")


async def test_an_object_comes_back_as_a_plain_dict(server):
    server.answer = always(lambda: web.json_response({"kind": "ConfigMap"}))
    async with server.client() as client:
        assert await get(client) == {"kind": "ConfigMap"}
    request = server.seen[0]
    assert request.headers["Authorization"] == "Bearer t0"
    assert request.path == "/api/v1/namespaces/a/configmaps/x"


async def test_warnings_of_webhooks_are_heard(server):
    def answer():
        response = web.json_response({"kind": "ConfigMap"})
        for text in ('299 - "spec.until: a \\"far\\" end"', '299 - "one", 299 - "two"', "nothing"):
            response.headers.add("Warning", text)
        return response

    server.answer = always(answer)
    heard: list[str] = []
    async with server.client() as client:
        await client.create(CONFIG_MAPS, {}, namespace="a", on_warning=heard.append)
        await client.create(CONFIG_MAPS, {}, namespace="a")
    assert heard == ['spec.until: a "far" end', "one", "two"]


async def test_a_server_without_a_trusted_certificate_gets_no_request(server):
    async with server.client(ca=Authority.create("another CA").pem) as client:
        with pytest.raises(Untrusted, match="cannot be verified"):
            await get(client)
    assert server.seen == []


async def test_a_server_that_is_not_there_is_unavailable(server):
    client = server.client()
    client.transport.endpoint = type(client.transport.endpoint)("https://127.0.0.1:1", client.transport.endpoint.tls)
    async with client:
        with pytest.raises(Unavailable, match="get /api/v1/namespaces/a/configmaps/x"):
            await get(client)


async def test_a_server_that_never_answers_is_given_up_on(server):
    server.answer = lambda _request: asyncio.Event().wait()
    async with server.client(call_seconds=0.1) as client:
        with pytest.raises(Unavailable, match="no answer in time"):
            await get(client)


async def test_an_endless_answer_is_cut_off(server):
    server.answer = always(lambda: web.Response(body=b"x" * 2000))
    async with server.client(body_bytes=1000) as client:
        with pytest.raises(Unavailable, match="larger than 1000 bytes"):
            await get(client)


async def test_an_answer_of_countless_small_values_is_not_taken_in(server):
    server.answer = always(lambda: web.Response(body=b'{"items":[' + b"[]," * 1000 + b"[]]}"))
    async with server.client(values=1000) as client:
        assert len((await get(client))["items"]) == 1001
    async with server.client(values=999) as client:
        with pytest.raises(Unavailable, match="more than 999 values"):
            await get(client)


async def test_nor_is_an_event_of_them(server):
    server.answer = always(lambda: web.Response(body=b'{"type":"ADDED","object":[' + b"[]," * 1000 + b"[]]}\n"))
    async with server.client(values=999) as client, aclosing(client.watch(CONFIG_MAPS, "1")) as events:
        found = await anext(events)
        assert (found.type, found.object) == ("ADDED", {"metadata": {}})
        assert found.too_large


async def test_a_redirect_is_not_followed(server):
    server.answer = always(lambda: web.Response(status=307, headers={"Location": "https://elsewhere.invalid/"}))
    async with server.client() as client:
        with pytest.raises(Unavailable, match="307"):
            await get(client)


async def test_a_retry_after_header_is_kept_in_the_error(server):
    server.answer = always(lambda: web.Response(status=429, headers={"Retry-After": "3"}))
    async with server.client() as client:
        with pytest.raises(TooManyRequests) as caught:
            await get(client)
    assert caught.value.retry_after == 3.0


async def test_an_explanation_that_comes_in_pieces_is_read_whole(server):
    body = b'{"kind":"Status","code":422,"reason":"Invalid","message":"all of it","details":{"causes":[{"field":"a"}]}}'

    async def answer(request):
        response = web.StreamResponse(status=422)
        await response.prepare(request)
        for start in range(0, len(body), 20):
            await response.write(body[start : start + 20])
            await asyncio.sleep(0.001)
        return response

    server.answer = answer
    async with server.client() as client:
        with pytest.raises(Invalid, match="all of it") as caught:
            await get(client)
    assert caught.value.causes[0].field == "a"


async def test_an_endless_explanation_is_cut_off(server):
    server.answer = always(lambda: web.Response(status=500, body=b"x" * 1_000_000))
    async with server.client() as client:
        with pytest.raises(Unavailable, match="Internal Server Error"):
            await get(client)


async def test_an_error_never_shows_the_token(server):
    server.answer = always(lambda: status(400, "BadRequest", "nope"))
    async with server.client(token="very-secret") as client:
        with pytest.raises(Rejected) as caught:
            await get(client)
    assert "very-secret" not in repr(caught.value) + str(caught.value)


def accepting(token):
    async def answer(request):
        if request.headers.get("Authorization") != f"Bearer {token}":
            return status(401, "Unauthorized", "Unauthorized")
        return web.json_response({"ok": True})

    return answer


async def test_a_rotated_token_file_is_read_again_after_a_401_and_the_call_repeated_once(server, tmp_path):
    file = tmp_path / "token"
    file.write_text("old\n")
    source = TokenFile(file)
    stamp = file.stat()
    file.write_text("new\n")
    # As if the clock had not moved between the two: only the 401 shows it.
    os.utime(file, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    server.answer = accepting("new")
    async with server.client() as client:
        client.transport.credentials = source
        assert await get(client) == {"ok": True}
    assert len(server.seen) == 2


async def test_a_rotated_token_file_is_noticed_without_a_401(server, tmp_path):
    file = tmp_path / "token"
    file.write_text("old")
    source = TokenFile(file)
    stamp = file.stat()
    file.write_text("new")
    # Many file systems have a time resolution of some milliseconds.
    os.utime(file, ns=(stamp.st_atime_ns, stamp.st_mtime_ns + 10_000_000))
    server.answer = accepting("new")
    async with server.client() as client:
        client.transport.credentials = source
        await get(client)
    assert len(server.seen) == 1


async def test_a_token_that_stays_refused_is_reported_after_one_try(server, tmp_path):
    file = tmp_path / "token"
    file.write_text("old")
    server.answer = accepting("new")
    async with server.client() as client:
        client.transport.credentials = TokenFile(file)
        with pytest.raises(Unauthorized):
            await get(client)
    assert len(server.seen) == 1


async def test_many_calls_refused_at_once_read_the_new_token_once(server):
    reads = 0

    class Source:
        token = "old"

        def authorization(self):
            return f"Bearer {self.token}"

        async def refresh(self):
            nonlocal reads
            reads += 1
            await asyncio.sleep(0)
            self.token = "new"
            return True

    server.answer = accepting("new")
    async with server.client() as client:
        client.transport.credentials = Source()
        await asyncio.gather(*(get(client) for _ in range(10)))
    assert reads == 1


async def test_many_calls_refused_at_once_all_go_on_with_a_new_client_certificate(server):
    class Certificates(Token):
        """Which are part of the endpoint: no header distinguishes the new ones from the old."""

        async def refresh(self):
            if rotated.is_set():
                return False  # nothing newer
            await until(lambda: len(refused) == 3)
            rotated.set()
            await client.transport.replace(replace(client.transport.endpoint), self)
            return True

    async def answer(_request):
        return web.json_response({"ok": True}) if rotated.is_set() else status(401, "Unauthorized", "Unauthorized")

    rotated, server.answer = asyncio.Event(), answer
    refused: list[Call] = []
    async with server.client() as client:
        client.observe_calls(refused.append)
        client.transport.credentials = Certificates()
        assert await asyncio.gather(*(get(client) for _ in range(3))) == [{"ok": True}] * 3


async def test_a_guard_stops_writes_before_they_leave_and_lets_reads_pass(server):
    class LeaseLost(Exception):
        pass

    def guard():
        raise LeaseLost

    server.answer = always(lambda: web.json_response({"ok": True}))
    async with server.client() as client:
        client.guard_writes(guard)
        await get(client)
        for write in (
            client.create(CONFIG_MAPS, {}, namespace="a"),
            client.patch(CONFIG_MAPS, "x", {}, namespace="a"),
            client.replace(CONFIG_MAPS, "x", {}, namespace="a"),
            client.delete(CONFIG_MAPS, "x", namespace="a"),
            client.create_subresource(CONFIG_MAPS, "x", "y", {}, namespace="a"),
        ):
            with pytest.raises(LeaseLost):
                await write
    assert [request.method for request in server.seen] == ["GET"]


async def test_a_connection_that_the_server_closed_is_opened_again_once(server):
    answers = 0

    async def answer(request):
        nonlocal answers
        answers += 1
        if answers == 1:
            request.transport.abort()
        return web.json_response({"ok": True})

    server.answer = answer
    async with server.client() as client:
        assert await client.create(CONFIG_MAPS, {}, namespace="a") == {"ok": True}
    assert answers == 2


async def test_a_call_that_waits_for_a_connection_when_all_are_closed_is_not_cancelled_but_made_again(server):
    async def answer(_request):
        await swapped.wait()
        return web.json_response({"ok": True})

    swapped, server.answer = asyncio.Event(), answer
    async with server.client(calls=1) as client:
        under_way = asyncio.create_task(get(client))
        await until(lambda: server.seen)
        waiting = [asyncio.create_task(get(client)) for _ in range(3)]
        await asyncio.sleep(0.05)
        await client.transport.replace(replace(client.transport.endpoint), Token("t1"))
        swapped.set()
        assert await asyncio.gather(*waiting) == [{"ok": True}] * 3
        await asyncio.wait([under_way])


async def test_a_watch_whose_server_is_looked_up_when_all_is_closed_is_not_cancelled_either(server, monkeypatch):
    async def for_ever(*_args, **_options):
        asked.set()
        await asyncio.Event().wait()

    async def follow():
        async for _ in client.watch(CONFIG_MAPS, "1"):
            pass

    asked = asyncio.Event()
    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", for_ever)
    async with server.client() as client:
        client.transport.endpoint = replace(client.transport.endpoint, server="https://somewhere.invalid:1")
        watch = asyncio.create_task(follow())
        await asked.wait()
        await client.close()
        with pytest.raises(Disconnected):
            await watch


async def test_all_connections_are_closed_even_if_the_closing_task_is_cancelled(server):
    server.answer = always(lambda: web.Response(body=b'{"type":"ADDED","object":{}}\n'))
    async with server.client() as client:
        await get(client)
        async with aclosing(client.watch(CONFIG_MAPS, "1", idle_seconds=5)) as events:
            assert (await anext(events)).object == {}
        pools = list(client.transport._pools.values())
        connections = [connection for pool in pools for connection in pool._all]
        closing = asyncio.create_task(client.close())
        await asyncio.sleep(0)  # it has begun
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        assert len(connections) == 2
        await until(lambda: not any(connection.reusable or connection._transport for connection in connections))


async def test_a_call_that_outlives_its_client_opens_no_connection(server):
    server.answer = lambda _request: asyncio.Event().wait()
    async with server.client(calls=1) as client:
        under_way = asyncio.create_task(get(client))
        await until(lambda: server.seen)
        waiting = asyncio.create_task(get(client))
        await until(lambda: client.transport._pools["call"].waiting)
    with pytest.raises(Unavailable):
        await under_way
    with pytest.raises(Disconnected, match="the client was closed"):
        await waiting
    with pytest.raises(Disconnected, match="the client was closed"):
        await get(client)
    assert client.transport._pools == {}


async def test_a_call_that_is_cancelled_is_cancelled(server):
    server.answer = lambda _request: asyncio.Event().wait()
    async with server.client() as client:
        call = asyncio.create_task(get(client))
        await until(lambda: server.seen)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call


async def test_a_server_that_always_closes_is_disconnected(server):
    async def answer(request):
        request.transport.abort()
        return web.Response()

    server.answer = answer
    async with server.client() as client:
        with pytest.raises(Disconnected, match="closed the connection"):
            await client.create(CONFIG_MAPS, {}, namespace="a")
    assert len(server.seen) == 2


async def test_a_call_given_up_by_its_caller_says_nothing_about_the_server(server):
    calls: list[Call] = []
    server.answer = lambda _request: asyncio.Event().wait()
    async with server.client() as client:
        client.observe_calls(calls.append)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await get(client)
    assert calls == []


async def test_every_call_is_observed_with_its_verb_and_outcome(server):
    calls: list[Call] = []
    server.answer = always(lambda: status(404, "NotFound", "gone", name="x"))
    async with server.client() as client:
        client.observe_calls(calls.append)
        with pytest.raises(Exception, match="gone"):
            await client.delete(CONFIG_MAPS, "x", namespace="a")
    assert [(c.verb, c.resource, c.status) for c in calls] == [("delete", "configmaps", 404)]
    assert calls[0].seconds > 0


async def test_skew_against_the_servers_clock_is_measured(server):
    an_hour_ahead = formatdate(time.time() + 3600, usegmt=True)
    server.answer = always(lambda: web.json_response({}, headers={"Date": an_hour_ahead}))
    async with server.client() as client:
        await get(client)
        assert client.skew_seconds == pytest.approx(-3600, abs=2)


async def test_many_watches_do_not_keep_a_call_waiting(server):
    async def answer(request):
        if "watch" in request.query:
            response = web.StreamResponse()
            await response.prepare(request)
            await asyncio.Event().wait()
        return web.json_response({"ok": True})

    server.answer = answer
    async with server.client(calls=1, call_seconds=5) as client:

        async def follow():
            async for _ in client.watch(CONFIG_MAPS, "1"):
                pass

        watches = [asyncio.create_task(follow()) for _ in range(5)]
        await until(lambda: len(server.seen) == 5)
        assert await get(client) == {"ok": True}
        for watch in watches:
            watch.cancel()
        await asyncio.gather(*watches, return_exceptions=True)


async def test_a_silent_watch_ends(server):
    async def answer(request):
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"5"}}}\n')
        await asyncio.Event().wait()

    server.answer = answer
    async with server.client() as client, aclosing(client.watch(CONFIG_MAPS, "1", idle_seconds=0.1)) as events:
        assert (await anext(events)).type == "BOOKMARK"
        with pytest.raises(Unavailable, match="no answer in time"):
            await anext(events)


async def test_a_watch_does_not_wait_for_a_proxy_for_ever(server):
    async def say_nothing(reader, writer):
        asked.append(await reader.readline())
        await reader.read()  # until the other side gives up
        writer.close()

    asked: list[bytes] = []
    proxy = await asyncio.start_server(say_nothing, "127.0.0.1", 0)
    async with proxy, server.client(call_seconds=0.2) as client:
        address = f"http://127.0.0.1:{proxy.sockets[0].getsockname()[1]}"
        client.transport.endpoint = replace(client.transport.endpoint, proxy=address)
        async with aclosing(client.watch(CONFIG_MAPS, "1")) as events:
            with pytest.raises(Unavailable, match="no answer in time"):
                await asyncio.wait_for(anext(events), 30)
    assert asked[0].startswith(b"CONNECT ")


class LostError(Exception):
    pass


async def test_a_write_is_refused_if_the_lease_is_lost_while_it_waits_for_a_connection(server):
    server.answer = always(lambda: web.json_response({}))
    asked = []

    def guard():
        asked.append(True)
        if len(asked) == 2:
            raise LostError

    async with server.client() as client:
        client.guard_writes(guard)
        with pytest.raises(LostError):
            await client.create(CONFIG_MAPS, {}, namespace="a")
        assert server.seen == []
        await client.create(CONFIG_MAPS, {}, namespace="a")
    assert len(server.seen) == 1


async def test_reading_needs_no_lease(server):
    server.answer = always(lambda: web.json_response({}))

    def guard():
        raise LostError

    async with server.client() as client:
        client.guard_writes(guard)
        await get(client)


@pytest.mark.parametrize("times", [LeaseTimes(), LeaseTimes(duration=6.0, deadline=4.5, retry=0.5)])
async def test_the_kernel_does_not_deliver_a_write_that_another_replica_may_have_overtaken(server, times):
    server.answer = always(lambda: web.json_response({}))
    async with server.client(unacknowledged_seconds=times.in_flight) as client:
        await get(client)
        (connection,) = client.transport._pools["call"].idle
        made = connection._transport.get_extra_info("socket")
        patience = made.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)
    assert 0 < patience < 1000 * (times.duration - times.deadline)


def test_usually_that_is_what_the_usual_leases_need():
    assert Limits().unacknowledged_seconds == LeaseTimes().in_flight

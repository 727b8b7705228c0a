"""Requests that the server stumbles over are made again, a few times and no more."""

import ssl

import pytest

from service.kube import transport
from service.kube.credentials import Endpoint, Token
from service.kube.errors import Blocked, Invalid, TooManyRequests, Unavailable
from service.kube.transport import Limits, Request, Transport

WRITE = Request("create", "POST", "/api/v1/namespaces/a/secrets", "secrets", b"{}")
EVICTION = Request("create_eviction", "POST", "/api/v1/namespaces/a/pods/b/eviction", "pods", b"{}")


@pytest.fixture
def answering(monkeypatch):
    """A transport whose requests end as listed, one after the other, and how many were made."""
    monkeypatch.setattr(transport, "RETRY_PAUSES", (0.001, 0.001))

    def make(*outcomes):
        made = Transport(Endpoint("https://127.0.0.1:1", ssl.create_default_context()), Token("x"), Limits())
        left = list(outcomes)

        async def once(_request, _header):
            outcome = left.pop(0)
            if isinstance(outcome, Exception):
                raise outcome
            return outcome

        monkeypatch.setattr(made, "_call_once", once)
        return made, left

    return make


def stumble(status=500):
    return Unavailable("etcdserver: leader changed", status=status)


@pytest.mark.parametrize("status", [500, 502, 503, 504])
async def test_an_error_of_the_server_is_asked_again(answering, status):
    line, left = answering(stumble(status), stumble(status), b"stored")
    assert await line.call(WRITE) == b"stored"
    assert left == []


async def test_the_third_failure_is_the_answer(answering):
    line, left = answering(stumble(), stumble(), stumble(), b"never asked for")
    with pytest.raises(Unavailable):
        await line.call(WRITE)
    assert left == [b"never asked for"]


@pytest.mark.parametrize(
    "error",
    [
        Unavailable("no answer in time"),
        TooManyRequests("slow down", status=429, retry_after=1.0),
        Blocked("a budget", status=429),
        Invalid("no such field", status=422),
    ],
)
async def test_what_would_make_things_worse_or_cannot_help_is_not_asked_again(answering, error):
    line, left = answering(error, b"never asked for")
    with pytest.raises(type(error)):
        await line.call(WRITE)
    assert left == [b"never asked for"]


async def test_a_failure_that_took_long_is_not_repeated_as_the_next_would_take_as_long(answering, monkeypatch):
    monkeypatch.setattr(transport, "QUICK_FAILURE_SECONDS", -1.0)
    line, left = answering(stumble(), b"never asked for")
    with pytest.raises(Unavailable):
        await line.call(WRITE)
    assert left == [b"never asked for"]


async def test_evictions_have_a_rhythm_of_their_own(answering):
    line, left = answering(stumble(), b"never asked for")
    with pytest.raises(Unavailable):
        await line.call(EVICTION)
    assert left == [b"never asked for"]

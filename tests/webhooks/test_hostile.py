"""Whatever three megabytes hold, a review costs little: the event loop that judges it also renews the leases."""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench import _hostile as hostile
from crds import names
from tests.webhooks.reviews import UID, in_service, machine, review
from tests.webhooks.test_routes import Tally, call
from webhooks.complexity import QUOTES_MAX, VALUES_MAX, most_values, too_complex
from webhooks.review import BODY_LIMIT
from webhooks.routes import create_app
from webhooks.throttle import LIGHT_VALUES, READERS, BusyError, Throttle, is_light
from webhooks.verdict import Gate

MOST_UNITS = 5.0
"""What a review may cost, in units of `unit`: about 50 ms where that takes 10."""


def unit() -> None:
    count = 0
    for number in range(150_000):
        count += number


def cost(work: Callable[..., object]) -> float:
    """Processor time of this thread: what else the machine does is not in it."""
    started = time.thread_time()
    work()
    return time.thread_time() - started


class Door:
    """The validating webhook on a loop of its own."""

    def __init__(self) -> None:
        self._app = create_app(Gate(), Tally())

    async def post(self, body: bytes, path: str = names.VALIDATE_PATH) -> tuple[int, dict[str, Any]]:
        async def receive() -> dict[str, object]:
            return {"type": "http.request", "body": body, "more_body": False}

        status, answer = await call(self._app, receive, path)
        return status, orjson.loads(answer)["response"]


def machines(bodies: Callable[[], Iterator[tuple[str, bytes]]]) -> Callable[[], Iterator[tuple[str, str, bytes]]]:
    return lambda: ((name, names.VALIDATE_PATH, body) for name, body in bodies())


REVIEWS = {
    "created": machines(hostile.creations),
    "updated": machines(hostile.updates),
    "of another kind": hostile.other_kinds,
}


@pytest.mark.parametrize("reviews", REVIEWS.values(), ids=REVIEWS)
def test_no_review_costs_more_than_some_milliseconds_of_the_loop(reviews: Callable[[], Any]):
    usual = min(cost(unit) for _ in range(5))
    slow = {}
    with asyncio.Runner() as runner:
        for name, path, body in reviews():
            spent = judging(runner, path, body) / usual
            for _ in range(8):  # a collection of garbage, or a neighbour on the machine, may have come in between
                if spent > MOST_UNITS:
                    spent = min(spent, judging(runner, path, body) / cost(unit))
            if spent > MOST_UNITS:
                slow[name] = round(spent, 1)
    assert not slow


def judging(runner: asyncio.Runner, path: str, body: bytes) -> float:
    """What a review costs at a door of its own, which does not rest from another one."""
    door = Door()
    return cost(lambda: runner.run(door.post(body, path)))


def filled(values: int, text: str = "") -> dict[str, Any]:
    return machine(
        bootstrapSpec={
            "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta1",
            "kind": "K0sWorkerConfig",
            "spec": {"values": [1] * values, "text": text},
        }
    )


async def test_too_many_values_are_refused_under_the_uid_with_what_to_do():
    status, response = await Door().post(orjson.dumps(review(filled(VALUES_MAX))))
    assert status == 200
    assert (response["uid"], response["allowed"]) == (UID, False)
    assert response["status"]["code"] == 413
    assert f"at most {VALUES_MAX} values" in response["status"]["message"]


@pytest.mark.parametrize(
    "text",
    ["[1,2]," * VALUES_MAX, '{"a": "b"},' * (QUOTES_MAX // 5), "\\" * VALUES_MAX + "," * VALUES_MAX + '"'],
    ids=["commas", "quotes", "backslashes"],
)
async def test_a_text_is_one_value_whatever_it_looks_like(text: str):
    status, response = await Door().post(orjson.dumps(review(filled(100, text))))
    assert status == 200
    assert response["allowed"] is True


@given(
    st.recursive(
        st.text() | st.integers(0, 9) | st.none(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_values_are_counted_as_they_are_read(value: Any):
    filler = [1] * (VALUES_MAX - 500)
    assert too_complex(orjson.dumps([value, filler, filler]))
    assert too_complex(orjson.dumps([value, filler])) == (counted([value, filler]) > VALUES_MAX)


def counted(value: Any) -> int:
    """Commas and brackets, which is what values begin with."""
    if isinstance(value, dict | list):
        inner = value.values() if isinstance(value, dict) else value
        return 1 + max(len(value) - 1, 0) + sum(counted(one) for one in inner)
    return 0


def test_an_ordinary_review_is_light_and_a_heavy_one_is_recognised_by_its_bytes():
    assert is_light(orjson.dumps(review(machine(), old=machine())))
    stored = in_service(machine())
    assert is_light(orjson.dumps(review(stored | {"spec": machine(priority=7)["spec"]}, old=stored)))
    assert not is_light(orjson.dumps(review(filled(LIGHT_VALUES))))
    assert most_values(b"[" * BODY_LIMIT, LIGHT_VALUES) < BODY_LIMIT


class TestThrottle:
    async def test_heavy_reviews_go_one_by_one_with_a_rest_as_long_as_the_work(self):
        now, order = [0.0], list[str]()
        throttle = Throttle(clock=lambda: now[0])
        async with throttle.judging():
            waiting = asyncio.create_task(self._one(throttle, order))
            await asyncio.sleep(0)
            now[0] += 0.02
        order.append("first")
        started = asyncio.get_running_loop().time()
        await waiting
        assert order == ["first", "second"]
        assert asyncio.get_running_loop().time() - started >= 0.019

    async def _one(self, throttle: Throttle, order: list[str]) -> None:
        async with throttle.judging():
            order.append("second")

    async def test_who_waits_too_long_is_sent_away(self):
        throttle = Throttle(patience=0.01)
        async with throttle.judging():
            with pytest.raises(BusyError):
                await throttle.judging().__aenter__()

    async def test_only_so_many_large_bodies_are_received_at_once(self):
        throttle = Throttle(patience=0.01)
        async with AsyncExitStack() as stack:
            for _ in range(READERS):
                await stack.enter_async_context(throttle.receiving())
            with pytest.raises(BusyError):
                await throttle.receiving().__aenter__()


async def test_a_heavy_review_that_gets_no_turn_is_answered_with_try_again(monkeypatch: pytest.MonkeyPatch):
    async def never(_throttle: Throttle, _turn: object) -> None:
        raise BusyError

    monkeypatch.setattr(Throttle, "_wait", never)
    status, response = await Door().post(orjson.dumps(review(filled(LIGHT_VALUES))))
    assert status == 429
    assert response["status"]["reason"] == "TooManyRequests"
    assert (await Door().post(orjson.dumps(review(machine()))))[1]["allowed"] is True

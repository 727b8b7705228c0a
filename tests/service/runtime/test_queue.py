"""The queue: who goes next, when, and never twice at once."""

import asyncio
import time
from datetime import UTC, datetime, timedelta

import pytest
import uvloop

from service.clock import ManualClock, SimulatedClock, SystemClock
from service.runtime.backoff import Backoff, Failures
from service.runtime.key import Key
from service.runtime.queue import URGENT, Queue, QueueClosed

NINE = datetime(2026, 3, 2, 9, tzinfo=UTC)


class Seconds:
    """Real time that a test moves by hand."""

    def __init__(self):
        self.at = 1000.0

    def __call__(self):
        return self.at


@pytest.fixture
def clock():
    return ManualClock(NINE)


@pytest.fixture
def real():
    return Seconds()


@pytest.fixture
def queue(clock, real):
    return Queue(clock, real=real, failures=Failures(Backoff(base=30, cap=300, jitter=0.0)))


def key(name, namespace="a"):
    return Key(namespace, name)


def take_all(queue):
    taken = []
    while (found := queue.take()) is not None:
        taken.append(found)
    return taken


def names(keys):
    return [k.name for k in keys]


def test_a_key_is_not_given_to_two_workers(queue):
    queue.add(key("x"))
    assert queue.take() == key("x")
    queue.add(key("x"))
    assert queue.take() is None


def test_a_key_added_while_in_work_runs_again_afterwards(queue):
    queue.add(key("x"))
    queue.take()
    queue.add(key("x"))
    queue.done(key("x"))
    assert queue.take() == key("x")


def test_a_key_added_twice_runs_once(queue):
    queue.add(key("x"))
    queue.add(key("x"))
    assert names(take_all(queue)) == ["x"]


def test_a_key_waits_for_its_time_to_the_instant(queue, clock):
    queue.add(key("x"), due=NINE + timedelta(seconds=10))
    clock.advance(timedelta(seconds=10) - timedelta(microseconds=1))
    assert queue.take() is None
    clock.advance(timedelta(microseconds=1))
    assert queue.take() == key("x")


def test_the_earlier_of_two_times_wins_whichever_came_first(queue, clock):
    early, late = NINE + timedelta(seconds=5), NINE + timedelta(hours=5)
    queue.add(key("x"), due=early)
    queue.add(key("x"), due=late)
    queue.add(key("y"), due=late)
    queue.add(key("y"), due=early)
    clock.advance(timedelta(seconds=5))
    assert sorted(names(take_all(queue))) == ["x", "y"]
    assert queue.waiting == 0


def test_earlier_due_goes_first(queue, clock):
    queue.add(key("late"), due=NINE + timedelta(seconds=20))
    queue.add(key("early"), due=NINE + timedelta(seconds=1))
    clock.advance(timedelta(minutes=1))
    assert names(take_all(queue)) == ["early", "late"]


def test_among_keys_due_at_once_the_higher_priority_goes_first(queue):
    for name, priority in (("low", 10), ("high", 200), ("usual", None)):
        queue.add(key(name), due=NINE, priority=priority)
    assert names(take_all(queue)) == ["high", "usual", "low"]


def test_priority_also_decides_between_namespaces(queue):
    queue.add(key("low", "a"), due=NINE, priority=10)
    queue.add(key("high", "b"), due=NINE, priority=200)
    assert names(take_all(queue)) == ["high", "low"]


def test_a_low_priority_that_has_waited_long_enough_goes_before_a_high_one(queue, clock):
    queue.add(key("old"), due=NINE, priority=0)
    clock.advance(timedelta(seconds=11))
    queue.add(key("new"), due=clock.now(), priority=255)
    assert names(take_all(queue)) == ["old", "new"]


def test_an_emergency_goes_before_a_crowd_that_has_waited_for_minutes(queue, clock):
    for n in range(100):
        queue.add(key(f"x{n}"), due=NINE, priority=255)
    clock.advance(timedelta(minutes=5))
    queue.add(key("x99"), due=URGENT)
    assert queue.take() == key("x99")
    queue.add(key("x99"), due=URGENT)
    queue.done(key("x99"))
    assert queue.take() == key("x99"), "and so does what is left to do about it"


def test_a_key_keeps_its_priority_when_an_event_names_none(queue):
    queue.add(key("other"), due=NINE, priority=100)
    queue.add(key("x"), due=NINE + timedelta(hours=1), priority=200)
    queue.add(key("x"), due=NINE)
    assert names(take_all(queue)) == ["x", "other"]


def test_one_object_is_not_stalled_by_ten_thousand_of_another_namespace(queue):
    for n in range(10_000):
        queue.add(key(f"x{n}", "crowd"), due=NINE - timedelta(seconds=60), priority=255)
    for _ in range(500):
        queue.done(queue.take())
    queue.add(key("alone", "other"), due=NINE, priority=0)
    taken = [queue.take() for _ in range(9)]
    assert key("alone", "other") in taken


def test_a_second_crowd_shares_with_the_first_instead_of_overtaking_it(queue):
    for n in range(400):
        queue.add(key(f"x{n}", "first"))
    for _ in range(200):
        queue.done(queue.take())
    for n in range(400):
        queue.add(key(f"x{n}", "second"))
    served = [queue.take().namespace for _ in range(100)]
    assert 40 <= served.count("first") <= 60


def test_a_namespace_holds_no_more_workers_than_it_may(clock):
    queue = Queue(clock, running_per_namespace=2)
    for n in range(5):
        queue.add(key(f"x{n}"))
    queue.add(key("y", "b"))
    taken = take_all(queue)
    assert len([k for k in taken if k.namespace == "a"]) == 2
    assert key("y", "b") in taken
    queue.done(next(k for k in taken if k.namespace == "a"))
    assert len(take_all(queue)) == 1


def test_failures_back_off_longer_each_time_up_to_the_cap(queue, real):
    pauses = []
    for _ in range(6):
        pauses.append(queue.retry(key("x")))
        real.at += pauses[-1]
        queue.done(queue.take())
    assert pauses == [30, 60, 120, 240, 300, 300]


def test_by_default_failures_wait_from_30_s_up_to_5_min_and_not_all_the_same(clock, real):
    queue = Queue(clock, real=real)
    first = [queue.retry(key(f"x{n}")) for n in range(50)]
    last = [queue.retry(key("x0")) for _ in range(20)][-1]
    assert 24 <= min(first) < max(first) <= 30
    assert 240 <= last <= 300


def test_success_resets_the_back_off(queue):
    queue.retry(key("x"))
    queue.retry(key("x"))
    queue.succeeded(key("x"))
    assert queue.retry(key("x")) == 30


def test_back_off_runs_on_real_time_and_not_on_the_domains_clock(queue, clock, real):
    queue.retry(key("x"))
    clock.advance(timedelta(days=1))
    assert queue.take() is None
    real.at += 30
    assert queue.take() == key("x")


def test_the_server_may_say_how_long_to_wait(queue, real):
    assert queue.retry(key("x"), after=7) == 7
    real.at += 7
    assert queue.take() == key("x")


def test_a_requested_pause_does_not_count_as_a_failure(queue):
    for _ in range(5):
        queue.retry(key("x"), after=7)
    assert queue.retry(key("x")) == 30


def test_an_event_ends_a_back_off(queue):
    queue.retry(key("x"))
    queue.add(key("x"))
    assert queue.take() == key("x")


def test_a_boundary_inside_a_back_off_is_not_missed(queue, clock):
    queue.add(key("x"), due=NINE + timedelta(seconds=5))
    queue.retry(key("x"))
    clock.advance(timedelta(seconds=5))
    assert queue.take() == key("x")


def test_a_discarded_key_is_not_given_out(queue, clock):
    queue.add(key("due"))
    queue.add(key("later"), due=NINE + timedelta(seconds=1))
    queue.discard(key("due"))
    queue.discard(key("later"))
    clock.advance(timedelta(hours=1))
    assert queue.take() is None
    assert (queue.depth, queue.waiting) == (0, 0)


def test_a_clock_set_back_makes_keys_wait_and_set_forward_makes_them_due(queue, clock):
    queue.add(key("x"), due=NINE + timedelta(minutes=30))
    clock.advance(timedelta(hours=-1))
    assert queue.take() is None
    clock.advance(timedelta(hours=2))
    assert queue.take() == key("x")


def test_depth_waiting_and_running_are_counted(queue):
    queue.add(key("due1"))
    queue.add(key("due2"))
    queue.add(key("later"), due=NINE + timedelta(hours=1))
    queue.take()
    assert (queue.depth, queue.waiting, queue.running) == (1, 1, 1)


def test_how_long_a_key_waited_for_a_worker_is_reported(clock, real):
    waited: list[float] = []
    queue = Queue(clock, real=real, on_taken=waited.append)
    for name in "xy":
        queue.add(key(name))
    queue.take()
    real.at += 1.5
    queue.take()
    assert waited == [0.0, 1.5]


def test_moved_timers_leave_nothing_behind(queue):
    for n in range(5000):
        queue.add(key("x"), due=NINE + timedelta(hours=5000 - n))
    assert len(queue._timers._by_due) < 100


def test_ten_thousand_keys_due_at_once_are_given_out_quickly(queue):
    for n in range(10_000):
        queue.add(key(f"x{n}", f"ns{n % 50}"), due=NINE)
    started = time.process_time()  # other work on the machine must not fail the test
    assert len(take_all(queue)) == 10_000
    assert time.process_time() - started < 10


async def test_a_waiting_worker_gets_a_key_the_moment_it_is_added():
    queue = Queue(ManualClock(NINE))
    worker = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    queue.add(key("x"))
    assert await asyncio.wait_for(worker, 10) == key("x")


async def test_a_waiting_worker_gets_a_key_at_its_time_and_not_before():
    clock = SimulatedClock.starting(NINE, speed=100)
    queue = Queue(clock)
    due = NINE + timedelta(seconds=20)
    queue.add(key("x"), due=due)
    await asyncio.wait_for(queue.get(), 30)
    late = (clock.now() - due).total_seconds() / 100
    assert 0 <= late < 5


async def test_an_earlier_timer_added_later_is_not_slept_over():
    clock = SimulatedClock.starting(NINE, speed=100)
    queue = Queue(clock)
    queue.add(key("late"), due=NINE + timedelta(hours=1))
    worker = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    queue.add(key("early"), due=clock.now() + timedelta(seconds=5))
    assert await asyncio.wait_for(worker, 30) == key("early")


async def test_no_worker_waits_longer_than_ten_seconds_so_that_a_stepped_clock_is_noticed(clock):
    queue = Queue(clock)
    queue.add(key("x"), due=NINE + timedelta(days=1))
    worker = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    assert queue._wakeup is not None
    assert queue._wakeup.when() - asyncio.get_running_loop().time() <= 10.0
    clock.advance(timedelta(days=2))
    queue.wake_due()
    assert await asyncio.wait_for(worker, 10) == key("x")


async def test_if_a_woken_worker_is_cancelled_another_takes_the_key():
    queue = Queue(ManualClock(NINE))
    first, second = asyncio.create_task(queue.get()), asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    queue._wake_workers(1)  # this wakes the first, which has not run yet
    queue.add(key("x"))
    first.cancel()
    assert await asyncio.wait_for(second, 10) == key("x")


async def test_closing_ends_all_waiting():
    queue = Queue(ManualClock(NINE))
    workers = [asyncio.create_task(queue.get()) for _ in range(3)]
    await asyncio.sleep(0)
    queue.close()
    results = await asyncio.gather(*workers, return_exceptions=True)
    assert all(isinstance(result, QueueClosed) for result in results)


def test_timers_work_on_the_event_loop_that_the_service_runs_on() -> None:
    async def two_keys() -> None:
        queue = Queue(SystemClock())
        taken = asyncio.create_task(queue.get())
        await asyncio.sleep(0)
        queue.add(Key("ns", "a"))
        queue.add(Key("ns", "b"))
        assert (await taken).namespace == "ns"
        assert (await queue.get()).namespace == "ns"

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(two_keys())


def test_keys_that_failed_are_retried_soon_once_the_cause_is_over_and_no_others_are(queue, clock, real):
    queue.retry(key("failed"))
    queue.retry(key("asked-to-wait"), after=60)
    queue.add(key("at-nine"), due=clock.now() + timedelta(hours=1))
    queue.retry_failed(2.0)
    real.at += 2.0
    assert names(take_all(queue)) == ["failed"]


def test_retrying_failed_keys_makes_none_wait_longer(queue, real):
    queue.retry(key("x"))
    real.at += 29.9
    queue.retry_failed(60.0)
    real.at += 0.2
    assert names(take_all(queue)) == ["x"]

"""Workers: so many at a time, and one failure is one failure."""

import asyncio
from datetime import UTC, datetime

from service.clock import ManualClock
from service.runtime.key import Key
from service.runtime.queue import Queue
from service.runtime.worker import WorkerPool


def queue_of(*names):
    queue = Queue(ManualClock(datetime(2026, 3, 2, tzinfo=UTC)))
    for name in names:
        queue.add(Key("a", name))
    return queue


async def run_until(pool, finished):
    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        group.create_task(pool.run())
        await finished.wait()
        await pool.stop(1)


async def test_no_more_keys_are_handled_at_once_than_there_are_workers():
    queue, finished = queue_of(*"abcdefgh"), asyncio.Event()
    at_once, most, handled = 0, 0, 0

    async def handle(key):
        nonlocal at_once, most, handled
        at_once += 1
        most = max(most, at_once)
        await asyncio.sleep(0.001)
        at_once -= 1
        handled += 1
        if handled == 8:
            finished.set()

    await run_until(WorkerPool(queue, handle, size=3, on_error=lambda *_: None), finished)
    assert most == 3


async def test_work_that_never_waits_leaves_turns_to_others():
    queue, finished, turns = queue_of(*map(str, range(100))), asyncio.Event(), 0

    async def handle(key):
        if queue.depth == 0:
            finished.set()

    async def serve_webhooks():
        nonlocal turns
        while not finished.is_set():
            turns += 1
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        group.create_task(serve_webhooks())
        await run_until(WorkerPool(queue, handle, size=4, on_error=lambda *_: None), finished)
    assert turns >= 100 / 4


async def test_a_failure_is_handed_to_on_error_and_the_others_go_on():
    queue, finished, failures = queue_of("bad", "good"), asyncio.Event(), []

    async def handle(key):
        if key.name == "bad":
            raise RuntimeError("no")
        finished.set()

    def on_error(key, error):
        failures.append((key.name, str(error)))
        queue.retry(key)

    await run_until(WorkerPool(queue, handle, size=1, on_error=on_error), finished)
    assert failures == [("bad", "no")]
    assert queue.waiting == 1


async def test_stopping_lets_running_handlers_finish_and_takes_no_more_keys():
    queue, started, order = queue_of("first", "second"), asyncio.Event(), []

    async def handle(key):
        started.set()
        await asyncio.sleep(0.01)
        order.append(key.name)

    await run_until(WorkerPool(queue, handle, size=1, on_error=lambda *_: None), started)
    assert order == ["first"]
    assert queue.depth == 1


async def test_stopping_abandons_what_takes_longer_than_the_grace():
    queue, started, given_up = queue_of("slow"), asyncio.Event(), []

    async def handle(key):
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            given_up.append(key.name)
            raise

    pool = WorkerPool(queue, handle, size=1, on_error=lambda *_: None)
    async with asyncio.timeout(30):
        running = asyncio.create_task(pool.run())
        await started.wait()
        await pool.stop(0.01)
        await running
    assert given_up == ["slow"]
    assert queue.running == 0

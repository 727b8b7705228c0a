"""Tasks in groups that are ending, and tasks that end together."""

import asyncio
import inspect

import pytest

from service.runtime.tasks import all_of, start


async def for_ever():
    await asyncio.Event().wait()


async def test_a_group_that_is_ending_takes_no_task_and_leaves_none_unawaited():
    async def keep():
        async with asyncio.TaskGroup() as group:
            groups.append(group)
            start(group, for_ever(), name="first")

    groups: list[asyncio.TaskGroup] = []
    keeping = asyncio.create_task(keep())
    await asyncio.sleep(0)
    keeping.cancel()
    await asyncio.sleep(0)  # it has cancelled its own tasks, and waits for them
    late = for_ever()
    with pytest.raises(RuntimeError):
        start(groups[0], late, name="late")
    assert inspect.getcoroutinestate(late) == inspect.CORO_CLOSED, "it was not closed"
    with pytest.raises(asyncio.CancelledError):
        await keeping


async def test_a_task_has_its_name():
    async with asyncio.TaskGroup() as group:
        task = start(group, for_ever(), name="watch things")
        assert task.get_name() == "watch things"
        task.cancel()


async def test_several_have_all_ended_when_one_of_them_has_failed():
    async def fail():
        raise ValueError("no")

    async def go_on():
        await asyncio.sleep(0.01)
        ended.append("the other")

    ended: list[str] = []
    with pytest.raises(ValueError, match="no"):
        await all_of(fail(), go_on())
    assert ended == ["the other"]


async def test_several_are_cancelled_together():
    async def go_on():
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("it")

    ended: list[str] = []
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await all_of(go_on(), go_on())
    assert ended == ["it", "it"]

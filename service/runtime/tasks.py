"""Starts tasks in a group that already runs, and waits for several at once; used by watches and by actions."""

import asyncio
import traceback
from collections.abc import Coroutine
from contextvars import Context
from typing import Any, TypeVar

T = TypeVar("T")


def start(
    group: asyncio.TaskGroup, work: Coroutine[None, None, None], *, name: str, context: Context | None = None
) -> asyncio.Task[None]:
    """Starts `work` in `group`; `RuntimeError` if the group is ending, which other tasks in it may not know yet."""
    try:
        task = group.create_task(work, name=name, context=context)
    except RuntimeError:
        work.close()  # up to Python 3.12 the group does not, and the coroutine would never be awaited
        raise
    task.add_done_callback(_free)
    return task


def _free(task: asyncio.Task[None]) -> None:
    """Frees what a cancelled task held, such as a connection and its cache, without waiting for garbage collection.

    The task refers to the error that cancelled it, the error to its frames, and their groups to the task.
    """
    if task.cancelled():
        try:
            task.exception()
        except asyncio.CancelledError as error:
            traceback.clear_frames(error.__traceback__)


async def all_of(*works: Coroutine[Any, Any, T]) -> list[T]:
    """Their results, once all of them have ended; raises what the first of them raised.

    `asyncio.gather` does not wait for the others after an error: they would run on while the caller goes on.
    """
    answers = await asyncio.gather(*works, return_exceptions=True)
    raised = next((answer for answer in answers if isinstance(answer, BaseException)), None)
    if raised is not None:
        raise raised
    return [answer for answer in answers if not isinstance(answer, BaseException)]

"""Tasks that begin long after their group did, and several that end together; used by watches and by actions."""

import asyncio
import traceback
from collections.abc import Coroutine
from contextvars import Context
from typing import Any, TypeVar

T = TypeVar("T")


def start(
    group: asyncio.TaskGroup, work: Coroutine[None, None, None], *, name: str, context: Context | None = None
) -> asyncio.Task[None]:
    """Starts `work` in `group`; `RuntimeError` if that is ending, as others in it may be a moment longer at work."""
    try:
        task = group.create_task(work, name=name, context=context)
    except RuntimeError:
        work.close()  # up to Python 3.12 the group leaves it as it is, and nobody would ever await it
        raise
    task.add_done_callback(_free)
    return task


def _free(task: asyncio.Task[None]) -> None:
    """Frees what a cancelled task held, such as a connection and its cache, without a search for cycles.

    The task keeps the error it was cancelled by, the error its frames, and their groups the task.
    """
    if task.cancelled():
        try:
            task.exception()
        except asyncio.CancelledError as error:
            traceback.clear_frames(error.__traceback__)


async def all_of(*works: Coroutine[Any, Any, T]) -> list[T]:
    """Their answers, once all of them have ended; raises what the first of them raised.

    `asyncio.gather` would not wait for the others then: they would go on behind the back of whoever gives up.
    """
    answers = await asyncio.gather(*works, return_exceptions=True)
    raised = next((answer for answer in answers if isinstance(answer, BaseException)), None)
    if raised is not None:
        raise raised
    return [answer for answer in answers if not isinstance(answer, BaseException)]

"""Waits in tests: for a fact, never for a time."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any


async def until(fact: Callable[[], Any], *, within: float = 30.0) -> Any:
    """Returns the first truthy answer of `fact` (a function or coroutine function), or fails after `within` seconds."""
    async with asyncio.timeout(within):
        while True:
            answer = fact()
            if inspect.isawaitable(answer):
                answer = await answer
            if answer:
                return answer
            await asyncio.sleep(0.01)


@asynccontextmanager
async def running(work: Awaitable[Any]):
    """Runs `work` beside the test and stops it at the end; if it died meanwhile, the test learns why."""
    task = asyncio.ensure_future(work)
    try:
        yield task
    finally:
        died = task.done()
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        if died and not task.cancelled():
            task.result()

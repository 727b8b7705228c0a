"""Waits in tests: for a fact, never for a time."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

LAST_TRY = 10.0


async def until(fact: Callable[..., Any], *, within: float = 60.0) -> Any:
    """Returns the first truthy answer of `fact` (a function or coroutine function), or fails after `within` seconds."""
    try:
        async with asyncio.timeout(within):
            while True:
                if answer := await _evaluate(fact):
                    return answer
                await asyncio.sleep(0.01)
    except TimeoutError:
        # Time may have passed while this process stood still, and what is waited for may have come meanwhile.
        async with asyncio.timeout(LAST_TRY):
            if answer := await _evaluate(fact):
                return answer
        raise


async def _evaluate(fact: Callable[..., Any]) -> Any:
    answer = fact()
    return await answer if inspect.isawaitable(answer) else answer


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

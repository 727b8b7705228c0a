"""Tasks that are started long after their group was, at a moment when it may be ending; used by whatever watches."""

import asyncio
from collections.abc import Coroutine
from contextvars import Context


def start(
    group: asyncio.TaskGroup, work: Coroutine[None, None, None], *, name: str, context: Context | None = None
) -> asyncio.Task[None]:
    """Starts `work` in `group`; `RuntimeError` if that is ending, as others in it may be a moment longer at work."""
    try:
        return group.create_task(work, name=name, context=context)
    except RuntimeError:
        work.close()  # up to Python 3.12 the group leaves it as it is, and nobody would ever await it
        raise

"""Workers that take keys from the queue and handle them; the failure of one key does not affect others."""

import asyncio
from collections.abc import Awaitable, Callable

from service.runtime.key import Key
from service.runtime.queue import Queue, QueueClosed

Handler = Callable[[Key], Awaitable[None]]
OnError = Callable[[Key, Exception], None]


class WorkerPool:
    """`size` workers. `handle` and `on_error` decide when a key is due again."""

    def __init__(self, queue: Queue, handle: Handler, *, size: int, on_error: OnError) -> None:
        self._queue = queue
        self._handle = handle
        self._size = size
        self._on_error = on_error
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Works until `stop`; if cancelled, abandons the keys that are being handled."""
        async with asyncio.TaskGroup() as group:
            self._tasks = {group.create_task(self._work(), name=f"worker-{n}") for n in range(self._size)}

    async def stop(self, grace_seconds: float) -> None:
        """Takes no more keys, lets workers finish for `grace_seconds`, then cancels the rest."""
        self._queue.close()
        if self._tasks:
            _, slow = await asyncio.wait(self._tasks, timeout=grace_seconds)
            for task in slow:
                task.cancel()

    async def _work(self) -> None:
        while True:
            try:
                key = await self._queue.get()
            except QueueClosed:
                return
            try:
                await self._handle(key)
            except Exception as error:  # noqa: BLE001 - supervision: whatever happens, other keys go on
                self._on_error(key, error)
            finally:
                self._queue.done(key)
            # A pass that finds everything in caches never awaits: thousands in a row would hold up Leases and webhooks.
            await asyncio.sleep(0)

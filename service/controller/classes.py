"""Wakes the ScheduledMachines of a class that changed, at a bounded rate: there may be fifty thousand.

Classes take turns, so that one with few users does not wait for one with many.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from service.observe.classes import ClassStore
from service.observe.indexes import CLASS, CLASS_NAMESPACE
from service.runtime.informer import Informer
from service.runtime.key import Key

WOKEN_PER_SECOND: Final = 100.0
"""A pass of an object for which nothing changes takes a millisecond or two, one that stores its status a few more."""
WOKEN_AT_ONCE: Final = 10
READ_AT_ONCE: Final = 100


class ClassController:
    """Follows classes and namespaces, and wakes the ScheduledMachines that they concern."""

    def __init__(
        self,
        store: ClassStore,
        scheduled: Informer,
        owns: Callable[[Key], bool],
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.store = store
        self._scheduled = scheduled
        self._owns = owns
        self._sleep = sleep
        self._wake: Callable[[Key], None] = lambda _key: None
        self._read_again: Callable[[Key], None] = lambda _key: None
        self._waiting: dict[tuple[str, str], list[Key]] = {}
        """By class or namespace, the users that are still to be woken."""
        self._changed = asyncio.Event()
        self._decided = False
        """Whether a machine may have been decided about: before that, none has to be woken."""
        store.subscribe(self._class_changed, self._namespace_changed)

    def subscribe(self, wake: Callable[[Key], None], read_again: Callable[[Key], None]) -> None:
        """Calls `wake` with each user of a class that changed; `read_again` with all users before the first pass."""
        self._wake = wake
        self._read_again = read_again

    async def run(self) -> None:
        """Follows classes until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.store.run(), name="classes and namespaces")
            group.create_task(self._wake_users(), name="wake users of classes")

    async def listed(self) -> None:
        """Waits until classes and namespaces are known; before each pass."""
        if self._decided and not self.store.pending:
            return
        await self.store.listed()
        if not self._decided:
            await self._read_users()
        self._decided = True

    @property
    def waiting(self) -> int:
        """How many ScheduledMachines are still to be woken."""
        return sum(map(len, self._waiting.values()))

    def users(self, name: str) -> list[Key]:
        """The ScheduledMachines that name a class."""
        return list(self._scheduled.keys_by(CLASS, name))

    def _class_changed(self, name: str) -> None:
        self._add(CLASS, name)

    def _namespace_changed(self, name: str) -> None:
        self._add(CLASS_NAMESPACE, name)

    def _add(self, index: str, value: str) -> None:
        """Queues the users to be woken; those that wait for an earlier change go first, or frequent ones starve."""
        if not self._decided:
            return
        users = {key for key in self._scheduled.keys_by(index, value) if self._owns(key)}
        first = [key for key in self._waiting.get((index, value), ()) if key in users]
        if users:
            self._waiting[index, value] = [*users.difference(first), *first]  # they are taken from the end
            self._changed.set()

    async def _wake_users(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            while self._waiting:
                await self._take_turns()

    async def _take_turns(self) -> None:
        for each in list(self._waiting):
            woken = _taken(self._waiting[each], WOKEN_AT_ONCE)
            if not self._waiting[each]:
                del self._waiting[each]
            for key in woken:
                self._wake(key)
            await self._sleep(len(woken) / WOKEN_PER_SECOND)

    async def _read_users(self) -> None:
        """Reads all users again: those that were listed before their classes were read without them."""
        for number, key in enumerate(self._all_users()):
            self._read_again(key)
            if number % READ_AT_ONCE == 0:
                await asyncio.sleep(0)

    def _all_users(self) -> Iterable[Key]:
        return [key for key in list(self._scheduled) if self._scheduled.count_by(CLASS_NAMESPACE, key.namespace)]


def _taken(keys: list[Key], most: int) -> list[Key]:
    """Removes some keys from the end."""
    taken = keys[-most:]
    del keys[-most:]
    return taken

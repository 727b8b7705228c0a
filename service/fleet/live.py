"""A kind of object, watched with the rights of the user, and reduced to what is shown: for `5spot top` and the console.

One list, then one watch. At rest nothing else is sent to the API server.
"""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

from service.kube.client import Client
from service.kube.resource import Resource
from service.runtime.cache import Change, EventType, slim
from service.runtime.informer import Informer
from service.runtime.key import Key

Raw = dict[str, Any]
Shown = TypeVar("Shown")


class LiveView(Generic[Shown]):
    """All objects of a kind, each reduced by `reduce` whenever it changes; `slim` says what else is kept of it."""

    def __init__(
        self,
        client: Client,
        resource: Resource,
        reduce: Callable[[Raw], Shown],
        *,
        namespace: str | None = None,
        slim: Callable[[Raw], Raw] = slim,
    ) -> None:
        self.shown: dict[Key, Shown] = {}
        self.resource = resource
        self._reduce, self._slim = reduce, slim
        self._newest: tuple[Key, Shown] | None = None
        self._shown_since: dict[Key, str] = {}
        """The version of each object from which on what is shown is as it is now."""
        self._informer = Informer(client, resource, namespaces=(namespace,) if namespace else (), slim=self._slimmed)
        self._listeners: list[Callable[[Key], None]] = []
        self._informer.listen(self._changed)

    def listen(self, listener: Callable[[Key], None]) -> None:
        """Calls `listener` with the key of every object that changed or is gone."""
        self._listeners.append(listener)

    def unlisten(self, listener: Callable[[Key], None]) -> None:
        """Stops calling it."""
        self._listeners.remove(listener)

    async def run(self) -> None:
        """Watches until cancelled."""
        await self._informer.run()

    async def synced(self, within: float) -> None:
        """Waits for the first list; `Unavailable` after that many seconds."""
        await self._informer.synced(within)

    @property
    def problem(self) -> str:
        """Why the watch is not connected; empty if it is."""
        error = self._informer.error
        return error.message if error else ""

    def get(self, key: Key) -> Raw | None:
        """The object as stored, less what `slim` left out."""
        return self._informer.get(key)

    def absorb(self, raw: Raw) -> None:
        """Takes in an object as the watch does: for answers to writes, and for benchmarks."""
        self._informer.absorb(raw, notify=True)

    def objects(self) -> Iterator[Raw]:
        """All of them as stored."""
        return (found for key in self._informer if (found := self._informer.get(key)) is not None)

    def _slimmed(self, raw: Raw) -> Raw:
        """What the cache keeps; what is shown is made of the whole object, for the change that comes next.

        The cache reports a change of what it keeps. So that it reports any change of what is shown, it also keeps since
        when that is as it is.
        """
        key, shown = Key(raw["metadata"].get("namespace", ""), raw["metadata"]["name"]), self._reduce(raw)
        self._newest = key, shown
        if key not in self._shown_since or self.shown.get(key) != shown:
            self._shown_since[key] = raw["metadata"]["resourceVersion"]
        kept = self._slim(raw)
        kept["shownSince"] = self._shown_since[key]
        return kept

    def _changed(self, change: Change) -> None:
        if change.type is EventType.DELETED:
            self.shown.pop(change.key, None)
            self._shown_since.pop(change.key, None)
        elif self._newest is not None and self._newest[0] == change.key:
            self.shown[change.key] = self._newest[1]
        for listener in tuple(self._listeners):
            listener(change.key)


class Bell:
    """Wakes the task that waits for news; many changes at once ring it once."""

    def __init__(self) -> None:
        self._rung = asyncio.Event()

    def ring(self, _key: Key | None = None) -> None:
        """There is news."""
        self._rung.set()

    async def wait(self, within: float) -> None:
        """Waits for news, at most that many seconds."""
        try:
            async with asyncio.timeout(within):
                await self._rung.wait()
        except TimeoutError:
            return
        self._rung.clear()

"""Events that wait to be sent. Namespaces take turns, so that one with thousands does not delay the others."""

from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")


class Backlog(Generic[T]):
    """First in, first out within a namespace. Beyond `most` items in all, the longest lane drops its oldest."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._size = 0
        self._lanes: dict[str, deque[T]] = {}

    def __len__(self) -> int:
        return self._size

    def append(self, namespace: str, item: T) -> None:
        """Adds an item."""
        self._lanes.setdefault(namespace, deque()).append(item)
        self._size += 1
        if self._size > self._most:
            self._take(max(self._lanes, key=lambda name: len(self._lanes[name])))

    def first(self) -> T:
        """The next item."""
        return self._lanes[next(iter(self._lanes))][0]

    def popleft(self) -> T:
        """Removes the next item; then it is the turn of the other namespaces."""
        namespace = next(iter(self._lanes))
        item = self._take(namespace)
        if namespace in self._lanes:
            self._lanes[namespace] = self._lanes.pop(namespace)
        return item

    def _take(self, namespace: str) -> T:
        lane = self._lanes[namespace]
        item = lane.popleft()
        self._size -= 1
        if not lane:
            del self._lanes[namespace]
        return item

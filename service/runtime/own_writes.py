"""Recognises the controller's own writes: a watch often reports a write before its answer arrives.

During a pass over a key, the versions that the watches report are collected; after it, any version that the pass did
not write wakes the key.
"""

from collections.abc import Callable

from service.runtime.key import Key


class OwnWrites:
    """The versions observed and the versions written, by key whose pass runs."""

    def __init__(self, wake: Callable[[Key], None]) -> None:
        self._wake = wake
        self._observed: dict[Key, set[str]] = {}
        self._written: dict[Key, set[str]] = {}

    def begin(self, key: Key) -> None:
        """A pass over the key begins."""
        self._observed[key] = set()
        self._written[key] = set()

    def wrote(self, key: Key, version: str) -> None:
        """The pass wrote an object of the key, and the answer has this version."""
        if key in self._written:
            self._written[key].add(version)

    def observed(self, key: Key, version: str) -> None:
        """A watch reported an object of the key in this version."""
        if key in self._observed:
            self._observed[key].add(version)
        else:
            self._wake(key)

    def end(self, key: Key) -> None:
        """The pass is over; wakes the key if a watch reported a version that the pass did not write."""
        if self._observed.pop(key) - self._written.pop(key):
            self._wake(key)

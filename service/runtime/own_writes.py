"""Tells the echo of our own writes from news: a watch often hears of a write before its answer reaches us.

While a key is in hand, what is heard about it is put aside; when it is let go, whatever we did not write wakes it.
"""

from collections.abc import Callable

from service.runtime.key import Key


class OwnWrites:
    """Versions heard and versions written, by key in hand."""

    def __init__(self, wake: Callable[[Key], None]) -> None:
        self._wake = wake
        self._heard: dict[Key, set[str]] = {}
        self._written: dict[Key, set[str]] = {}

    def begin(self, key: Key) -> None:
        """A worker takes the key in hand."""
        self._heard[key] = set()
        self._written[key] = set()

    def wrote(self, key: Key, version: str) -> None:
        """An answer to a write on behalf of the key said that the object has this version now."""
        if key in self._written:
            self._written[key].add(version)

    def heard(self, key: Key, version: str) -> None:
        """A watch told of an object of the key in this version."""
        if key in self._heard:
            self._heard[key].add(version)
        else:
            self._wake(key)

    def end(self, key: Key) -> None:
        """The key is let go; it is woken if something came that was not ours."""
        if self._heard.pop(key) - self._written.pop(key):
            self._wake(key)

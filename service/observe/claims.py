"""The claims to one host, in the order of their ranks, and which of them is the first valid one.

Ten thousand copies of one manifest make one queue. Nearly always the first valid claim is known without evaluating the
others: only claims that changed before it, or those behind it once it is removed, are evaluated.
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from typing import Final

from service.runtime.key import Key

Rank = tuple[bool, str, str]
"""Objects with a Machine come first, then older ones."""
Entry = tuple[Rank, Key]
NEVER: Final = datetime.max.replace(tzinfo=UTC)
MOST_EVALUATED: Final = 64
"""How many entries behind the first valid claim are evaluated to find more."""
_START: Final[Entry] = ((False, "", ""), Key("", ""))
_END: Final[Entry] = ((True, chr(0x10FFFF), ""), Key("", ""))


@dataclass(frozen=True, slots=True)
class Claim:
    """Whether an entry's claim is valid, and the span of time for which that is known."""

    since: datetime
    until: datetime
    valid: bool


Evaluate = Callable[[Entry, datetime], Claim]


@dataclass(slots=True)
class ClaimQueue:
    """Entries in order.

    Before `_position` no claim is valid, except perhaps those in `_changed`; `_found`: the one at `_position` is.
    """

    entries: list[Entry] = field(default_factory=list)
    _position: Entry = _START
    _found: bool = False
    _changed: set[Entry] = field(default_factory=set)
    _since: datetime = NEVER
    _until: datetime = NEVER

    def add(self, entry: Entry) -> None:
        """Adds an entry."""
        insort(self.entries, entry)
        self.invalidate(entry)

    def remove(self, entry: Entry) -> None:
        """Removes an entry."""
        del self.entries[bisect_left(self.entries, entry)]
        self._changed.discard(entry)
        if entry == self._position:
            self._found = False

    def invalidate(self, entry: Entry) -> None:
        """Whether this entry's claim is valid may have changed."""
        if entry == self._position:
            self._found = False
        elif entry < self._position:
            self._changed.add(entry)

    def first(self, evaluate: Evaluate, now: datetime) -> Entry | None:
        """The first entry whose claim is valid."""
        if not self._since <= now < self._until:
            self._restart(now)
        sooner = [entry for entry in self._changed if self._is_valid(entry, evaluate, now)]
        self._changed.clear()
        if sooner:
            self._position = min(sooner)
            self._found = True
        if not self._found:
            self._search(evaluate, now)
        return self._position if self._found else None

    def valid(self, evaluate: Evaluate, now: datetime) -> Iterator[Entry]:
        """The first entry whose claim is valid, and others with a valid claim right behind it."""
        first = self.first(evaluate, now)
        if first is None:
            return
        start = bisect_left(self.entries, first)
        for entry in self.entries[start : start + MOST_EVALUATED]:
            if evaluate(entry, now).valid:
                yield entry

    def _restart(self, now: datetime) -> None:
        self._position = _START
        self._found = False
        self._changed.clear()
        self._since = now
        self._until = NEVER

    def _search(self, evaluate: Evaluate, now: datetime) -> None:
        start = bisect_left(self.entries, self._position)
        for entry in islice(self.entries, start, None):
            if self._is_valid(entry, evaluate, now):
                self._position = entry
                self._found = True
                return
        self._position = _END

    def _is_valid(self, entry: Entry, evaluate: Evaluate, now: datetime) -> bool:
        claim = evaluate(entry, now)
        self._until = min(self._until, claim.until)
        return claim.valid

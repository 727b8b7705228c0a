"""Those who name one host, in the order of their claims, and which of them is the first that counts.

Ten thousand copies of one manifest make one line. Nearly always the first claim is known without a look at the others:
only entries that changed before it, or those behind it once it is gone, are looked at.
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
LOOKED_AT: Final = 64
"""How many entries behind the first claim are looked at to find others."""
_START: Final[Entry] = ((False, "", ""), Key("", ""))
_END: Final[Entry] = ((True, chr(0x10FFFF), ""), Key("", ""))


@dataclass(frozen=True, slots=True)
class Claim:
    """Whether an entry counts, and the span of time for which that is known."""

    since: datetime
    until: datetime
    counts: bool


Judge = Callable[[Entry, datetime], Claim]


@dataclass(slots=True)
class ClaimQueue:
    """Entries in order. Before `_passed` none counts, except perhaps those in `_changed`; `_found`: this one does."""

    entries: list[Entry] = field(default_factory=list)
    _passed: Entry = _START
    _found: bool = False
    _changed: set[Entry] = field(default_factory=set)
    _since: datetime = NEVER
    _until: datetime = NEVER

    def enter(self, entry: Entry) -> None:
        """Takes an entry in."""
        insort(self.entries, entry)
        self.touch(entry)

    def leave(self, entry: Entry) -> None:
        """Takes an entry out."""
        del self.entries[bisect_left(self.entries, entry)]
        self._changed.discard(entry)
        if entry == self._passed:
            self._found = False

    def touch(self, entry: Entry) -> None:
        """Whether this entry counts may have changed."""
        if entry == self._passed:
            self._found = False
        elif entry < self._passed:
            self._changed.add(entry)

    def first(self, judge: Judge, now: datetime) -> Entry | None:
        """The first entry that counts."""
        if not self._since <= now < self._until:
            self._passed, self._found, self._since, self._until = _START, False, now, NEVER
            self._changed.clear()
        sooner = [entry for entry in self._changed if self._counts(entry, judge, now)]
        self._changed.clear()
        if sooner:
            self._passed, self._found = min(sooner), True
        if not self._found:
            self._search(judge, now)
        return self._passed if self._found else None

    def counting(self, judge: Judge, now: datetime) -> Iterator[Entry]:
        """The first entry that counts, and those that do of the ones right behind it."""
        first = self.first(judge, now)
        if first is None:
            return
        start = bisect_left(self.entries, first)
        for entry in self.entries[start : start + LOOKED_AT]:
            if judge(entry, now).counts:
                yield entry

    def _search(self, judge: Judge, now: datetime) -> None:
        start = bisect_left(self.entries, self._passed)
        for entry in islice(self.entries, start, None):
            if self._counts(entry, judge, now):
                self._passed, self._found = entry, True
                return
        self._passed = _END

    def _counts(self, entry: Entry, judge: Judge, now: datetime) -> bool:
        claim = judge(entry, now)
        self._until = min(self._until, claim.until)
        return claim.counts

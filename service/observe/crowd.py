"""The machines of one Cluster that queue for the same thing: which are on the way, and which wait, in order."""

from bisect import bisect_left, insort
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, NamedTuple

from service.decide.world import Turn
from service.runtime.key import Key

NEVER: Final = datetime.max.replace(tzinfo=UTC)


class QueuePlace(NamedTuple):
    """A place in the queue, smallest first."""

    rank: float
    key: Key


@dataclass(frozen=True, slots=True)
class Waiting:
    """A machine that waits, and how many were before it when it began to."""

    place: QueuePlace
    ahead: int


@dataclass(slots=True)
class Crowd:
    """At most `share` machines are on the way, each until an instant or until it is done, whichever comes first."""

    limit: int
    """As users set it."""
    share: int
    """What of it this shard may use."""
    _under_way: dict[Key, datetime] = field(default_factory=dict)
    _waiting: dict[Key, Waiting] = field(default_factory=dict)
    _order: list[QueuePlace] = field(default_factory=list)
    _soonest: datetime = NEVER
    """No machine that is on the way ceases to count before."""

    @property
    def waiting(self) -> int:
        """How many wait."""
        return len(self._order)

    def under_way(self, now: datetime) -> int:
        """How many are on the way."""
        if now >= self._soonest:
            self._under_way = {key: until for key, until in self._under_way.items() if now < until}
            self._soonest = min(self._under_way.values(), default=NEVER)
        return len(self._under_way)

    def turn(self, place: QueuePlace, now: datetime) -> Turn:
        """Whether it is a machine's turn: it is on the way, or there is room for all before it and for itself."""
        key, free = place.key, self.share - self.under_way(now)
        if key in self._under_way:
            return Turn(granted=True, limit=self.limit)
        known, ahead = self._waiting.get(key), bisect_left(self._order, place)
        if known is not None and known.place < place:
            ahead -= 1
        return Turn(granted=ahead < free, limit=self.limit, ahead=known.ahead if known else ahead)

    def next(self, now: datetime) -> Iterable[Key]:
        """The machines that wait and whose turn it is."""
        free = self.share - self.under_way(now) if self._order else 0
        return [place.key for place in self._order[:free]] if free > 0 else ()

    def wait(self, place: QueuePlace, ahead: int) -> None:
        """A machine waits at this place."""
        known = self._waiting.get(place.key)
        if known is not None and known.place == place:
            return
        self.leave(place.key)
        self._waiting[place.key] = Waiting(place, ahead)
        insort(self._order, place)

    def leave(self, key: Key) -> None:
        """A machine waits no longer."""
        known = self._waiting.pop(key, None)
        if known is not None:
            del self._order[bisect_left(self._order, known.place)]

    def begin(self, key: Key, until: datetime) -> None:
        """A machine is on the way, and counts until `until` at most."""
        self.leave(key)
        self._under_way[key] = until
        self._soonest = min(self._soonest, until)

    def end(self, key: Key) -> None:
        """A machine is not on the way, or no longer."""
        self._under_way.pop(key, None)

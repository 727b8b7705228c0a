"""Which of the due keys goes next: urgent ones first, and no namespace at the expense of another.

A namespace that has had more turns than others goes after them, however many objects it has; namespaces that have had
about as many compete by urgency.
"""

import heapq
from dataclasses import dataclass, field
from itertools import count

from service.runtime.key import Key

# Turns that a namespace may take in a row before others with fewer turns go: small, so that a new one waits for few.
BURST = 8
_PRUNE_ABOVE = 256


@dataclass(slots=True)
class _Lane:
    """The due keys of one namespace, most urgent first."""

    turns: int
    heap: list[tuple[float, int, Key]] = field(default_factory=list)
    size: int = 0  # live entries; the heap may hold outdated ones
    offer: int = 0  # the serial number of its valid entry in the heap of lanes
    held: bool = False


class FairHeap:
    """Due keys by namespace; every operation costs O(log n)."""

    def __init__(self) -> None:
        self._lanes: dict[str, _Lane] = {}
        self._offers: list[tuple[int, float, int, str]] = []
        self._entries: dict[Key, tuple[float, int]] = {}
        self._serial = count(1)
        self._pace = 0  # the turns of the lane served last: where new lanes start

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: Key) -> bool:
        return key in self._entries

    def push(self, key: Key, urgency: float) -> None:
        """Adds a key, or moves it; a smaller `urgency` goes first."""
        known = self._entries.get(key)
        if known is not None and known[0] == urgency:
            return
        lane = self._lanes.get(key.namespace) or self._open(key.namespace)
        if lane.size == 0:
            # A namespace that was idle goes first for one burst, unless it has just had its turns.
            lane.turns = max(lane.turns, self._pace - BURST)
        if known is None:
            lane.size += 1
        entry = (urgency, next(self._serial))
        self._entries[key] = entry
        heapq.heappush(lane.heap, (*entry, key))
        if lane.heap[0][1] == entry[1]:
            self._offer(key.namespace, lane)

    def pop(self) -> Key | None:
        """Removes and returns the next key; None if none may go now."""
        while self._offers:
            _, _, offer, namespace = heapq.heappop(self._offers)
            lane = self._lanes.get(namespace)
            if lane is None or lane.offer != offer or lane.held:
                continue
            key = self._pop_from(lane)
            self._offer(namespace, lane)
            if key is not None:
                return key
        return None

    def remove(self, key: Key) -> None:
        """Removes a key; `pop` skips its entry in the heap later."""
        if self._entries.pop(key, None) is not None:
            self._lanes[key.namespace].size -= 1

    def hold(self, namespace: str) -> None:
        """Holds a namespace back: workers handle as many of its keys as they may."""
        lane = self._lanes.get(namespace) or self._open(namespace)
        lane.held = True

    def resume(self, namespace: str) -> None:
        """Ends holding a namespace back."""
        lane = self._lanes.get(namespace)
        if lane is not None and lane.held:
            lane.held = False
            self._offer(namespace, lane)

    def _pop_from(self, lane: _Lane) -> Key | None:
        urgency, serial, key = heapq.heappop(lane.heap)
        if self._entries.get(key) != (urgency, serial):
            return None
        del self._entries[key]
        lane.size -= 1
        self._pace = max(self._pace, lane.turns)
        lane.turns += 1
        return key

    def _offer(self, namespace: str, lane: _Lane) -> None:
        if lane.heap and not lane.held:
            lane.offer = next(self._serial)
            heapq.heappush(self._offers, (lane.turns // BURST, lane.heap[0][0], lane.offer, namespace))

    def _open(self, namespace: str) -> _Lane:
        if len(self._lanes) > _PRUNE_ABOVE:
            self._prune()
        lane = self._lanes[namespace] = _Lane(turns=self._pace - BURST)
        return lane

    def _prune(self) -> None:
        idle = [name for name, lane in self._lanes.items() if lane.turns <= self._pace - BURST]
        for name in idle:
            lane = self._lanes[name]
            if not lane.heap and not lane.held:
                del self._lanes[name]

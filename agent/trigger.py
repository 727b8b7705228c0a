"""When the agent looks, holds a match, fires and waits: a pure state machine, driven by the loop.

inert (no patterns) → watching → holding a match until it is stored → waiting for the request to be cleared → watching
"""

from dataclasses import dataclass, replace
from typing import assert_never

from agent.examine import Match
from agent.patterns import NO_PATTERNS, Patterns


@dataclass(frozen=True, slots=True)
class ConfigSeen:
    """The node's ConfigMap as it is now; no patterns if it is missing or empty."""

    patterns: Patterns


@dataclass(frozen=True, slots=True)
class NodeSeen:
    """The Node as it is now."""

    uid: str
    version: str
    requested: bool


@dataclass(frozen=True, slots=True)
class NodeGone:
    """There is no such Node."""


@dataclass(frozen=True, slots=True)
class Matched:
    """A process of the owner matched."""

    match: Match


@dataclass(frozen=True, slots=True)
class Failed:
    """The request could not be written; try again after `delay` seconds."""

    delay: float


Event = ConfigSeen | NodeSeen | NodeGone | Matched | Failed


@dataclass(frozen=True, slots=True)
class TriggerState:
    """All that the agent remembers. `try_at` and `fired_at` are monotonic seconds."""

    refire: float
    patterns: Patterns = NO_PATTERNS
    node: NodeSeen | None = None
    held: Match | None = None
    attempts: int = 0
    try_at: float = 0.0
    fired_at: float | None = None

    @property
    def requested(self) -> bool:
        """Whether a request stands on the Node, to our knowledge."""
        return self.node is not None and self.node.requested

    @property
    def watching(self) -> bool:
        """Whether processes matter now."""
        return bool(self.patterns) and not self.requested and self.held is None

    def due(self, now: float) -> bool:
        """Whether the held match should be written now."""
        return self.held is not None and now >= self.try_at


def step(state: TriggerState, event: Event, now: float) -> TriggerState:
    """The state after `event`."""
    match event:
        case ConfigSeen(patterns):
            return _configured(state, patterns)
        case NodeSeen():
            return _node_seen(state, event)
        case NodeGone():
            return replace(state, node=None)
        case Matched(found):
            return _matched(state, found, now)
        case Failed(delay):
            return replace(state, attempts=state.attempts + 1, try_at=now + delay)
        case _:
            assert_never(event)


def stored(state: TriggerState, node: NodeSeen, now: float) -> TriggerState:
    """The state once the Node carries our request, as the API server answered."""
    return replace(state, node=node, held=None, attempts=0, fired_at=now)


def needs_scan(before: TriggerState, after: TriggerState) -> bool:
    """Whether processes that already run must be looked at: after a start, a clearing, or new patterns."""
    return after.watching and (not before.watching or before.patterns != after.patterns)


def _configured(state: TriggerState, patterns: Patterns) -> TriggerState:
    held = state.held if state.held is not None and state.held.pattern in patterns.entries else None
    return replace(state, patterns=patterns, held=held)


def _node_seen(state: TriggerState, seen: NodeSeen) -> TriggerState:
    if _older(seen, state.node):
        return state
    return replace(state, node=seen, held=None if seen.requested else state.held)


def _matched(state: TriggerState, found: Match, now: float) -> TriggerState:
    if not state.watching:
        return state
    # A request that is cleared and made again at once would spin against the controller that clears it.
    earliest = now if state.fired_at is None else max(now, state.fired_at + state.refire)
    return replace(state, held=found, attempts=0, try_at=earliest)


def _older(seen: NodeSeen, known: NodeSeen | None) -> bool:
    """Whether a watch event was overtaken by the answer to our own write."""
    if known is None or seen.uid != known.uid:
        return False
    if not (seen.version.isdecimal() and known.version.isdecimal()):
        return False
    return int(seen.version) < int(known.version)

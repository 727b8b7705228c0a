"""What was observed in the two clusters, and when: each thing as a few words, and nothing twice."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

Facts = Mapping[str, str]


class Kind(StrEnum):
    """What is observed."""

    MACHINE = "machine"
    NODE = "node"
    POD = "pod"
    EVENT = "event"


@dataclass(frozen=True, slots=True)
class Observation:
    """One thing as it was from then on; without facts it was gone."""

    at: datetime
    kind: Kind
    name: str
    facts: Facts

    @property
    def gone(self) -> bool:
        """Whether it was not there any more."""
        return not self.facts

    def says(self, **facts: str) -> bool:
        """Whether all of these are among the facts."""
        return all(self.facts.get(name, "") == value for name, value in facts.items())


@dataclass(slots=True)
class Chronicle:
    """All observations in order; calls `listeners` with each, and with the one of the same thing before it."""

    observations: list[Observation] = field(default_factory=list)
    listeners: list[Callable[[Observation, Observation | None], None]] = field(default_factory=list)
    _latest: dict[tuple[Kind, str], Observation] = field(default_factory=dict)

    def record(self, observation: Observation) -> None:
        """Records an observation, unless it repeats the latest of the same thing."""
        key = (observation.kind, observation.name)
        before = self._latest.get(key)
        if (before.facts if before else {}) == observation.facts:
            return
        self._latest[key] = observation
        self.observations.append(observation)
        for listener in self.listeners:
            listener(observation, before)

    def of(self, kind: Kind, name: str | None = None) -> Iterator[Observation]:
        """Those of a kind, or of one thing, from the first to the last."""
        return (each for each in self.observations if each.kind is kind and name in (None, each.name))

    def present(self, kind: Kind) -> list[Observation]:
        """What there is now, by name."""
        latest = [each for (kind_, _), each in self._latest.items() if kind_ is kind and not each.gone]
        return sorted(latest, key=lambda each: each.name)

    def at(self, kind: Kind, name: str, instant: datetime) -> Observation | None:
        """How a thing was at an instant."""
        return max((each for each in self.of(kind, name) if each.at <= instant), key=lambda s: s.at, default=None)

"""What was seen in the two clusters, when: each thing as a few words, and nothing twice."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

Facts = Mapping[str, str]


class Kind(StrEnum):
    """What can be seen."""

    MACHINE = "machine"
    NODE = "node"
    POD = "pod"
    EVENT = "event"


@dataclass(frozen=True, slots=True)
class Sighting:
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
    """All sightings in their order; `listeners` hear of each, along with the one before it."""

    sightings: list[Sighting] = field(default_factory=list)
    listeners: list[Callable[[Sighting, Sighting | None], None]] = field(default_factory=list)
    _latest: dict[tuple[Kind, str], Sighting] = field(default_factory=dict)

    def see(self, sighting: Sighting) -> None:
        """Takes it down, unless it says what was known."""
        key = (sighting.kind, sighting.name)
        before = self._latest.get(key)
        if (before.facts if before else {}) == sighting.facts:
            return
        self._latest[key] = sighting
        self.sightings.append(sighting)
        for listener in self.listeners:
            listener(sighting, before)

    def of(self, kind: Kind, name: str | None = None) -> Iterator[Sighting]:
        """Those of a kind, or of one thing, from the first to the last."""
        return (each for each in self.sightings if each.kind is kind and name in (None, each.name))

    def present(self, kind: Kind) -> list[Sighting]:
        """What there is now, by name."""
        latest = [each for (kind_, _), each in self._latest.items() if kind_ is kind and not each.gone]
        return sorted(latest, key=lambda each: each.name)

    def at(self, kind: Kind, name: str, instant: datetime) -> Sighting | None:
        """How a thing was at an instant."""
        return max((each for each in self.of(kind, name) if each.at <= instant), key=lambda s: s.at, default=None)

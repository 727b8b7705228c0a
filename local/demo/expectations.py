"""What must happen in the demo, between which instants, and whether it did; pure, over a chronicle."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from local.demo.sightings import Chronicle, Kind, Sighting
from local.examples import BROKEN, NIGHT, OFFICE, WEEKEND

FRIDAY = datetime(2026, 3, 6, tzinfo=UTC)
SATURDAY = FRIDAY + timedelta(days=1)
START = FRIDAY + timedelta(hours=8)
GRACE = timedelta(hours=6)
TOLERANCE = timedelta(minutes=2)
"""Between the operator's clock and our copy of it."""

PODS = {OFFICE: ("web-1", "web-2"), NIGHT: ("batch-1",), WEEKEND: ("report-1",)}
NIGHT_TAINTS = "dedicated=night:NoExecute, workload=batch:NoSchedule"
REFUSAL = "invalid configuration"

Finder = Callable[[Chronicle], datetime | None]


class ExpectationVerdict(StrEnum):
    """How an expectation stands."""

    WAITING = "waiting"
    MET = "as expected"
    EARLY = "too early"
    LATE = "too late"
    MISSED = "did not happen"


@dataclass(frozen=True, slots=True)
class Expectation:
    """Something that must be seen of a ScheduledMachine, from one instant on and before another."""

    who: str
    what: str
    since: datetime
    until: datetime
    find: Finder

    def verdict(self, chronicle: Chronicle, now: datetime) -> ExpectationVerdict:
        """Whether it has been met; once it is not waiting, only a look at the past could change it."""
        at = self.find(chronicle)
        if at is None:
            return ExpectationVerdict.MISSED if now > self.until + TOLERANCE else ExpectationVerdict.WAITING
        if at < self.since - TOLERANCE:
            return ExpectationVerdict.EARLY
        return ExpectationVerdict.LATE if at > self.until + TOLERANCE else ExpectationVerdict.MET


def expectations() -> Sequence[Expectation]:
    """All of them, by the instant from which they hold."""
    nine, noon, six, eight, ten = (FRIDAY + timedelta(hours=hour) for hour in (9, 12, 18, 20, 22))
    dawn, seven, eleven = (SATURDAY + timedelta(hours=hour) for hour in (6, 7, 11))
    return (
        Expectation(OFFICE, "comes, with a Ready Node", nine, six, came(OFFICE)),
        Expectation(BROKEN, "is in Error, with its provider's message", noon, eight, failed(BROKEN, REFUSAL)),
        Expectation(OFFICE, "is cordoned, and its pods evicted", six, six + GRACE, drained(OFFICE)),
        Expectation(OFFICE, "leaves, and its Node with it", six, six + GRACE, left(OFFICE)),
        Expectation(BROKEN, "is cleared away", eight, eight + GRACE, cleared(BROKEN, REFUSAL)),
        Expectation(NIGHT, "comes, its Node with both taints", ten, dawn, tainted(NIGHT, NIGHT_TAINTS)),
        Expectation(NIGHT, "leaves, drained", dawn, dawn + GRACE, both(drained(NIGHT), left(NIGHT))),
        Expectation(WEEKEND, "comes, by cron", seven, eleven, came(WEEKEND)),
        Expectation(WEEKEND, "leaves, drained", eleven, eleven + GRACE, both(drained(WEEKEND), left(WEEKEND))),
    )


def came(name: str) -> Finder:
    """When the machine was first ready."""

    def find(chronicle: Chronicle) -> datetime | None:
        seen = _first_ready(chronicle, name)
        return seen.at if seen else None

    return find


def left(name: str) -> Finder:
    """When both the machine and its Node were gone, after it had come."""

    def find(chronicle: Chronicle) -> datetime | None:
        ready = _first_ready(chronicle, name)
        if ready is None:
            return None
        idle = _first(chronicle, Kind.MACHINE, name, ready.at, lambda s: s.says(phase="Inactive", machine=""))
        node = _first(chronicle, Kind.NODE, ready.facts["node"], ready.at, lambda s: s.gone)
        return max(idle, node) if idle and node else None

    return find


def drained(name: str) -> Finder:
    """When the last of its pods was gone, while its Node was there and cordoned."""

    def find(chronicle: Chronicle) -> datetime | None:
        ready = _first_ready(chronicle, name)
        if ready is None:
            return None
        node = ready.facts["node"]
        if not _first(chronicle, Kind.NODE, node, ready.at, lambda s: s.says(cordoned="yes")):
            return None
        pods = [_first(chronicle, Kind.POD, pod, ready.at, lambda s: s.gone) for pod in PODS[name]]
        removed = _first(chronicle, Kind.NODE, node, ready.at, lambda s: s.gone)
        last = max((pod for pod in pods if pod), default=None)
        return None if last is None or None in pods or (removed and removed < last) else last

    return find


def tainted(name: str, taints: str) -> Finder:
    """When its Node had exactly these taints."""

    def find(chronicle: Chronicle) -> datetime | None:
        ready = _first_ready(chronicle, name)
        if ready is None:
            return None
        node = ready.facts["node"]
        return _first(chronicle, Kind.NODE, node, START, lambda s: s.says(taints=taints, state="Ready"))

    return find


def failed(name: str, words: str) -> Finder:
    """When it was in Error with these words in its message."""
    return lambda chronicle: _first(
        chronicle, Kind.MACHINE, name, START, lambda s: s.says(phase="Error") and words in s.facts["message"]
    )


def cleared(name: str, words: str) -> Finder:
    """When nothing was left of what had failed."""

    def find(chronicle: Chronicle) -> datetime | None:
        since = failed(name, words)(chronicle)
        return since and _first(chronicle, Kind.MACHINE, name, since, lambda s: s.says(phase="Inactive", machine=""))

    return find


def both(one: Finder, other: Finder) -> Finder:
    """When the later of the two had happened."""

    def find(chronicle: Chronicle) -> datetime | None:
        first, second = one(chronicle), other(chronicle)
        return max(first, second) if first and second else None

    return find


def _first_ready(chronicle: Chronicle, name: str) -> Sighting | None:
    return next((s for s in chronicle.of(Kind.MACHINE, name) if s.says(ready="True") and s.facts["node"]), None)


def _first(
    chronicle: Chronicle, kind: Kind, name: str, since: datetime, fact: Callable[[Sighting], bool]
) -> datetime | None:
    return next((s.at for s in chronicle.of(kind, name) if s.at >= since and fact(s)), None)

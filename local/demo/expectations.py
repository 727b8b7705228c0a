"""What must happen in the demo, between which instants, and whether it did; pure, over a chronicle."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from local.demo.observations import Chronicle, Kind, Observation
from local.examples import BROKEN, CLASSROOM, NIGHT, OFFICE, READING, WEEKEND, WORKSTATION

FRIDAY = datetime(2026, 3, 6, tzinfo=UTC)
SATURDAY = FRIDAY + timedelta(days=1)
MONDAY = FRIDAY + timedelta(days=3)
START = FRIDAY + timedelta(hours=8)
BACK = FRIDAY + timedelta(hours=14)
"""When the owner of the workstation starts an IDE."""
GRACE = timedelta(hours=6)
EXTENDED = timedelta(hours=1)
"""How much longer a user keeps the machine of the weekend, by an override."""
TOLERANCE = timedelta(minutes=2)
"""Between the operator's clock and our copy of it."""

PODS = {OFFICE: ("web-1", "web-2"), NIGHT: ("batch-1",), WEEKEND: ("report-1",)}
NIGHT_TAINTS = "dedicated=night:NoExecute, workload=batch:NoSchedule"
REFUSAL = "invalid configuration"
AT_ONCE = 1
"""How many machines the Cluster lets come at a time."""
WAITS = "Waiting for a turn"

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
    nine, noon, four, six, eight, ten = (FRIDAY + timedelta(hours=hour) for hour in (9, 12, 16, 18, 20, 22))
    early = FRIDAY + timedelta(hours=10)
    dawn, seven, eleven = (SATURDAY + timedelta(hours=hour) for hour in (6, 7, 11))
    later = eleven + EXTENDED
    return (
        Expectation(CLASSROOM, "stays out: its calendar names a holiday", START, noon, closed(CLASSROOM, MONDAY)),
        Expectation(OFFICE, "comes, with a Ready Node", nine, six, came(OFFICE)),
        Expectation(READING, "or the office waits for its turn", nine, four, either_waited(READING, OFFICE)),
        Expectation(READING, "comes, one after the other", nine, four, in_turn(READING, OFFICE)),
        Expectation(BROKEN, "is in Error, with its provider's message", noon, eight, failed(BROKEN, REFUSAL)),
        Expectation(WORKSTATION, "comes, and its owner's agent with it", early, BACK, came(WORKSTATION)),
        Expectation(WORKSTATION, "leaves at once: its owner starts an IDE", BACK, BACK + GRACE, reclaimed(WORKSTATION)),
        Expectation(READING, "leaves, and its Node with it", four, four + GRACE, left(READING)),
        Expectation(OFFICE, "is cordoned, and its pods evicted", six, six + GRACE, drained(OFFICE)),
        Expectation(OFFICE, "leaves, and its Node with it", six, six + GRACE, left(OFFICE)),
        Expectation(BROKEN, "is cleared away", eight, eight + GRACE, cleared(BROKEN, REFUSAL)),
        Expectation(NIGHT, "comes, its Node with both taints", ten, dawn, tainted(NIGHT, NIGHT_TAINTS)),
        Expectation(NIGHT, "leaves, drained", dawn, dawn + GRACE, both(drained(NIGHT), left(NIGHT))),
        Expectation(WEEKEND, "comes, by cron", seven, eleven, came(WEEKEND)),
        Expectation(WEEKEND, "stays an hour longer, by an override", eleven, later, overridden(WEEKEND)),
        Expectation(WEEKEND, "leaves, drained", later, later + GRACE, both(drained(WEEKEND), left(WEEKEND))),
    )


def came(name: str) -> Finder:
    """When the machine was first ready."""

    def find(chronicle: Chronicle) -> datetime | None:
        seen = _first_ready(chronicle, name)
        return seen.at if seen else None

    return find


def closed(name: str, until: datetime) -> Finder:
    """When the machine was first seen to wait for a day; never, if it was ever ready before that day."""

    def find(chronicle: Chronicle) -> datetime | None:
        if _first_ready(chronicle, name) is not None:
            return None
        day = until.date().isoformat()
        return _first(chronicle, Kind.MACHINE, name, START, lambda s: s.facts.get("opens", "").startswith(day))

    return find


def either_waited(*names: str) -> Finder:
    """When one of the machines waited for its turn; which of them is not certain."""

    def find(chronicle: Chronicle) -> datetime | None:
        return min(filter(None, (_waited(chronicle, name) for name in names)), default=None)

    return find


def _waited(chronicle: Chronicle, name: str) -> datetime | None:
    return _first(
        chronicle, Kind.MACHINE, name, START, lambda s: s.says(phase="Pending") and WAITS in s.facts["message"]
    )


def in_turn(one: str, other: str) -> Finder:
    """When the second of two machines was ready, which was requested only once the first was."""

    def find(chronicle: Chronicle) -> datetime | None:
        ready = {name: came(name)(chronicle) for name in (one, other)}
        first, second = sorted(ready, key=lambda name: ready[name] or SATURDAY)
        requested = _first(chronicle, Kind.MACHINE, second, START, lambda s: s.says(phase="Active"))
        before = ready[first]
        return ready[second] if before and requested and before <= requested else None

    return find


def overridden(name: str) -> Finder:
    """When an override decided about the machine, which was in service."""
    return lambda chronicle: _first(
        chronicle, Kind.MACHINE, name, START, lambda s: s.says(phase="Active") and bool(s.facts.get("override"))
    )


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


def reclaimed(name: str) -> Finder:
    """When it was out and disabled, and its Node gone, after a request of its owner's agent."""

    def find(chronicle: Chronicle) -> datetime | None:
        ready = _first_ready(chronicle, name)
        asked = ready and _first(chronicle, Kind.MACHINE, name, ready.at, lambda s: s.says(phase="EmergencyRemove"))
        if not ready or not asked:
            return None
        out = _first(chronicle, Kind.MACHINE, name, asked, lambda s: s.says(phase="Disabled", machine=""))
        node = _first(chronicle, Kind.NODE, ready.facts["node"], asked, lambda s: s.gone)
        return max(out, node) if out and node else None

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
        gone = [pod for pod in pods if pod]
        if not gone or len(gone) < len(pods):
            return None
        last = max(gone)
        return None if removed and removed < last else last

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


def _first_ready(chronicle: Chronicle, name: str) -> Observation | None:
    return next((s for s in chronicle.of(Kind.MACHINE, name) if s.says(ready="True") and s.facts["node"]), None)


def _first(
    chronicle: Chronicle, kind: Kind, name: str, since: datetime, fact: Callable[[Observation], bool]
) -> datetime | None:
    return next((s.at for s in chronicle.of(kind, name) if s.at >= since and fact(s)), None)

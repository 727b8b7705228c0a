"""What machines did, from the history in their statuses: hours in service, punctuality, time to Ready. Pure."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from statistics import quantiles
from typing import Any

from crds.history import ServiceRecord
from crds.schedule import EVER
from service.fleet.timeline import parts
from service.fleet.usage import PUNCTUAL, could_be_in_time


@dataclass(slots=True)
class Report:
    """Sums over machines; `edges` are the ends of the days, in the time zone of the person who asks."""

    edges: Sequence[datetime]
    now: datetime
    machines: int = 0
    services: int = 0
    served: list[timedelta] = field(default_factory=list)
    """In service, for each day."""
    held: list[timedelta] = field(default_factory=list)
    """Not free for others, for each day: in service, joining or leaving."""
    known: list[timedelta] = field(default_factory=list)
    """For each day, how long machines have a history."""
    to_ready: list[float] = field(default_factory=list)
    late: list[float] = field(default_factory=list)
    """How long after its opening a Node was Ready, in seconds; below 0 if before."""
    reasons: Counter[str] = field(default_factory=Counter)
    undrained: int = 0

    def __post_init__(self) -> None:
        """Begins with nothing on each day."""
        self.served = [timedelta(0)] * (len(self.edges) - 1)
        self.held = list(self.served)
        self.known = list(self.served)

    def add(self, records: Iterable[ServiceRecord], created: datetime = EVER) -> None:
        """Counts one machine, from the first service that its history has."""
        services = list(records)
        self.machines += 1
        if services:
            self._spread(self.known, services[0].requested, self.now)
        for each in services:
            if (each.gone or self.now) >= self.edges[0]:
                self._count(each)
                self._judge(each, services, created)

    def _judge(self, record: ServiceRecord, services: Sequence[ServiceRecord], created: datetime) -> None:
        """How late it was, as `5spot report` counts that."""
        if record.ready is not None and record.opened is not None and could_be_in_time(record, services, created):
            self.late.append((record.ready - record.opened).total_seconds())

    def _count(self, record: ServiceRecord) -> None:
        self.services += 1
        for begins, ends, what in parts(record, self.now):
            self._spread(self.held, begins, ends)
            if what == "served":
                self._spread(self.served, begins, ends)
        if record.ready is not None:
            self.to_ready.append((record.ready - record.requested).total_seconds())
        if record.reason is not None:
            self.reasons[record.reason.value] += 1
        self.undrained += bool(record.undrained)

    def _spread(self, days: list[timedelta], begins: datetime, ends: datetime) -> None:
        for number in range(len(days)):
            first, last = max(begins, self.edges[number]), min(ends, self.edges[number + 1])
            if first < last:
                days[number] += last - first

    def to_json(self) -> dict[str, Any]:
        """Hours for each day, and how quick and how punctual services were."""
        free = [known - held for known, held in zip(self.known, self.held, strict=True)]
        in_time = sum(each <= PUNCTUAL.total_seconds() for each in self.late)
        return {
            "machines": self.machines,
            "services": self.services,
            "servedHours": [_hours(each) for each in self.served],
            "freeHours": [_hours(each) for each in free],
            "punctual": in_time / len(self.late) if self.late else None,
            "toReady": _spread_of(self.to_ready),
            "late": _spread_of(self.late),
            "reasons": dict(self.reasons.most_common()),
            "undrained": self.undrained,
        }


def _hours(length: timedelta) -> float:
    return round(length.total_seconds() / 3600, 2)


def _spread_of(seconds: Sequence[float]) -> dict[str, Any] | None:
    """Median, ninth decile and all values, sorted, for a chart; None without any."""
    if not seconds:
        return None
    tenths = quantiles(seconds, n=10, method="inclusive") if len(seconds) > 1 else [seconds[0]] * 9
    step = max(1, len(seconds) // 200)
    return {"median": tenths[4], "ninth": tenths[8], "values": sorted(seconds)[::step]}

"""What machines did over a period, from the history in their statuses: hours, punctuality, how services ended, cost.

Pure: `5spot report` prints it, and other programs can use it. A machine serves from when its Node is Ready until its
shutdown begins. Its host is in use from the creation of the Machine until all objects are gone, and free for the rest.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal, InvalidOperation
from statistics import quantiles
from typing import Any, Final

from crds import names
from crds.base import rfc3339
from crds.history import HISTORY_MAX, EndReason, ServiceRecord
from crds.partial import read_partial
from crds.violations import KEY_MAX, printable

PUNCTUAL: Final = timedelta(minutes=1)
"""A Node that is Ready this long after the opening is in time."""
COST_MAX: Final = Decimal(1_000_000)
_HOUR: Final = timedelta(hours=1)
_NOTHING: Final = timedelta(0)


@dataclass(frozen=True, slots=True)
class ReportPeriod:
    """From `since` until `until`, which is now."""

    since: datetime
    until: datetime

    def part_of(self, begins: datetime, ends: datetime | None) -> timedelta:
        """How much of a span lies in the period; one without an end lasts."""
        return max(_NOTHING, min(ends or self.until, self.until) - max(begins, self.since))


@dataclass(frozen=True, slots=True)
class Spread:
    """How long something took, in seconds: the values that half, nine in ten and 99 in 100 do not exceed."""

    count: int
    p50: float
    p90: float
    p99: float

    @classmethod
    def of(cls, seconds: Sequence[float]) -> "Spread":
        """The spread of at least one value."""
        parts = quantiles(seconds, n=100, method="inclusive") if len(seconds) > 1 else [seconds[0]] * 99
        return cls(len(seconds), round(parts[49], 1), round(parts[89], 1), round(parts[98], 1))


@dataclass(frozen=True, slots=True)
class MachineUse:
    """One machine, as far as its history reaches."""

    namespace: str
    name: str
    kind: str
    period: ReportPeriod
    """The part of the period that is known: from its creation, and no longer back than its history reaches."""
    cut: bool
    """Whether the history does not reach back to the beginning of the period."""
    served: timedelta
    in_use: timedelta
    services: int
    due: int
    """Windows that it was to be Ready for."""
    punctual: int
    to_ready: tuple[float, ...]
    cut_short: int
    reclaims: int
    overridden: int
    """Services during which an override was in force."""
    hourly_cost: Decimal | None

    @property
    def hours(self) -> timedelta:
        """What an always-on machine would have served."""
        return max(_NOTHING, self.period.until - self.period.since)

    @property
    def free(self) -> timedelta:
        """How long the host was free for other work."""
        return max(_NOTHING, self.hours - self.in_use)

    @property
    def cost(self) -> Decimal | None:
        """The cost of the hours for which the host was in use."""
        return _cost(self.in_use, self.hourly_cost)

    @property
    def saved(self) -> Decimal | None:
        """The cost of the hours for which the host was free."""
        return _cost(self.free, self.hourly_cost)


@dataclass(frozen=True, slots=True)
class Totals:
    """Over all machines; hours are real numbers, for JSON."""

    machines: int
    hours: float
    served: float
    free: float
    services: int | None
    due: int
    punctual: int
    cut_short: int
    reclaims: int
    overrides: int
    cost: Decimal | None = None
    saved: Decimal | None = None
    to_ready: Mapping[str, Spread] = field(default_factory=dict)
    """By kind of the infrastructure object."""

    @property
    def punctuality(self) -> float | None:
        """The share of windows at whose opening the Node was Ready within a minute."""
        return self.punctual / self.due if self.due else None


@dataclass(frozen=True, slots=True)
class UsageReport:
    """Totals, and a line for each machine where that is known."""

    period: ReportPeriod
    totals: Totals
    machines: tuple[MachineUse, ...] = ()
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "since": rfc3339(self.period.since),
            "until": rfc3339(self.period.until),
            "totals": _totals_json(self.totals),
            "machines": [machine_json(each) for each in self.machines],
            "notes": list(self.notes),
        }


def report_of(raws: Iterable[Mapping[str, Any]], period: ReportPeriod) -> UsageReport:
    """The report on ScheduledMachines as stored."""
    machines = tuple(sorted((machine_use(raw, period) for raw in raws), key=lambda each: (each.namespace, each.name)))
    cut = sum(each.cut for each in machines)
    notes = (_NOTE.format(cut=cut, all=len(machines), kept=HISTORY_MAX),) if cut else ()
    return UsageReport(period, totals_of(machines), machines, notes)


_NOTE: Final = (
    "The history of {cut} of {all} machines does not reach back so far: a status keeps the last {kept} services. Their "
    "figures are for the time that it covers; --prometheus has figures for longer."
)


def machine_use(raw: Mapping[str, Any], period: ReportPeriod) -> MachineUse:
    """What one machine did."""
    spec = read_partial(dict(raw))
    metadata = raw["metadata"]
    created = created_at(raw) or period.since
    records = spec.status.history.records
    known, cut = _known(period, created, records)
    counted = [each for each in records if (each.gone or known.until) > known.since]
    begun = [each for each in counted if each.requested >= known.since]
    verdicts = list(_verdicts(begun, records, created, known.until))
    return MachineUse(
        namespace=metadata.get("namespace", ""),
        name=metadata["name"],
        kind=_kind(raw),
        period=known,
        cut=cut,
        served=sum((_served(each, known) for each in counted), _NOTHING),
        in_use=sum((known.part_of(each.requested, each.gone) for each in counted), _NOTHING),
        services=len(counted),
        due=len(verdicts),
        punctual=sum(verdicts),
        to_ready=tuple((each.ready - each.requested).total_seconds() for each in begun if each.ready),
        cut_short=sum(bool(each.undrained) for each in counted),
        reclaims=sum(each.reason is EndReason.RECLAIMED for each in counted),
        overridden=sum(bool(each.overridden) for each in counted),
        hourly_cost=hourly_cost(metadata.get("annotations") or {}),
    )


def created_at(raw: Mapping[str, Any]) -> datetime | None:
    """When an object was created; None if it has not been yet."""
    text = raw["metadata"].get("creationTimestamp")
    return datetime.fromisoformat(text) if text else None


def _known(period: ReportPeriod, created: datetime, records: Sequence[ServiceRecord]) -> tuple[ReportPeriod, bool]:
    since = max(period.since, created)
    forgotten = len(records) >= HISTORY_MAX and records[0].requested > since
    begins = records[0].requested if forgotten else since
    return ReportPeriod(min(begins, period.until), period.until), forgotten


def _served(record: ServiceRecord, period: ReportPeriod) -> timedelta:
    return period.part_of(record.ready, record.shutdown or record.gone) if record.ready else _NOTHING


def _verdicts(
    begun: Iterable[ServiceRecord], records: Sequence[ServiceRecord], created: datetime, now: datetime
) -> Iterator[bool]:
    """For each window whether the Node was Ready in time; one that is not over yet, and may be so, does not count."""
    for record in begun:
        opened = record.opened
        if opened is None or not could_be_in_time(record, records, created):
            continue
        if record.ready is not None or now > opened + PUNCTUAL:
            yield record.ready is not None and record.ready <= opened + PUNCTUAL


def could_be_in_time(record: ServiceRecord, records: Sequence[ServiceRecord], created: datetime) -> bool:
    """Whether the ScheduledMachine was there at the opening of the window, and this is its first Machine in it."""
    if record.opened is None or record.opened < created:
        return False
    return not any(each.opened == record.opened and each.requested < record.requested for each in records)


def _kind(raw: Mapping[str, Any]) -> str:
    """The class, where a machine names one: its status has a kind only while the infrastructure object is there."""
    match (raw.get("spec") or {}).get("classRef"):
        case {"name": str(name)}:
            return printable(f"class {name}", KEY_MAX)
    for outer, inner in (("status", "infrastructureRef"), ("spec", "infrastructureSpec")):
        match (raw.get(outer) or {}).get(inner):
            case {"kind": str(kind)}:
                return printable(kind, KEY_MAX)
    return "unknown"


def hourly_cost(annotations: Mapping[str, str]) -> Decimal | None:
    """What an hour of the host costs, by its annotation; None without one, or if it is not a sensible number."""
    try:
        found = Decimal(annotations[names.ANNOTATION_HOURLY_COST].strip())
    except (KeyError, AttributeError, InvalidOperation):
        return None
    return found if found.is_finite() and 0 <= found <= COST_MAX else None


def _cost(span: timedelta, rate: Decimal | None) -> Decimal | None:
    if rate is None:
        return None
    return (Decimal(int(span.total_seconds())) / 3600 * rate).quantize(Decimal("0.01"))


def totals_of(machines: Sequence[MachineUse]) -> Totals:
    """The sums."""
    by_kind: dict[str, list[float]] = {}
    for each in machines:
        by_kind.setdefault(each.kind, []).extend(each.to_ready)
    return Totals(
        machines=len(machines),
        hours=hours_of(sum((each.hours for each in machines), _NOTHING)),
        served=hours_of(sum((each.served for each in machines), _NOTHING)),
        free=hours_of(sum((each.free for each in machines), _NOTHING)),
        services=sum(each.services for each in machines),
        due=sum(each.due for each in machines),
        punctual=sum(each.punctual for each in machines),
        cut_short=sum(each.cut_short for each in machines),
        reclaims=sum(each.reclaims for each in machines),
        overrides=sum(each.overridden for each in machines),
        cost=_sum(each.cost for each in machines),
        saved=_sum(each.saved for each in machines),
        to_ready={kind: Spread.of(seconds) for kind, seconds in sorted(by_kind.items()) if seconds},
    )


def _sum(amounts: Iterable[Decimal | None]) -> Decimal | None:
    known = [amount for amount in amounts if amount is not None]
    return sum(known, Decimal(0)) if known else None


def hours_of(span: timedelta) -> float:
    """In hours, to the hundredth."""
    return round(span / _HOUR, 2)


def machine_json(each: MachineUse) -> dict[str, Any]:
    """One machine, for programs; amounts are text, so that nothing rounds them."""
    return {
        "namespace": each.namespace,
        "name": each.name,
        "kind": each.kind,
        "since": rfc3339(each.period.since),
        "hours": hours_of(each.hours),
        "servedHours": hours_of(each.served),
        "freeHours": hours_of(each.free),
        "services": each.services,
        "windowsDue": each.due,
        "windowsPunctual": each.punctual,
        "drainsCutShort": each.cut_short,
        "reclaims": each.reclaims,
        "overrides": each.overridden,
        "cost": str(each.cost) if each.cost is not None else None,
        "saved": str(each.saved) if each.saved is not None else None,
    }


def _totals_json(totals: Totals) -> dict[str, Any]:
    spreads = {
        kind: {"count": each.count, "p50": each.p50, "p90": each.p90, "p99": each.p99}
        for kind, each in totals.to_ready.items()
    }
    return {
        "machines": totals.machines,
        "hours": totals.hours,
        "servedHours": totals.served,
        "freeHours": totals.free,
        "services": totals.services,
        "windowsDue": totals.due,
        "windowsPunctual": totals.punctual,
        "punctuality": round(totals.punctuality, 4) if totals.punctuality is not None else None,
        "secondsToReady": spreads,
        "drainsCutShort": totals.cut_short,
        "reclaims": totals.reclaims,
        "overrides": totals.overrides,
        "cost": str(totals.cost) if totals.cost is not None else None,
        "saved": str(totals.saved) if totals.saved is not None else None,
    }

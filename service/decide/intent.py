"""What the user asked for, as far as it can be understood.

An object stored before a rule existed, or after a roll-back, may be invalid: that blocks creation, but what can still
be read of it (kill switch, schedule, timeouts) goes on governing removal.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple, Protocol

from crds import names
from crds.calendars import CalendarReference, Calendars, Undecidable
from crds.classes import CLASS_FIELD, NO_TENANCY, FoundClass, Tenancy, UnusableClass
from crds.envelope import namespace_of
from crds.overrides import NoOverrides, Override, OverrideSource
from crds.partial import read_partial
from crds.providers import ProviderPolicy
from crds.rules import Verdict, check
from crds.schedule import Schedule
from crds.scheduledmachine import DEFAULT_PRIORITY, NO_STATUS, ScheduledMachineSpec
from crds.schedulespec import ScheduleSpec
from crds.text import one_line
from service.decide.effective import NO_LEADS, Effective, Leads, covers
from service.decide.leads import NO_RULES, LeadRules, NoUsual, UsualSource, rules_of, stored_leads

SINCE_MAX: Final = 64


@dataclass(frozen=True, slots=True)
class Intent:
    """A spec, or the legible parts of one."""

    spec: ScheduledMachineSpec | None
    problems: tuple[str, ...]
    schedule: Schedule | None
    enabled: bool
    kill_switch: bool
    cluster_name: str | None
    grace: timedelta
    drain: timedelta
    priority: int
    undecidable: Undecidable | None = None
    """Why a schedule that is valid by itself cannot be read: its calendars."""
    calendars_pending: bool = False
    """Whether such a calendar exists and the controller has only not worked it out yet."""

    overrides: tuple[Override, ...] = ()
    """Those that name or select the machine and have not ended, or ended within a day."""
    unacknowledged: str | None = None
    """When a reclaim took the machine out of service, if no user has acknowledged that yet: it counts as disabled.

    As the annotation says it, which any user of the machine can write: for people, and never empty."""

    lead_rules: LeadRules = NO_RULES
    leads: Leads = NO_LEADS
    """What these rules amount to now."""

    class_problem: UnusableClass | None = None
    """Why the class of a spec that is valid by itself cannot be used."""

    @property
    def effective(self) -> Effective:
        """Whether the machine should be there, and when that changes. An invalid spec outranks every override."""
        return Effective(self.schedule, () if self.invalid else self.overrides, self.leads)

    @property
    def invalid(self) -> bool:
        """Whether the user has to correct the spec; one whose class cannot be used may be right."""
        return self.spec is None and self.class_problem is None

    def covers(self, moment: datetime) -> bool:
        """Whether the schedule has a window open, in spite of overrides and leads; never, if it cannot be read."""
        return covers(self.schedule, moment.replace(microsecond=0))


class CalendarSource(Protocol):
    """The calendars of all namespaces."""

    def seen_from(self, namespace: str, references: Iterable[CalendarReference]) -> Calendars:
        """The calendars that a schedule of a namespace means by these names, as far as they exist."""
        ...

    def pending(self, namespace: str, references: Iterable[CalendarReference]) -> bool:
        """Whether one of them exists, or may exist, and is not worked out yet."""
        ...


class ClassSource(Protocol):
    """The classes, as far as each namespace may use them."""

    def tenancy(self, namespace: str) -> Tenancy:
        """What ScheduledMachines of a namespace may be."""
        ...


class NoClasses:
    """For a reader that has none: a spec that names one is incomplete."""

    def tenancy(self, namespace: str) -> Tenancy:  # noqa: ARG002
        """None."""
        return NO_TENANCY


class NoCalendars:
    """For a reader that has none: a schedule that names one cannot be read."""

    def seen_from(self, namespace: str, references: Iterable[CalendarReference]) -> Calendars:  # noqa: ARG002
        """None."""
        return {}

    def pending(self, namespace: str, references: Iterable[CalendarReference]) -> bool:  # noqa: ARG002
        """Never."""
        return False


class _Read(NamedTuple):
    schedule: Schedule | None
    undecidable: Undecidable | None = None
    pending: bool = False


def _resolve(schedule: ScheduleSpec | None, namespace: str, calendars: CalendarSource) -> _Read:
    if schedule is None:
        return _Read(None)
    named = schedule.calendars
    found = schedule.resolved(calendars.seen_from(namespace, named) if named else {})
    if isinstance(found, Undecidable):
        return _Read(None, found, calendars.pending(namespace, named))
    return _Read(found)


def valid(
    spec: ScheduledMachineSpec,
    namespace: str = "",
    calendars: CalendarSource | None = None,
    overrides: tuple[Override, ...] = (),
) -> Intent:
    """The intent of a spec that all rules allow, for a machine that has no services yet."""
    read = _resolve(spec.schedule, namespace, calendars or NoCalendars())
    rules = rules_of(spec.schedule, spec.graceful_shutdown_timeout)
    return Intent(
        spec=spec,
        problems=(),
        schedule=read.schedule,
        undecidable=read.undecidable,
        calendars_pending=read.pending,
        enabled=spec.schedule.enabled,
        kill_switch=spec.kill_switch,
        cluster_name=spec.cluster_name,
        grace=spec.graceful_shutdown_timeout,
        drain=spec.node_drain_timeout,
        priority=spec.priority,
        overrides=overrides,
        lead_rules=rules,
        leads=rules.in_force(NO_STATUS),
    )


class Sources(NamedTuple):
    """What an intent depends on beside the object itself; by default, nothing is there."""

    calendars: CalendarSource = NoCalendars()
    overrides: OverrideSource = NoOverrides()
    classes: ClassSource = NoClasses()
    usual: UsualSource = NoUsual()


NO_SOURCES: Final = Sources()


def read_intent(raw: dict[str, Any], policy: ProviderPolicy, sources: Sources = NO_SOURCES) -> Intent:
    """The intent of a stored object; without its calendars or its class, that cannot be read whole."""
    return _with_learnt(_intent(raw, policy, sources), raw, sources.usual)


def _with_learnt(intent: Intent, raw: dict[str, Any], usual: UsualSource) -> Intent:
    """The intent with what Auto amounts to for this object."""
    if not intent.lead_rules.is_auto:
        return intent
    rules = replace(intent.lead_rules, usual=usual.like(raw))
    return replace(intent, lead_rules=rules, leads=rules.in_force(stored_leads(raw)))


def _intent(raw: dict[str, Any], policy: ProviderPolicy, sources: Sources) -> Intent:
    tenancy = sources.classes.tenancy(namespace_of(raw))
    verdict = check(raw, policy=policy, tenancy=tenancy, unknown="ignore")
    concerning = _overrides(raw, sources.overrides)
    if verdict.complete is not None and not verdict.violations:
        return _held(raw, valid(verdict.complete, namespace_of(raw), sources.calendars, concerning))
    left = replace(_legible(raw, _problems(verdict), sources.calendars), overrides=concerning)
    return _held(raw, _with_class(left, raw, verdict))


def _held(raw: dict[str, Any], intent: Intent) -> Intent:
    """The intent, disabled if a reclaim is not acknowledged."""
    metadata = raw.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    if not isinstance(annotations, dict) or names.ANNOTATION_RECLAIM_UNACKNOWLEDGED not in annotations:
        return intent
    since = annotations[names.ANNOTATION_RECLAIM_UNACKNOWLEDGED]
    shown = one_line(since, SINCE_MAX) if isinstance(since, str) else ""
    return replace(intent, enabled=False, unacknowledged=shown or "an unknown time")


def _problems(verdict: Verdict) -> tuple[str, ...]:
    return tuple(f"{one.field}: {one.message}" for one in verdict.violations)


def _with_class(intent: Intent, raw: dict[str, Any], verdict: Verdict) -> Intent:
    """What a class still says about the removal of a machine that cannot be created now."""
    found = verdict.of_class
    if found is None:
        return intent
    if isinstance(found, UnusableClass) and all(one.field == CLASS_FIELD for one in verdict.violations):
        intent = replace(intent, class_problem=found)
    return _with_its_timeouts(intent, raw, found)


def _with_its_timeouts(intent: Intent, raw: dict[str, Any], found: FoundClass) -> Intent:
    own, grace, drain = raw["spec"], found.grace, found.drain
    if grace is not None and own.get("gracefulShutdownTimeout") is None:
        intent = replace(intent, grace=grace)
    return replace(intent, drain=drain) if drain is not None and own.get("nodeDrainTimeout") is None else intent


def _overrides(raw: dict[str, Any], source: OverrideSource) -> tuple[Override, ...]:
    """The overrides about a stored object, with ends in whole seconds, to which all boundaries are exact."""
    metadata = raw.get("metadata")
    known: dict[str, Any] = metadata if isinstance(metadata, dict) else {}
    labels = known.get("labels")
    found = source.about(namespace_of(raw), str(known.get("name", "")), labels if isinstance(labels, dict) else {})
    return tuple(map(_in_seconds, found))


def _in_seconds(override: Override) -> Override:
    begins, ends = override.begins, override.ends
    if not begins.microsecond and not ends.microsecond:
        return override
    return replace(override, begins=begins.replace(microsecond=0), ends=ends.replace(microsecond=0))


def _legible(raw: dict[str, Any], problems: tuple[str, ...], calendars: CalendarSource) -> Intent:
    left = read_partial(raw)
    read = _resolve(left.schedule, namespace_of(raw), calendars)
    rules = rules_of(left.schedule, left.graceful_shutdown_timeout)
    return Intent(
        spec=None,
        problems=problems,
        schedule=read.schedule,
        undecidable=read.undecidable,
        calendars_pending=read.pending,
        enabled=left.schedule.enabled if left.schedule else not _says_disabled(raw),
        kill_switch=left.kill_switch,
        cluster_name=left.cluster_name or None,
        grace=left.graceful_shutdown_timeout,
        drain=left.node_drain_timeout,
        priority=DEFAULT_PRIORITY,
        lead_rules=rules,
        leads=rules.in_force(NO_STATUS),
    )


def _says_disabled(raw: dict[str, Any]) -> bool:
    try:
        return raw["spec"]["schedule"]["enabled"] is False
    except (KeyError, TypeError):
        return False

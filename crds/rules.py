"""The one rulebook: what may be said in a ScheduledMachine, for webhook, command line and reconciler alike.

Single fields are judged by the models, this module adds the rules that look at more than one field, at the
operator's policy, or at the object as it was before.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from pydantic import ValidationError

from crds import cel, syntax
from crds.advice import warnings_for
from crds.bounds import fitted
from crds.changes import merely_being_deleted, same, what_it_changes
from crds.envelope import UnknownFields, envelope_rules, namespace_of
from crds.providers import BOOTSTRAP, DEFAULT_POLICY, INFRASTRUCTURE, ProviderPolicy
from crds.scheduledmachine import Metadata, ScheduledMachine, ScheduledMachineSpec
from crds.schedulespec import ScheduleSpec, never_opens
from crds.violations import Violation, ViolationReason, shown, translated

Raw = dict[str, Any]

CRON_OR_WEEKLY: Final = ("spec.schedule.cron", "spec.schedule.daysOfWeek", "spec.schedule.hoursOfDay")
SCHEDULE_CHOICE: Final = (*CRON_OR_WEEKLY, "spec.schedule.windows")


@dataclass(frozen=True, slots=True)
class Verdict:
    """The judgement on a manifest: the parsed object if it could be read, and all that is to be said about it."""

    model: ScheduledMachine | None
    violations: tuple[Violation, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def allowed(self) -> bool:
        """Whether the object may be stored."""
        return not self.violations


def check(
    raw: Any, *, policy: ProviderPolicy = DEFAULT_POLICY, old: Raw | None = None, unknown: UnknownFields = "forbid"
) -> Verdict:
    """Judge an object that is to be stored; `old` is what an update would replace.

    Never raises: whatever `raw` is, all that is wrong with it is in the verdict. An update is judged only on what it
    changes: then `model` is None if the object as a whole cannot be read. One that leaves the spec of an object that is
    being deleted alone is always allowed.
    """
    if type(raw) is not dict:
        return Verdict(None, (Violation.of("", raw, "must be an object", ViolationReason.TYPE),))
    spec, violations = _examined(raw, policy, unknown)
    model = ScheduledMachine.of(Metadata.read(raw.get("metadata")), spec) if spec and not violations else None
    if old is not None:
        violations = [] if merely_being_deleted(raw, old) else _on_update(raw, old, violations, policy)
    warnings = warnings_for(model.spec) if model and not violations else ()
    return Verdict(model, tuple(violations), warnings)


def _examined(
    given: Raw, policy: ProviderPolicy, unknown: UnknownFields
) -> tuple[ScheduledMachineSpec | None, list[Violation]]:
    raw, violations = fitted(given)
    spec = raw.get("spec")
    parsed, wrong = _parsed(spec, unknown)
    violations += wrong
    violations += envelope_rules(raw, unknown)
    if type(spec) is dict:
        violations += _schedule_rules(spec)
        violations += _exception_rules(spec)
        violations += _provider_rules(spec, namespace_of(raw), policy)
        violations += _repeated_taints(spec)
        violations += _never_opens(parsed.schedule if parsed else _schedule_alone(spec, unknown))
    return parsed, violations


def _on_update(raw: Raw, old: Raw, violations: list[Violation], policy: ProviderPolicy) -> list[Violation]:
    if violations:
        _, before = _examined(old, policy, "forbid")
        violations = what_it_changes(raw, old, violations, before)
    return [*violations, *_moved_cluster(raw, old)]


def _moved_cluster(raw: Raw, old: Raw) -> Iterator[Violation]:
    before, after = (_at(each, "spec", "clusterName") for each in (old, raw))
    if not same(before, after) and _at(old, "status", "machineRef"):
        message = f"cannot change while a Machine exists; it is {shown(before)}"
        yield Violation.of("spec.clusterName", after, message, ViolationReason.FORBIDDEN)


def _at(raw: Any, *path: str) -> Any:
    for name in path:
        raw = raw.get(name) if type(raw) is dict else None
    return raw


def _parsed(spec: Any, unknown: UnknownFields) -> tuple[ScheduledMachineSpec | None, list[Violation]]:
    if spec is None:
        return None, [Violation("spec", None, "is required", ViolationReason.REQUIRED)]
    try:
        return ScheduledMachineSpec.parse(spec, unknown=unknown), []
    except ValidationError as error:
        return None, translated(error, "spec", ScheduledMachineSpec)


def _schedule_rules(spec: Raw) -> Iterator[Violation]:
    schedule = spec.get("schedule")
    if type(schedule) is not dict:
        return
    cron, weekly = schedule.get("cron"), schedule.get("daysOfWeek") or schedule.get("hoursOfDay")
    windows = schedule.get("windows")
    if cron is not None and weekly:
        yield Violation.of("spec.schedule.cron", cron, cel.CRON_AND_WEEKLY, ViolationReason.FORBIDDEN, CRON_OR_WEEKLY)
    if windows and (cron is not None or weekly):
        message = cel.WINDOWS_AND_OTHERS
        yield Violation.of("spec.schedule.windows", windows, message, ViolationReason.FORBIDDEN, SCHEDULE_CHOICE)
    if cron is None and not weekly and not windows:
        yield Violation.of("spec.schedule", schedule, cel.NO_CHOICE, ViolationReason.REQUIRED, SCHEDULE_CHOICE)
    if cron is None and schedule.get("duration") is not None:
        message = "needs cron: it says how long a window opened by cron lasts"
        inputs = ("spec.schedule.duration", "spec.schedule.cron")
        yield Violation.of("spec.schedule.duration", schedule["duration"], message, ViolationReason.FORBIDDEN, inputs)


def _exception_rules(spec: Raw) -> Iterator[Violation]:
    schedule = spec.get("schedule")
    exceptions = schedule.get("exceptions") if type(schedule) is dict else None
    for index, each in enumerate(exceptions if type(exceptions) is list else ()):
        if type(each) is dict and bool(each.get("dates")) == (each.get("calendarRef") is not None):
            yield Violation.of(f"spec.schedule.exceptions[{index}]", each, cel.EXCEPTION["message"])


def _schedule_alone(spec: Raw, unknown: UnknownFields) -> ScheduleSpec | None:
    """The schedule, if it can be read, of a spec that cannot be read as a whole."""
    try:
        return ScheduleSpec.parse(spec.get("schedule"), unknown=unknown)
    except ValidationError:
        return None


def _never_opens(schedule: ScheduleSpec | None) -> Iterator[Violation]:
    if schedule and schedule.cron is not None and never_opens(schedule.recurring):
        message, inputs = "never fires: there is no such date or time", ("spec.schedule.cron", "spec.schedule.timezone")
        yield Violation.of("spec.schedule.cron", str(schedule.cron), message, inputs=inputs)


def _provider_rules(spec: Raw, namespace: str, policy: ProviderPolicy) -> Iterator[Violation]:
    for envelope in (BOOTSTRAP, INFRASTRUCTURE):
        given = spec.get(envelope)
        if type(given) is dict:
            yield from _envelope_rules(envelope, given, namespace, policy)


def _envelope_rules(envelope: str, given: Raw, namespace: str, policy: ProviderPolicy) -> Iterator[Violation]:
    path, version, kind = f"spec.{envelope}", given.get("apiVersion"), given.get("kind")
    group = version.partition("/")[0] if syntax.is_api_version(version) else None
    if group is not None and (refusal := policy.refuses_group(envelope, group)):
        yield Violation.of(f"{path}.apiVersion", version, refusal, ViolationReason.NOT_SUPPORTED)
    if syntax.is_kind(kind) and (refusal := policy.refuses_kind(envelope, group or "", kind)):
        yield Violation.of(f"{path}.kind", kind, refusal, ViolationReason.NOT_SUPPORTED)
    elsewhere = given.get("namespace")
    if type(elsewhere) is str and elsewhere != namespace:
        message = (
            f"must be the ScheduledMachine's own namespace, {shown(namespace)}, or left out: "
            "an owner reference cannot cross namespaces"
        )
        yield Violation.of(f"{path}.namespace", elsewhere, message, ViolationReason.FORBIDDEN)


def _repeated_taints(spec: Raw) -> Iterator[Violation]:
    taints = spec.get("nodeTaints")
    if type(taints) is not list:
        return
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(taints):
        identity = _taint_identity(taint)
        if identity is not None and identity in seen:
            what = f"{identity[0]}:{identity[1]}"
            message = "repeats an earlier taint; key and effect together must be unique"
            yield Violation.of(f"spec.nodeTaints[{index}]", what, message, ViolationReason.DUPLICATE)
        elif identity is not None:
            seen.add(identity)


def _taint_identity(taint: Any) -> tuple[str, str] | None:
    key, effect = (taint.get("key"), taint.get("effect")) if type(taint) is dict else (None, None)
    return (key, effect) if type(key) is str and type(effect) is str else None

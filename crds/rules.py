"""The one rulebook: what may be said in a ScheduledMachine, for webhook, command line and reconciler alike.

Single fields are judged by the models, this module adds the rules that look at more than one field, at the
operator's policy, or at the object as it was before.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, NamedTuple

from pydantic import ValidationError

from crds import cel, names
from crds.advice import warnings_for
from crds.bounds import DEPTH_MAX, DEPTH_MESSAGE, fitted
from crds.changes import answers_for, same
from crds.classes import (
    CLASS_FIELD,
    NO_TENANCY,
    ClassProblem,
    FoundClass,
    MachineClass,
    Tenancy,
    UnusableClass,
    resolve,
)
from crds.envelope import UnknownFields, envelope_rules, namespace_of, parsed_spec
from crds.parameters import deeper_than, parameter_violations
from crds.providerrules import provider_violations
from crds.providers import BOOTSTRAP, DEFAULT_POLICY, INFRASTRUCTURE, ProviderPolicy
from crds.scheduledmachine import ClassRef, Metadata, ScheduledMachine, ScheduledMachineSpec, WrittenSpec
from crds.schedulespec import ScheduleSpec, never_opens
from crds.taintrules import repeated_taints
from crds.unread import UNREAD_MAX, unread_fields
from crds.violations import Violation, ViolationReason, shown

Raw = dict[str, Any]

CRON_OR_WEEKLY: Final = ("spec.schedule.cron", "spec.schedule.daysOfWeek", "spec.schedule.hoursOfDay")
SCHEDULE_CHOICE: Final = (*CRON_OR_WEEKLY, "spec.schedule.windows")
SPECS_OR_CLASS: Final = (CLASS_FIELD, *(f"spec.{name}" for name in cel.PROVIDER_SPECS))
ONLY_CLASSES: Final = (
    "is required in this namespace, instead of bootstrapSpec and infrastructureSpec: its label "
    f"{names.LABEL_TENANCY} is {names.TENANCY_CLASSES}"
)
_NO_CREATION: Final = "no machine is created until that is corrected"
_UNTIL: Final = {
    ClassProblem.NOT_FOUND: "no machine is created until it does",
    ClassProblem.INVALID: _NO_CREATION,
    ClassProblem.NOT_ALLOWED: _NO_CREATION,
    ClassProblem.UNKNOWN: "the parameters are not checked",
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """The judgement on a manifest: the parsed spec if it could be read, and all that is to be said about it."""

    complete: ScheduledMachineSpec | None
    """With the class filled in; None also if the class cannot be used."""
    violations: tuple[Violation, ...] = ()
    warnings: tuple[str, ...] = ()
    written: WrittenSpec | None = None
    """The spec without what its class adds."""
    of_class: FoundClass | None = None
    """The class that it names, or why that cannot be used."""
    metadata: Any = None
    """As it was given."""

    @property
    def model(self) -> ScheduledMachine | None:
        """The object; made when it is asked for, as webhooks and controller need no more than the spec."""
        return None if self.complete is None else ScheduledMachine.of(Metadata.read(self.metadata), self.complete)

    @property
    def allowed(self) -> bool:
        """Whether the object may be stored."""
        return not self.violations


def check(
    raw: Any,
    *,
    policy: ProviderPolicy = DEFAULT_POLICY,
    tenancy: Tenancy = NO_TENANCY,
    old: Raw | None = None,
    unknown: UnknownFields = "forbid",
) -> Verdict:
    """Judge an object that is to be stored; `old` is what an update would replace.

    Never raises: whatever `raw` is, all that is wrong with it is in the verdict. An update is judged only on what it
    changes: then `complete` is None if the object as a whole cannot be read. One that leaves the spec of an object
    that is being deleted alone is always allowed.
    """
    by = _Rulers(policy, tenancy)
    if type(raw) is not dict:
        return Verdict(None, (Violation.of("", raw, "must be an object", ViolationReason.TYPE),))
    found, violations = _examined(raw, by, unknown)
    whole = not violations
    violations = answers_for(raw, old, violations, lambda before: _examined(before, by, "forbid")[1], _moved_cluster)
    if not whole or found.written is None:
        return Verdict(None, tuple(violations), of_class=found.of_class)
    warnings = () if violations else (*_class_warnings(found.of_class), *warnings_for(found.complete or found.written))
    return Verdict(found.complete, tuple(violations), warnings, found.written, found.of_class, raw.get("metadata"))


class _Examined(NamedTuple):
    """A spec as it was written, as it is with its class, and that class; None for what cannot be read, or is not."""

    written: WrittenSpec | None
    complete: ScheduledMachineSpec | None
    of_class: FoundClass | None


class _Rulers(NamedTuple):
    policy: ProviderPolicy
    tenancy: Tenancy


def _examined(given: Raw, by: _Rulers, unknown: UnknownFields) -> tuple[_Examined, list[Violation]]:
    raw, violations = fitted(given)
    spec = raw.get("spec")
    parsed, wrong = _parsed(spec, unknown)
    found = _class_of(spec, by.tenancy)
    violations += wrong
    violations += envelope_rules(raw, unknown)
    if type(spec) is dict:
        violations += _unread_schedule(spec) if unknown == "ignore" else ()
        violations += _schedule_rules(spec)
        violations += _exception_rules(spec)
        violations += _class_rules(spec)
        violations += _tenancy_rules(spec, found, by.tenancy)
        violations += provider_violations(spec, by.policy, namespace_of(raw))
        violations += repeated_taints(spec)
        violations += _never_opens(parsed.schedule if parsed else _schedule_alone(spec, unknown))
    complete, of_class = _completed(parsed, found) if parsed else (None, _parameters_alone(spec, found))
    return _Examined(parsed, complete, found), [*violations, *of_class]


def _class_of(spec: Any, tenancy: Tenancy) -> FoundClass | None:
    """The class that a spec names, even if the spec cannot be read as a whole."""
    named = _named_class(spec) if type(spec) is dict else None
    try:
        return tenancy.find(ClassRef.parse(named).name) if named is not None else None
    except ValidationError:
        return None


def _parameters_alone(spec: Any, found: FoundClass | None) -> Sequence[Violation]:
    """What its class does not take, of a spec that cannot be read as a whole."""
    given = spec.get("parameters") if type(spec) is dict else None
    values = {} if given is None else given
    if not isinstance(found, MachineClass) or type(values) is not dict:
        return ()
    return parameter_violations(values, found.parameters)


def _completed(
    written: WrittenSpec, found: FoundClass | None
) -> tuple[ScheduledMachineSpec | None, Sequence[Violation]]:
    """The complete spec, if there is no class or one that can be used, and what its class does not take."""
    if isinstance(written, ScheduledMachineSpec):
        return written, ()
    if not isinstance(found, MachineClass):
        return None, ()
    complete, violations = resolve(written, found)
    if complete is None:
        return None, violations
    return complete, list(_too_deep(found, complete))


def _too_deep(found: MachineClass, complete: ScheduledMachineSpec) -> Iterator[Violation]:
    """What is wrong with the objects that a class makes of these parameters."""
    for name, provider in ((BOOTSTRAP, complete.bootstrap_spec), (INFRASTRUCTURE, complete.infrastructure_spec)):
        if deeper_than(provider.spec, DEPTH_MAX):
            message = f"make {name} of the class {found.name} too deep: it {DEPTH_MESSAGE}"
            yield Violation.of("spec.parameters", complete.parameters, message, ViolationReason.TOO_LONG)


def _class_warnings(found: FoundClass | None) -> Iterator[str]:
    if isinstance(found, UnusableClass):
        yield f"{CLASS_FIELD}: {found.message}; {_UNTIL[found.problem]}"


def _moved_cluster(raw: Raw, old: Raw) -> Iterator[Violation]:
    before, after = (_at(each, "spec", "clusterName") for each in (old, raw))
    if not same(before, after) and _at(old, "status", "machineRef"):
        message = f"cannot change while a Machine exists; it is {shown(before)}"
        yield Violation.of("spec.clusterName", after, message, ViolationReason.FORBIDDEN)


def _at(raw: Any, *path: str) -> Any:
    for name in path:
        raw = raw.get(name) if type(raw) is dict else None
    return raw


def _parsed(spec: Any, unknown: UnknownFields) -> tuple[WrittenSpec | None, list[Violation]]:
    has_class = type(spec) is dict and _named_class(spec) is not None
    return parsed_spec(WrittenSpec if has_class else ScheduledMachineSpec, spec, unknown)


def _unread_schedule(spec: Raw) -> Iterator[Violation]:
    """Unknown fields of a stored schedule: nothing may be done for the sake of one that is not understood whole."""
    return islice(unread_fields(ScheduleSpec, spec.get("schedule"), "spec.schedule"), UNREAD_MAX)


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


def _class_rules(spec: Raw) -> Iterator[Violation]:
    """Either a class, or both specs; the model asks for those where there is no class."""
    for name in cel.PROVIDER_SPECS:
        if _named_class(spec) is not None and spec.get(name) is not None:
            inputs = (f"spec.{name}", CLASS_FIELD)
            yield Violation.of(f"spec.{name}", spec[name], cel.CLASS_AND_SPEC, ViolationReason.FORBIDDEN, inputs)
    if _named_class(spec) is None and spec.get("parameters") is not None:
        inputs = ("spec.parameters", CLASS_FIELD)
        given = spec["parameters"]
        yield Violation.of("spec.parameters", given, cel.PARAMETERS_ALONE, ViolationReason.FORBIDDEN, inputs)


def _named_class(spec: Raw) -> Any:
    return spec.get("classRef")


def _tenancy_rules(spec: Raw, found: FoundClass | None, tenancy: Tenancy) -> Iterator[Violation]:
    """What the namespace allows."""
    if tenancy.only_classes and _named_class(spec) is None:
        yield Violation.of(CLASS_FIELD, None, ONLY_CLASSES, ViolationReason.FORBIDDEN, SPECS_OR_CLASS)
    if isinstance(found, UnusableClass) and found.problem is ClassProblem.NOT_ALLOWED:
        inputs = (CLASS_FIELD, "spec.parameters")
        yield Violation.of(CLASS_FIELD, _named_class(spec), found.message, ViolationReason.FORBIDDEN, inputs)

"""The one rulebook: what may be said in a ScheduledMachine, for webhook, command line and reconciler alike.

Single fields are judged by the models, this module adds the rules that look at more than one field, at the
operator's policy, or at the object as it was before.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal

from pydantic import ValidationError

from crds import names, syntax
from crds.advice import warnings_for
from crds.bounds import oversized
from crds.changes import being_deleted, what_it_changes
from crds.invalid import InvalidValue
from crds.providers import BOOTSTRAP, DEFAULT_POLICY, INFRASTRUCTURE, ProviderPolicy
from crds.scheduledmachine import Metadata, ScheduledMachine, ScheduledMachineSpec, ScheduleSpec, never_opens
from crds.status import ScheduledMachineStatus
from crds.violations import Reason, Violation, shown, translated

Raw = dict[str, Any]
UnknownFields = Literal["forbid", "ignore"]

TOP_LEVEL: Final = frozenset({"apiVersion", "kind", "metadata", "spec", "status"})
PLAIN_METADATA: Final = frozenset({"name", "namespace", "generateName"})
SCHEDULE_CHOICE: Final = ("spec.schedule.cron", "spec.schedule.daysOfWeek", "spec.schedule.hoursOfDay")
GENERATED_SUFFIX: Final = 5
"""What the API server appends to `generateName`."""


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

    Never raises: whatever `raw` is, all that is wrong with it is in the verdict. An object that is being deleted is
    always allowed, and an update is judged only on what it changes: then `model` is None if the object as a whole
    cannot be read.
    """
    if type(raw) is not dict:
        return Verdict(None, (Violation("", shown(raw), "must be an object", Reason.TYPE),))
    spec, violations = _examined(raw, policy, unknown)
    model = ScheduledMachine.of(Metadata.read(raw.get("metadata")), spec) if spec and not violations else None
    if old is not None:
        violations = [] if being_deleted(raw) else _on_update(raw, old, violations, policy)
    warnings = warnings_for(model.spec) if model and not violations else ()
    return Verdict(model, tuple(violations), warnings)


def read_stored(raw: Raw, *, policy: ProviderPolicy = DEFAULT_POLICY) -> tuple[ScheduledMachine | None, Verdict]:
    """Read what the API server has stored, with its status; unknown fields are ignored, as a newer version wrote them.

    The object is None if nothing may be created from it; what of it still counts is in `crds.remains`.
    """
    verdict = check(raw, policy=policy, unknown="ignore")
    if verdict.model is None:
        return None, verdict
    status = ScheduledMachineStatus.read(raw.get("status"))
    return ScheduledMachine.of(verdict.model.metadata, verdict.model.spec, status), verdict


def _examined(
    raw: Raw, policy: ProviderPolicy, unknown: UnknownFields
) -> tuple[ScheduledMachineSpec | None, list[Violation]]:
    if too_much := oversized(raw):
        return None, too_much
    spec = raw.get("spec")
    parsed, violations = _parsed(spec, unknown)
    violations += _identity(raw)
    if unknown == "forbid":
        violations += _unknown_at_top(raw)
    if type(spec) is dict:
        violations += _schedule_rules(spec)
        violations += _provider_rules(spec, _namespace(raw), policy)
        violations += _repeated_taints(spec)
    if parsed and parsed.schedule.cron is not None and never_opens(parsed.schedule.compiled):
        violations.append(_never_opens(parsed.schedule))
    return parsed, violations


def _on_update(raw: Raw, old: Raw, violations: list[Violation], policy: ProviderPolicy) -> list[Violation]:
    if violations:
        _, before = _examined(old, policy, "forbid")
        violations = what_it_changes(raw, old, violations, before)
    return [*violations, *_moved_cluster(raw, old)]


def _moved_cluster(raw: Raw, old: Raw) -> Iterator[Violation]:
    before, after = (_at(each, "spec", "clusterName") for each in (old, raw))
    if before != after and _at(old, "status", "machineRef"):
        message = f"cannot change while a Machine exists; it is {shown(before)}"
        yield Violation("spec.clusterName", shown(after), message, Reason.FORBIDDEN)


def _at(raw: Any, *path: str) -> Any:
    for name in path:
        raw = raw.get(name) if type(raw) is dict else None
    return raw


def _parsed(spec: Any, unknown: UnknownFields) -> tuple[ScheduledMachineSpec | None, list[Violation]]:
    if spec is None:
        return None, [Violation("spec", None, "is required", Reason.REQUIRED)]
    try:
        return ScheduledMachineSpec.parse(spec, unknown=unknown), []
    except ValidationError as error:
        return None, translated(error, "spec", ScheduledMachineSpec)


def _unknown_at_top(raw: Raw) -> Iterator[Violation]:
    for key in raw.keys() - TOP_LEVEL:
        known = ", ".join(sorted(TOP_LEVEL))
        yield Violation(str(shown(key)), shown(raw[key]), f"unknown field; known here: {known}", Reason.FORBIDDEN)


def _identity(raw: Raw) -> Iterator[Violation]:
    """Rules on what the object is and what it is called."""
    if raw.get("apiVersion") != names.API_VERSION:
        yield Violation("apiVersion", shown(raw.get("apiVersion")), f"must be {names.API_VERSION}")
    if raw.get("kind") != names.KIND:
        yield Violation("kind", shown(raw.get("kind")), f"must be {names.KIND}")
    metadata = raw.get("metadata")
    if type(metadata) is not dict:
        yield Violation("metadata", shown(metadata), "must be an object with a name", Reason.REQUIRED)
        return
    yield from _name(metadata)
    if not metadata.keys() <= PLAIN_METADATA:
        yield from _metadata(metadata)
    namespace = metadata.get("namespace")
    if namespace is not None:
        yield from _judged("metadata.namespace", namespace, syntax.namespace)


def _metadata(metadata: Raw) -> list[Violation]:
    try:
        Metadata.parse({**metadata, "name": "", "namespace": ""})
    except ValidationError as error:
        return translated(error, "metadata", Metadata)
    return []


def _name(metadata: Raw) -> Iterator[Violation]:
    name, stem = metadata.get("name"), metadata.get("generateName")
    if name:
        yield from _judged("metadata.name", name, syntax.machine_name)
    elif not stem:
        yield Violation("metadata.name", None, "is required", Reason.REQUIRED)
    elif type(stem) is not str or len(stem) > syntax.MACHINE_NAME_MAX - GENERATED_SUFFIX:
        room = syntax.MACHINE_NAME_MAX - GENERATED_SUFFIX
        yield Violation("metadata.generateName", shown(stem), f"must be text of at most {room} characters")


def _judged(field: str, value: Any, rule: Callable[[str], object]) -> Iterator[Violation]:
    if type(value) is not str:
        yield Violation(field, shown(value), "must be a string", Reason.TYPE)
        return
    try:
        rule(value)
    except InvalidValue as error:
        yield Violation(field, shown(value), error.message)


def _namespace(raw: Raw) -> str:
    metadata = raw.get("metadata")
    return (metadata.get("namespace") or "default") if type(metadata) is dict else "default"


def _schedule_rules(spec: Raw) -> Iterator[Violation]:
    schedule = spec.get("schedule")
    if type(schedule) is not dict:
        return
    cron, weekly = schedule.get("cron"), schedule.get("daysOfWeek") or schedule.get("hoursOfDay")
    if cron is not None and weekly:
        message = "cannot be combined with daysOfWeek or hoursOfDay; use one or the other"
        yield Violation("spec.schedule.cron", shown(cron), message, Reason.FORBIDDEN, SCHEDULE_CHOICE)
    if cron is None and not weekly:
        message = "needs daysOfWeek or hoursOfDay with at least one entry, or cron"
        yield Violation("spec.schedule", shown(schedule), message, Reason.REQUIRED, SCHEDULE_CHOICE)
    if cron is None and schedule.get("duration") is not None:
        message = "needs cron: it says how long a window opened by cron lasts"
        inputs = ("spec.schedule.duration", "spec.schedule.cron")
        yield Violation("spec.schedule.duration", shown(schedule["duration"]), message, Reason.FORBIDDEN, inputs)


def _never_opens(schedule: ScheduleSpec) -> Violation:
    return Violation("spec.schedule.cron", shown(str(schedule.cron)), "never fires: there is no such date or time")


def _provider_rules(spec: Raw, namespace: str, policy: ProviderPolicy) -> Iterator[Violation]:
    for envelope in (BOOTSTRAP, INFRASTRUCTURE):
        given = spec.get(envelope)
        if type(given) is dict:
            yield from _envelope_rules(envelope, given, namespace, policy)


def _envelope_rules(envelope: str, given: Raw, namespace: str, policy: ProviderPolicy) -> Iterator[Violation]:
    path, version, kind = f"spec.{envelope}", given.get("apiVersion"), given.get("kind")
    group = version.partition("/")[0] if syntax.is_api_version(version) else None
    if group is not None and (refusal := policy.refuses_group(envelope, group)):
        yield Violation(f"{path}.apiVersion", shown(version), refusal, Reason.NOT_SUPPORTED)
    if type(kind) is str and (refusal := policy.refuses_kind(group or "", kind)):
        yield Violation(f"{path}.kind", shown(kind), refusal, Reason.NOT_SUPPORTED)
    elsewhere = given.get("namespace")
    if type(elsewhere) is str and elsewhere != namespace:
        message = (
            f"must be the ScheduledMachine's own namespace, {shown(namespace)}, or left out: "
            "an owner reference cannot cross namespaces"
        )
        yield Violation(f"{path}.namespace", shown(elsewhere), message, Reason.FORBIDDEN)


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
            yield Violation(f"spec.nodeTaints[{index}]", shown(what), message, Reason.DUPLICATE)
        elif identity is not None:
            seen.add(identity)


def _taint_identity(taint: Any) -> tuple[str, str] | None:
    key, effect = (taint.get("key"), taint.get("effect")) if type(taint) is dict else (None, None)
    return (key, effect) if type(key) is str and type(effect) is str else None

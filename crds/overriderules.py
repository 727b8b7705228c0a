"""What may be said in an override, for webhook, command line and controller alike."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from crds import names, selector, syntax
from crds.base import rfc3339
from crds.bounds import OVERRIDE, fitted
from crds.changes import answers_for, same
from crds.envelope import UnknownFields, envelope_rules, parsed_spec
from crds.scheduleoverride import (
    ENDS,
    FIXED_MESSAGE,
    IMMUTABLE,
    REQUESTED_BY,
    TARGET,
    OverrideSpec,
    OverrideStatus,
    in_days,
)
from crds.violations import Violation, ViolationReason

Raw = dict[str, Any]

NAME_MAX: Final = syntax.PREFIX_MAX
DEFAULT_LONGEST: Final = timedelta(days=31)
"""How long after its acceptance an override may end, if the operator is not configured otherwise."""


@dataclass(frozen=True, slots=True)
class OverrideVerdict:
    """The judgement on an override: its spec if it could be read, and all that is wrong with it."""

    spec: OverrideSpec | None
    violations: tuple[Violation, ...] = ()

    @property
    def allowed(self) -> bool:
        """Whether the object may be stored."""
        return not self.violations


def check_override(raw: Any, *, old: Raw | None = None, unknown: UnknownFields = "forbid") -> OverrideVerdict:
    """Judge an override that is to be stored; `old` is what an update would replace. Never raises.

    An update answers only for what it changes; `spec` is None if the override as a whole cannot be read. Whose name
    `requestedBy` has to be is not judged here: only the webhook knows the caller.
    """
    if type(raw) is not dict:
        return OverrideVerdict(None, (Violation.of("", raw, "must be an object", ViolationReason.TYPE),))
    spec, violations = _examined(raw, unknown)
    readable = spec if not violations else None
    held = answers_for(raw, old, violations, lambda before: _examined(before, "forbid")[1], _changed)
    return OverrideVerdict(readable, tuple(held))


def _examined(given: Raw, unknown: UnknownFields) -> tuple[OverrideSpec | None, list[Violation]]:
    raw, violations = fitted(given, OVERRIDE)
    parsed, wrong = parsed_spec(OverrideSpec, raw.get("spec"), unknown)
    violations += wrong
    violations += envelope_rules(raw, unknown, kind=names.OVERRIDE_KIND, name_max=NAME_MAX)
    violations += _spec_rules(spec_of(raw), parsed)
    return parsed, violations


def _spec_rules(spec: Raw, parsed: OverrideSpec | None) -> Iterator[Violation]:
    if spec and bool(spec.get("machines")) == (spec.get("selector") is not None):
        yield Violation.of("spec", spec, TARGET["message"], inputs=("spec.machines", "spec.selector"))
    if parsed is not None and parsed.begins is not None and parsed.until <= parsed.begins:
        yield Violation.of("spec.until", spec["until"], ENDS["message"], inputs=("spec.until", "spec.from"))
    selecting = spec.get("selector")
    if type(selecting) is dict:
        if not selecting.get("matchLabels") and not selecting.get("matchExpressions"):
            yield Violation.of("spec.selector", selecting, selector.EMPTY["message"], ViolationReason.REQUIRED)
        yield from selector.expression_violations(selecting, "spec.selector")


def _changed(raw: Raw, old: Raw) -> Iterator[Violation]:
    """What an update changes and must not; null counts as absent."""
    spec, before = spec_of(raw), spec_of(old)
    for field in IMMUTABLE:
        if not same(spec.get(field), before.get(field)):
            yield Violation.of(f"spec.{field}", spec.get(field), FIXED_MESSAGE, ViolationReason.FORBIDDEN)
    if same(spec.get("until"), before.get("until")) and not same(spec.get("requestedBy"), before.get("requestedBy")):
        given = spec.get("requestedBy")
        yield Violation.of("spec.requestedBy", given, REQUESTED_BY["message"], ViolationReason.FORBIDDEN)


def end_warnings(spec: OverrideSpec, stored: Raw | None, now: datetime, longest: timedelta) -> Iterator[str]:
    """What is legal but in vain: an end in the past, or later than the controller accepts.

    `stored` is the object as the API server has it, whose status says when it was accepted.
    """
    if spec.until <= now:
        yield f"spec.until: {rfc3339(spec.until)} is in the past; the override has no effect"
    limit = (OverrideStatus.read((stored or {}).get("status")).accepted_at or now) + longest
    if spec.until > limit:
        yield (
            f"spec.until: must be at most {in_days(longest)} after the override is accepted, {rfc3339(limit)}; "
            "the controller does not accept it like this"
        )


def spec_of(raw: Raw | None) -> Raw:
    """The spec of an object that nothing is known of yet; empty if it has none."""
    spec = (raw or {}).get("spec")
    return spec if type(spec) is dict else {}

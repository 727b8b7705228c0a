"""What absent fields mean, written out, so that `kubectl get -o yaml` shows what will happen."""

from typing import Any, Final

from crds.scheduledmachine import DEFAULT_PRIORITY, DEFAULT_PROVISIONING_TIMEOUT, DEFAULT_TIMEOUT
from crds.schedulespec import DEFAULT_TIMEZONE
from crds.values import DEFAULT_DURATION, format_duration

Raw = dict[str, Any]

SPEC: Final[Raw] = {"killSwitch": False}
WITHOUT_CLASS: Final[Raw] = {
    "priority": DEFAULT_PRIORITY,
    "gracefulShutdownTimeout": format_duration(DEFAULT_TIMEOUT),
    "nodeDrainTimeout": format_duration(DEFAULT_TIMEOUT),
    "provisioningTimeout": format_duration(DEFAULT_PROVISIONING_TIMEOUT),
    "nodeTaints": [],
}
"""Fields that a class may set: beside one they stay absent."""
SCHEDULE: Final[Raw] = {"timezone": str(DEFAULT_TIMEZONE), "enabled": True}
WEEKLY: Final[Raw] = {"daysOfWeek": [], "hoursOfDay": []}
CRON: Final[Raw] = {"duration": format_duration(DEFAULT_DURATION)}


def absent(raw: Any) -> dict[tuple[str, ...], Any]:
    """The fields that are absent (or null) and have a default, by path, with their values; what is there stays."""
    spec = raw.get("spec") if isinstance(raw, dict) else None
    if not isinstance(spec, dict):
        return {}
    missing = _missing(("spec",), spec, SPEC | (WITHOUT_CLASS if spec.get("classRef") is None else {}))
    schedule = spec.get("schedule")
    if isinstance(schedule, dict):
        missing |= _missing(("spec", "schedule"), schedule, SCHEDULE | _of_its_form(schedule))
    return missing


def _of_its_form(schedule: Raw) -> Raw:
    """The defaults of the one way in which a schedule says when; windows have none."""
    if schedule.get("windows"):
        return {}
    return WEEKLY if schedule.get("cron") is None else CRON


def stale(raw: Any, old: Any) -> list[tuple[str, ...]]:
    """The defaults that were written for what an update takes away, by path: they would only stand in its way.

    `kubectl apply` removes what its user wrote before, cron, but not the duration that defaulting put beside it; where
    a class takes the place of the two specs, likewise.
    """
    before, after = _schedule(old), _schedule(raw)
    gone = before.get("cron") is not None and after.get("cron") is None
    found: list[tuple[str, ...]] = [("spec", "schedule", name) for name in _left(before, after, CRON)] if gone else []
    before, after = _spec(old), _spec(raw)
    replaced = before and before.get("classRef") is None and after.get("classRef") is not None
    return [*found, *(("spec", name) for name in _left(before, after, WITHOUT_CLASS))] if replaced else found


def _left(before: Raw, after: Raw, defaults: Raw) -> list[str]:
    return [name for name, value in defaults.items() if before.get(name) == value == after.get(name)]


def cleared(raw: Any, old: Any) -> Any:
    """A copy without those defaults, the object itself if there are none."""
    for path in stale(raw, old):
        raw = _without(raw, path)
    return raw


def _without(raw: Raw, path: tuple[str, ...]) -> Raw:
    name, *rest = path
    if rest:
        return {**raw, name: _without(raw[name], tuple(rest))}
    return {key: value for key, value in raw.items() if key != name}


def _schedule(raw: Any) -> Raw:
    schedule = _spec(raw).get("schedule")
    return schedule if isinstance(schedule, dict) else {}


def _spec(raw: Any) -> Raw:
    spec = raw.get("spec") if isinstance(raw, dict) else None
    return spec if isinstance(spec, dict) else {}


def _missing(at: tuple[str, ...], given: Raw, wanted: Raw) -> dict[tuple[str, ...], Any]:
    return {(*at, name): value for name, value in wanted.items() if given.get(name) is None}

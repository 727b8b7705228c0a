"""What absent fields mean, written out, so that `kubectl get -o yaml` shows what will happen."""

from copy import copy
from typing import Any, Final

from crds.scheduledmachine import DEFAULT_PRIORITY, DEFAULT_TIMEOUT, DEFAULT_TIMEZONE
from crds.values import DEFAULT_DURATION, format_duration

Raw = dict[str, Any]

SPEC: Final[Raw] = {
    "priority": DEFAULT_PRIORITY,
    "gracefulShutdownTimeout": format_duration(DEFAULT_TIMEOUT),
    "nodeDrainTimeout": format_duration(DEFAULT_TIMEOUT),
    "killSwitch": False,
    "nodeTaints": [],
}
SCHEDULE: Final[Raw] = {"timezone": str(DEFAULT_TIMEZONE), "enabled": True}
WEEKLY: Final[Raw] = {"daysOfWeek": [], "hoursOfDay": []}
CRON: Final[Raw] = {"duration": format_duration(DEFAULT_DURATION)}


def absent(raw: Any) -> dict[tuple[str, ...], Any]:
    """The fields that are absent (or null) and have a default, by path, with their values; what is there stays."""
    spec = raw.get("spec") if isinstance(raw, dict) else None
    if not isinstance(spec, dict):
        return {}
    missing = _missing(("spec",), spec, SPEC)
    schedule = spec.get("schedule")
    if isinstance(schedule, dict):
        wanted = SCHEDULE | (WEEKLY if schedule.get("cron") is None else CRON)
        missing |= _missing(("spec", "schedule"), schedule, wanted)
    return missing


def _missing(at: tuple[str, ...], given: Raw, wanted: Raw) -> dict[tuple[str, ...], Any]:
    return {(*at, name): value for name, value in wanted.items() if given.get(name) is None}


def defaulted(raw: Raw) -> Raw:
    """A copy with the absent fields added; applying it twice changes nothing more."""
    result = raw
    for path, value in absent(raw).items():
        result = _with(result, path, value)
    return result


def _with(raw: Raw, path: tuple[str, ...], value: Any) -> Raw:
    name, *rest = path
    return {**raw, name: _with(raw[name], tuple(rest), value) if rest else copy(value)}

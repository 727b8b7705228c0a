"""What still counts in a stored spec that is invalid as a whole: enough to take a running machine out of service."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from pydantic import ValidationError

from crds.invalid import InvalidValue
from crds.scheduledmachine import DEFAULT_TIMEOUT, Metadata
from crds.schedulespec import ScheduleSpec, never_opens
from crds.status import ScheduledMachineStatus
from crds.unread import unread_fields
from crds.values import parse_duration


@dataclass(frozen=True, slots=True)
class PartialSpec:
    """The parts of an invalid object that can be read each by itself; a timeout that cannot be has its default."""

    metadata: Metadata
    schedule: ScheduleSpec | None
    cluster_name: str
    kill_switch: bool
    graceful_shutdown_timeout: timedelta
    node_drain_timeout: timedelta
    status: ScheduledMachineStatus


def read_partial(raw: dict[str, Any]) -> PartialSpec:
    """Read what can be read; never raises."""
    given = raw.get("spec")
    spec: dict[str, Any] = given if isinstance(given, dict) else {}
    cluster = spec.get("clusterName")
    return PartialSpec(
        metadata=Metadata.read(raw.get("metadata")),
        schedule=_schedule(spec.get("schedule")),
        cluster_name=cluster if isinstance(cluster, str) else "",
        kill_switch=spec.get("killSwitch") is True,
        graceful_shutdown_timeout=_timeout(spec.get("gracefulShutdownTimeout")),
        node_drain_timeout=_timeout(spec.get("nodeDrainTimeout")),
        status=ScheduledMachineStatus.read(raw.get("status")),
    )


def _schedule(given: Any) -> ScheduleSpec | None:
    """The schedule, if it can be read whole and denotes one set of instants only."""
    if any(unread_fields(ScheduleSpec, given, "spec.schedule")):
        return None
    try:
        schedule = ScheduleSpec.parse(given)
    except ValidationError:
        return None
    weekly = bool(schedule.days_of_week or schedule.hours_of_day)
    ways = (weekly, schedule.cron is not None, bool(schedule.windows))
    clear = sum(ways) == 1 and all(bool(each.dates) != bool(each.calendar_ref) for each in schedule.exceptions)
    return schedule if clear and not never_opens(schedule.recurring) else None


def _timeout(given: Any) -> timedelta:
    return readable_timeout(given) or DEFAULT_TIMEOUT


def readable_timeout(given: Any) -> timedelta | None:
    """A timeout as it was written; None if there is none that can be read."""
    try:
        return parse_duration(given)
    except InvalidValue:
        return None

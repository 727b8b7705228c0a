"""Warnings: what is legal in a ScheduledMachine but probably not what its author meant."""

from collections.abc import Iterator
from datetime import timedelta
from functools import lru_cache
from typing import Final

from crds.schedule import Schedule
from crds.scheduledmachine import DEFAULT_TIMEOUT, WrittenSpec
from crds.values import format_duration

_GITOPS: Final = (
    "spec.killIfCommands: a reclaim sets spec.schedule.enabled to false; if GitOps manages this object, let it ignore "
    "that field, or it will undo the reclaim"
)
_OVERLAP: Final = (
    "spec.schedule.duration: is longer than the time between two firings of cron; windows that overlap become one"
)
KINDS_WITH_OWN_VERSION: Final = frozenset({"K0sWorkerConfig"})
"""Bootstrap kinds that say in their own spec which version to install."""
VERSION_MISSING: Final = (
    "is not set; most bootstrap providers, kubeadm's among them, never make a machine ready without it: "
    "set the Kubernetes version that the machine is to run, such as v1.34.2"
)


def warnings_for(spec: WrittenSpec) -> tuple[str, ...]:
    """All that deserves a second look in a valid spec."""
    return tuple(_warnings(spec))


def _warnings(spec: WrittenSpec) -> Iterator[str]:
    schedule = spec.schedule
    if schedule.recurring.wraps_on_partial_days:
        yield (
            f"spec.schedule: the hours {schedule.hours_of_day} run past midnight, but day and hour are tested "
            f"separately: they are active in the morning and in the evening of {schedule.days_of_week}, "
            "not in the morning after"
        )
    shortest, overlapping = _traits(schedule.recurring)
    if overlapping:
        yield _OVERLAP
    grace = min(spec.graceful_shutdown_timeout or DEFAULT_TIMEOUT, spec.node_drain_timeout or DEFAULT_TIMEOUT)
    if shortest is not None and shortest < grace:
        yield (
            f"spec.schedule: has a window of {format_duration(shortest)}, shorter than the {format_duration(grace)} "
            "that shutting down may take (gracefulShutdownTimeout, nodeDrainTimeout)"
        )
    stop = schedule.stop_early
    if shortest is not None and isinstance(stop, timedelta) and shortest <= stop:
        yield (
            f"spec.schedule.stopEarly: leaves nothing of a window of {format_duration(shortest)}; such windows are "
            "skipped"
        )
    if spec.kill_if_commands:
        yield _GITOPS
    version = spec.machine_template and spec.machine_template.version
    bootstrap = spec.bootstrap_spec
    if bootstrap is not None and bootstrap.kind not in KINDS_WITH_OWN_VERSION and version is None:
        yield f"spec.machineTemplate.version: {VERSION_MISSING}"


@lru_cache(maxsize=8192)
def _traits(schedule: Schedule) -> tuple[timedelta | None, bool]:
    """The shortest window and whether windows overlap; asked for every admission, and slow to find for cron."""
    return schedule.shortest_window, schedule.has_overlapping_windows

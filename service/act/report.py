"""Compares two statuses, so that only the fields that changed are written."""

from typing import Any

from crds.status import ScheduledMachineStatus


def status_changes(before: ScheduledMachineStatus, after: ScheduledMachineStatus) -> dict[str, Any]:
    """The fields that differ, None for those that are gone; empty if none does."""
    if before == after:
        return {}  # as after most passes; writing both as JSON to see the same takes seven times as long
    old = before.to_json()
    new = after.to_json()
    changed = {name: value for name, value in new.items() if old.get(name) != value}
    removed = dict.fromkeys(old.keys() - new.keys())
    return {**changed, **removed}

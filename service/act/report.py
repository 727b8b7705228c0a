"""Writes what was found: the fields of the status that changed, and only if any did."""

from typing import Any

from crds.status import ScheduledMachineStatus


def status_changes(before: ScheduledMachineStatus, after: ScheduledMachineStatus) -> dict[str, Any]:
    """The fields that differ, None for those that are gone; empty if none does."""
    old, new = before.to_json(), after.to_json()
    changed = {name: value for name, value in new.items() if old.get(name) != value}
    removed = dict.fromkeys(old.keys() - new.keys())
    return {**changed, **removed}

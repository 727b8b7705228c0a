"""Writes what was found: one status patch, and only if something changed."""

from typing import Any

from crds.status import ScheduledMachineStatus


def status_patch(before: ScheduledMachineStatus, after: ScheduledMachineStatus) -> dict[str, Any]:
    """The fields that differ, as a merge patch; empty if none does."""
    old, new = before.to_json(), after.to_json()
    changed = {name: value for name, value in new.items() if old.get(name) != value}
    removed = dict.fromkeys(old.keys() - new.keys())
    return {**changed, **removed}

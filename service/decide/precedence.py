"""The order of objects that are due at once: high priorities first for creation, low ones first for removal."""

from typing import Any

from crds.scheduledmachine import DEFAULT_PRIORITY

HIGHEST = 255


def precedence(priority: int, *, has_machine: bool) -> int:
    """The priority in the queue: an object with a machine is due for removal, one without for creation."""
    return HIGHEST - priority if has_machine else priority


def precedence_of(raw: dict[str, Any]) -> int:
    """The same for an object that has not been reconciled yet and may be malformed, by its status."""
    spec, status = raw.get("spec"), raw.get("status")
    found = spec.get("priority") if isinstance(spec, dict) else None
    has_machine = isinstance(status, dict) and bool(status.get("machineRef"))
    if not isinstance(found, int) or isinstance(found, bool) or not 0 <= found <= HIGHEST:
        found = DEFAULT_PRIORITY
    return precedence(found, has_machine=has_machine)

"""Who goes first among those that are due at once: higher priorities while machines come, lower ones while they go."""

from typing import Any

from crds.scheduledmachine import DEFAULT_PRIORITY

HIGHEST = 255


def precedence(priority: int, *, has_machine: bool) -> int:
    """What a queue is to go by: who has a machine waits for its end, who has none for its beginning."""
    return HIGHEST - priority if has_machine else priority


def precedence_of(raw: dict[str, Any]) -> int:
    """The same of an object that nobody has looked at yet, which may be malformed; the status says what it has."""
    spec, status = raw.get("spec"), raw.get("status")
    found = spec.get("priority") if isinstance(spec, dict) else None
    has_machine = isinstance(status, dict) and bool(status.get("machineRef"))
    if not isinstance(found, int) or isinstance(found, bool) or not 0 <= found <= HIGHEST:
        found = DEFAULT_PRIORITY
    return precedence(found, has_machine=has_machine)

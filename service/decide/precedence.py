"""The order of objects that are due at once: high priorities first for creation, low ones first for removal."""

from typing import Any

from crds.scheduledmachine import DEFAULT_PRIORITY

HIGHEST = 255


def precedence(priority: int, *, has_machine: bool) -> int:
    """The priority in the queue: an object with a machine is due for removal, one without for creation."""
    return HIGHEST - priority if has_machine else priority


def precedence_of(raw: dict[str, Any], of_class: dict[str, Any] | None = None) -> int:
    """The same for an object that has not been reconciled yet and may be malformed, by its status and its class."""
    status = raw.get("status")
    has_machine = isinstance(status, dict) and bool(status.get("machineRef"))
    own, inherited = _priority(raw), _priority(of_class or {})
    found = own if own is not None else inherited
    return precedence(DEFAULT_PRIORITY if found is None else found, has_machine=has_machine)


def _priority(raw: dict[str, Any]) -> int | None:
    spec = raw.get("spec")
    found = spec.get("priority") if isinstance(spec, dict) else None
    if not isinstance(found, int) or isinstance(found, bool) or not 0 <= found <= HIGHEST:
        return None
    return found

"""Manifests for tests of the rulebook: the corpus's base, changed in a few words."""

from typing import Any

from tests.corpus import base


def machine(*, name: str = "worker", status: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    """An allowed manifest with parts of its spec replaced."""
    manifest = base()
    manifest["metadata"]["name"] = name
    manifest["spec"] |= spec
    return manifest | ({"status": status} if status else {})


def scheduled(**schedule: Any) -> dict[str, Any]:
    """An allowed manifest with this schedule."""
    return machine(schedule=schedule)


def nested(levels: int) -> dict[str, Any]:
    """Objects in objects."""
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = {"more": value}
    return value

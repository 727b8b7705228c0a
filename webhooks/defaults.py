"""What defaulting adds, as a JSON patch: absent fields and, at creation, the finalizer.

It never rewrites anything; it takes away what it once added for a field that is gone.
"""

from typing import Any

from crds import names
from crds.defaults import absent, stale
from webhooks.review import JSONPatch, Review


def patch_for(review: Review) -> JSONPatch:
    """The operations that make the object say what will happen; none if it does already."""
    given = review.object
    if given is None:
        return []
    patch = [_add(_pointer(path), value) for path, value in absent(given).items()]
    if review.operation == "CREATE":
        return patch + _finalizer(given)
    return patch + [{"op": "remove", "path": _pointer(path)} for path in stale(given, review.old)]


def _finalizer(given: dict[str, Any]) -> JSONPatch:
    metadata = given.get("metadata")
    if type(metadata) is not dict:
        return []
    present = metadata.get("finalizers")
    if not present:
        return [_add("/metadata/finalizers", [names.FINALIZER])]
    if type(present) is not list or names.FINALIZER in present:
        return []
    return [_add("/metadata/finalizers/-", names.FINALIZER)]


def _pointer(path: tuple[str, ...]) -> str:
    return "/".join(("", *path))


def _add(path: str, value: object) -> dict[str, Any]:
    return {"op": "add", "path": path, "value": value}

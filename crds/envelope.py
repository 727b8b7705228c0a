"""The rules on what surrounds the spec: what the object says it is, what it is called, and its metadata."""

from collections.abc import Callable, Iterator
from typing import Any, Final, Literal, TypeVar

from pydantic import ValidationError

from crds import names, syntax
from crds.base import Model
from crds.invalid import InvalidValue
from crds.scheduledmachine import Metadata
from crds.violations import Violation, ViolationReason, printable, translated

Raw = dict[str, Any]
M = TypeVar("M", bound=Model)
UnknownFields = Literal["forbid", "ignore"]
"""What becomes of fields that this version does not know; in a schedule and in a calendar none is ever ignored."""

TOP_LEVEL: Final = frozenset({"apiVersion", "kind", "metadata", "spec", "status"})
METADATA: Final = frozenset(
    {
        "annotations",
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "finalizers",
        "generateName",
        "generation",
        "labels",
        "managedFields",
        "name",
        "namespace",
        "ownerReferences",
        "resourceVersion",
        "selfLink",
        "uid",
    }
)
"""What Kubernetes' ObjectMeta has."""
PLAIN_METADATA: Final = frozenset({"name", "namespace", "generateName"})
DEFAULT_NAMESPACE: Final = "default"
GENERATED_SUFFIX: Final = 5
"""What the API server appends to `generateName`."""
LISTED_MAX: Final = 100
"""More wrong entries of metadata are counted: API servers refuse them before they call webhooks."""


def namespace_of(raw: Raw) -> str:
    """The namespace that the object will be in."""
    metadata = raw.get("metadata")
    return (metadata.get("namespace") or DEFAULT_NAMESPACE) if type(metadata) is dict else DEFAULT_NAMESPACE


def parsed_spec(model: type[M], spec: Any, unknown: UnknownFields) -> tuple[M | None, list[Violation]]:
    """The spec as a model, or None and what is wrong with it."""
    if spec is None:
        return None, [Violation("spec", None, "is required", ViolationReason.REQUIRED)]
    try:
        return model.parse(spec, unknown=unknown), []
    except ValidationError as error:
        return None, translated(error, "spec", model)


def envelope_rules(
    raw: Raw, unknown: UnknownFields, *, kind: str = names.KIND, name_max: int = syntax.MACHINE_NAME_MAX
) -> Iterator[Violation]:
    """All that is wrong outside the spec of an object of this kind."""
    if raw.get("apiVersion") != names.API_VERSION:
        yield Violation.of("apiVersion", raw.get("apiVersion"), f"must be {names.API_VERSION}")
    if raw.get("kind") != kind:
        yield Violation.of("kind", raw.get("kind"), f"must be {kind}")
    metadata = raw.get("metadata")
    if type(metadata) is dict:
        yield from _metadata_rules(metadata, unknown, name_max)
    else:
        yield Violation.of("metadata", metadata, "must be an object with a name", ViolationReason.REQUIRED)
    if unknown == "forbid" and not raw.keys() <= TOP_LEVEL:
        yield from _unknown(raw, TOP_LEVEL, "")


def _metadata_rules(metadata: Raw, unknown: UnknownFields, name_max: int) -> Iterator[Violation]:
    yield from _name(metadata, name_max)
    if not metadata.keys() <= PLAIN_METADATA:
        yield from _readable(metadata)
        if unknown == "forbid" and not metadata.keys() <= METADATA:
            yield from _unknown(metadata, METADATA, "metadata.")
    namespace = metadata.get("namespace")
    if namespace is not None and namespace != "":
        yield from _judged("metadata.namespace", namespace, syntax.namespace)


def _unknown(given: Raw, known: frozenset[str], path: str) -> Iterator[Violation]:
    listed = ", ".join(sorted(known))
    for key in sorted(given.keys() - known, key=str):
        yield Violation.of(
            f"{path}{printable(str(key))}",
            given[key],
            f"unknown field; known here: {listed}",
            ViolationReason.FORBIDDEN,
        )


def _readable(metadata: Raw) -> list[Violation]:
    try:
        Metadata.parse({**metadata, "name": "", "namespace": ""})
    except ValidationError as error:
        if error.error_count() <= LISTED_MAX:
            return translated(error, "metadata", Metadata)
        wrong = f"{error.error_count()} wrong entries"
        return [
            Violation(
                "metadata", wrong, "must be metadata as Kubernetes takes it", ViolationReason.TYPE, given=metadata
            )
        ]
    return []


def _name(metadata: Raw, longest: int) -> Iterator[Violation]:
    name, stem = metadata.get("name"), metadata.get("generateName")
    if name:
        yield from _judged("metadata.name", name, lambda text: syntax.subdomain(text, longest))
    elif not stem:
        yield Violation("metadata.name", None, "is required", ViolationReason.REQUIRED)
    elif type(stem) is not str or len(stem) > longest - GENERATED_SUFFIX:
        room = longest - GENERATED_SUFFIX
        yield Violation.of("metadata.generateName", stem, f"must be text of at most {room} characters")


def _judged(field: str, value: Any, rule: Callable[[str], object]) -> Iterator[Violation]:
    if type(value) is not str:
        yield Violation.of(field, value, "must be a string", ViolationReason.TYPE)
        return
    try:
        rule(value)
    except InvalidValue as error:
        yield Violation.of(field, value, error.message)


def in_no_namespace(raw: Raw, kind: str) -> Iterator[Violation]:
    """Whether an object of a cluster-scoped kind names a namespace."""
    metadata = raw.get("metadata")
    namespace = metadata.get("namespace") if type(metadata) is dict else None
    if namespace:
        message = f"must be left out: a {kind} is in no namespace"
        yield Violation.of("metadata.namespace", namespace, message, ViolationReason.FORBIDDEN)

"""CustomResourceDefinitions, made from the models, so that the API server enforces what the models say."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from crds import cel, defaults, names
from crds.providers import BOOTSTRAP, DEFAULT_POLICY, INFRASTRUCTURE, ProviderPolicy
from crds.scheduledmachine import WrittenSpec
from crds.status import ScheduledMachineStatus

Schema = dict[str, Any]
Columns = Iterable[tuple[str, str, str, str]]
"""The name, type, JSONPath and description of each."""

DESCRIPTION: Final = "A machine that is part of a Cluster API cluster only while its schedule says so."

_READY: Final = '.status.conditions[?(@.type=="Ready")]'
COLUMNS: Final = (
    ("Phase", "string", ".status.phase", "Phase of the machine"),
    ("Ready", "string", f"{_READY}.status", "Whether the Node is Ready and nothing is wrong"),
    ("Reason", "string", f"{_READY}.reason", "Why"),
    ("Schedule", "string", ".status.schedule", "When the machine is in service"),
    # Not a date: kubectl prints <invalid> for a date that lies ahead.
    ("Next", "string", ".status.nextChange", "When the window closes or the next one opens, in the schedule's zone"),
    ("Age", "date", ".metadata.creationTimestamp", "Time since it was created"),
)
WIDE_COLUMNS: Final = (
    ("Machine", "string", ".status.machinePhase", "Phase of the Cluster API Machine"),
    ("Node", "string", ".status.nodeRef.name", "The Node in the workload cluster"),
    ("Cluster", "string", ".spec.clusterName", "The Cluster that the machine joins"),
    ("Override", "string", ".status.override.state", "What the override in force makes of the machine"),
    ("Message", "string", ".status.message", "The phase in one sentence"),
)
CATEGORIES: Final = ["cluster-api"]
"""`kubectl get cluster-api` lists ScheduledMachines with Cluster API's own objects."""


MOVED: Final = {"clusterctl.cluster.x-k8s.io": "", "clusterctl.cluster.x-k8s.io/move": ""}
"""`clusterctl move` takes calendars and classes along."""
MOVED_WITH_CHILDREN: Final = {"clusterctl.cluster.x-k8s.io": "", "clusterctl.cluster.x-k8s.io/move-hierarchy": ""}
"""`clusterctl move` takes ScheduledMachines and what they own along."""


@dataclass(frozen=True, slots=True)
class DefinedKind:
    """A kind as users name it and as `kubectl get` prints it."""

    kind: str
    plural: str
    short_name: str
    columns: Columns
    wide_columns: Columns = ()
    scope: str = "Namespaced"
    labels: Mapping[str, str] = field(default_factory=dict)
    """Such as those that `clusterctl move` looks for."""
    categories: Sequence[str] = ()


def definition(what: DefinedKind, schema: Schema) -> Schema:
    """The whole object, ready to be applied."""
    labels = {"labels": dict(what.labels)} if what.labels else {}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{what.plural}.{names.GROUP}", **labels},
        "spec": {
            "group": names.GROUP,
            "scope": what.scope,
            "names": _names(what),
            "versions": [_version(what, schema)],
        },
    }


def _names(what: DefinedKind) -> Schema:
    categories = {"categories": list(what.categories)} if what.categories else {}
    return {
        "kind": what.kind,
        "listKind": f"{what.kind}List",
        "plural": what.plural,
        "singular": what.kind.lower(),
        "shortNames": [what.short_name],
        **categories,
    }


def _version(what: DefinedKind, schema: Schema) -> Schema:
    wide = (column(*each, wide=True) for each in what.wide_columns)
    return {
        "name": names.VERSION,
        "served": True,
        "storage": True,
        **({"subresources": {"status": {}}} if "status" in schema["properties"] else {}),
        "additionalPrinterColumns": [*(column(*each) for each in what.columns), *wide],
        "schema": {"openAPIV3Schema": schema},
    }


def column(name: str, kind: str, path: str, description: str, *, wide: bool = False) -> Schema:
    """A column that `kubectl get` prints."""
    column = {"name": name, "type": kind, "jsonPath": path, "description": description}
    return {**column, "priority": 1} if wide else column


def object_of(
    kind: str, description: str, spec: Schema, status: Schema | None = None, rules: Sequence[cel.CelRule] = ()
) -> Schema:
    """The structural schema of an object with a spec and perhaps a status; `rules` are in CEL, about all of it."""
    return {
        "type": "object",
        "description": description,
        "required": ["spec"],
        **({cel.VALIDATIONS: list(rules)} if rules else {}),
        "properties": {
            "apiVersion": {"type": "string", "description": f"Always {names.API_VERSION}."},
            "kind": {"type": "string", "description": f"Always {kind}."},
            "metadata": {"type": "object"},
            "spec": spec,
            **({"status": status} if status is not None else {}),
        },
    }


def custom_resource_definition(policy: ProviderPolicy = DEFAULT_POLICY) -> Schema:
    """The whole object, ready to be applied; an operator with another allowlist gets another CRD."""
    what = DefinedKind(
        names.KIND,
        names.PLURAL,
        names.SHORT_NAME,
        COLUMNS,
        WIDE_COLUMNS,
        labels=MOVED_WITH_CHILDREN,
        categories=CATEGORIES,
    )
    return definition(what, object_schema(policy))


def object_schema(policy: ProviderPolicy = DEFAULT_POLICY) -> Schema:
    """The structural schema of a ScheduledMachine."""
    status = without(structural(ScheduledMachineStatus), "nullable")
    return object_of(names.KIND, DESCRIPTION, _spec(policy), status, rules=cel.ROOT)


def _spec(policy: ProviderPolicy) -> Schema:
    spec = structural(WrittenSpec)
    _set_defaults(spec, defaults.SPEC)
    for name, value in defaults.WITHOUT_CLASS.items():
        spec["properties"][name]["description"] += default_note(value, " the class's, else")
    _set_defaults(spec["properties"]["schedule"], defaults.SCHEDULE)
    restrict_providers(spec, policy)
    return spec


def restrict_providers(spec: Schema, policy: ProviderPolicy) -> None:
    """Adds the operator's allowlist to the two provider specs in the schema of a spec."""
    for envelope in (BOOTSTRAP, INFRASTRUCTURE):
        parts = spec["properties"][envelope]["properties"]
        _add_rule(parts["apiVersion"], cel.allowed_groups(policy.groups(envelope)))
        _add_rule(parts["kind"], cel.allowed_kinds(policy, envelope))


def _add_rule(schema: Schema, rule: cel.CelRule) -> None:
    schema[cel.VALIDATIONS] = [*schema[cel.VALIDATIONS], rule]


def _set_defaults(schema: Schema, values: Schema) -> None:
    for name, value in values.items():
        field = schema["properties"][name]
        field["default"] = value
        field["description"] += default_note(value)


def default_note(value: Any, before: str = "") -> str:
    """The default in words, as `kubectl explain` shows only descriptions."""
    if value == []:
        return f" Default:{before} none."
    return f" Default:{before} {str(value).lower() if isinstance(value, bool) else value}."


class _WithoutDefaults(GenerateJsonSchema):
    """Defaults come from `crds.defaults`, as users write them."""

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])


def structural(model: type[BaseModel]) -> Schema:
    """A model's schema in the words that Kubernetes knows: no references, no titles, null as `nullable`."""
    schema = model.model_json_schema(by_alias=True, schema_generator=_WithoutDefaults)
    inlined: Schema = _inlined(schema, schema.get("$defs", {}))
    return inlined


def _inlined(schema: Any, known: Schema) -> Any:
    if isinstance(schema, list):
        return [_inlined(each, known) for each in schema]
    if not isinstance(schema, dict):
        return schema
    schema = _resolved(schema, known)
    inner = {key: _inlined(value, known) for key, value in schema.items() if key not in DROPPED and key != "properties"}
    if "properties" in schema:
        inner["properties"] = {name: _inlined(value, known) for name, value in schema["properties"].items()}
    return inner


DROPPED: Final = frozenset({"title", "$defs", "$ref", "anyOf"})


def _resolved(schema: Schema, known: Schema) -> Schema:
    """Follows a reference, and takes `null` out of a choice."""
    if "$ref" in schema:
        target = known[schema["$ref"].rpartition("/")[2]]
        return _resolved({**target, **{key: value for key, value in schema.items() if key != "$ref"}}, known)
    if "anyOf" in schema:
        (choice,) = (each for each in schema["anyOf"] if each != {"type": "null"})
        rest = {key: value for key, value in schema.items() if key != "anyOf"}
        return _resolved({**choice, **rest, "nullable": True}, known)
    return schema


def without(schema: Any, word: str) -> Any:
    """The schema with one word left out, wherever it is."""
    if isinstance(schema, list):
        return [without(each, word) for each in schema]
    if isinstance(schema, dict):
        return {key: without(value, word) for key, value in schema.items() if key != word}
    return schema

"""The CustomResourceDefinition, made from the models, so that the API server enforces what the models say."""

from typing import Any, Final

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from crds import cel, defaults, names
from crds.providers import BOOTSTRAP, DEFAULT_POLICY, INFRASTRUCTURE, ProviderPolicy
from crds.scheduledmachine import ScheduledMachineSpec
from crds.status import ScheduledMachineStatus

Schema = dict[str, Any]

DESCRIPTION: Final = "A machine that is part of a Cluster API cluster only while its schedule says so."

_READY: Final = '.status.conditions[?(@.type=="Ready")]'
COLUMNS: Final = (
    ("Phase", "string", ".status.phase", "Where the machine is in its life"),
    ("Ready", "string", f"{_READY}.status", "Whether the Node is Ready and nothing is wrong"),
    ("Reason", "string", f"{_READY}.reason", "Why"),
    ("Schedule", "string", ".status.schedule", "When the machine is in service"),
    # Not a date: kubectl prints <invalid> for a date that lies ahead.
    ("Next", "string", ".status.nextChange", "What the schedule does next and when, in its own time zone"),
    ("Age", "date", ".metadata.creationTimestamp", "Time since it was created"),
)
WIDE_COLUMNS: Final = (
    ("Machine", "string", ".status.machinePhase", "Where the Cluster API Machine is in its life"),
    ("Node", "string", ".status.nodeRef.name", "The Node in the workload cluster"),
    ("Cluster", "string", ".spec.clusterName", "The Cluster that the machine joins"),
    ("Message", "string", ".status.message", "The phase in one sentence"),
)
CATEGORIES: Final = ["cluster-api"]
"""`kubectl get cluster-api` lists ScheduledMachines with Cluster API's own objects."""


MOVED_BY_CLUSTERCTL: Final = {
    "clusterctl.cluster.x-k8s.io": "",
    "clusterctl.cluster.x-k8s.io/move-hierarchy": "",
}
"""`clusterctl move` takes ScheduledMachines and what they own along."""


def custom_resource_definition(policy: ProviderPolicy = DEFAULT_POLICY) -> Schema:
    """The whole object, ready to be applied; an operator with another allowlist gets another CRD."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{names.PLURAL}.{names.GROUP}", "labels": dict(MOVED_BY_CLUSTERCTL)},
        "spec": {
            "group": names.GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": names.KIND,
                "listKind": f"{names.KIND}List",
                "plural": names.PLURAL,
                "singular": names.SINGULAR,
                "shortNames": [names.SHORT_NAME],
                "categories": CATEGORIES,
            },
            "versions": [_version(policy)],
        },
    }


def _version(policy: ProviderPolicy) -> Schema:
    columns = [*(column(*each) for each in COLUMNS), *(column(*each, wide=True) for each in WIDE_COLUMNS)]
    return {
        "name": names.VERSION,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "additionalPrinterColumns": columns,
        "schema": {"openAPIV3Schema": object_schema(policy)},
    }


def column(name: str, kind: str, path: str, description: str, *, wide: bool = False) -> Schema:
    """A column that `kubectl get` prints."""
    column = {"name": name, "type": kind, "jsonPath": path, "description": description}
    return {**column, "priority": 1} if wide else column


def object_schema(policy: ProviderPolicy = DEFAULT_POLICY) -> Schema:
    """The structural schema of a ScheduledMachine."""
    return {
        "type": "object",
        "description": DESCRIPTION,
        "required": ["spec"],
        cel.VALIDATIONS: list(cel.ROOT),
        "properties": {
            "apiVersion": {"type": "string", "description": f"Always {names.API_VERSION}."},
            "kind": {"type": "string", "description": f"Always {names.KIND}."},
            "metadata": {"type": "object"},
            "spec": _spec(policy),
            "status": without(structural(ScheduledMachineStatus), "nullable"),
        },
    }


def _spec(policy: ProviderPolicy) -> Schema:
    spec = structural(ScheduledMachineSpec)
    _set_defaults(spec, defaults.SPEC)
    _set_defaults(spec["properties"]["schedule"], defaults.SCHEDULE)
    for envelope in (BOOTSTRAP, INFRASTRUCTURE):
        parts = spec["properties"][envelope]["properties"]
        _add_rule(parts["apiVersion"], cel.allowed_groups(policy.groups(envelope)))
        _add_rule(parts["kind"], cel.allowed_kinds(policy, envelope))
    return spec


def _add_rule(schema: Schema, rule: cel.CelRule) -> None:
    schema[cel.VALIDATIONS] = [*schema[cel.VALIDATIONS], rule]


def _set_defaults(schema: Schema, values: Schema) -> None:
    for name, value in values.items():
        field = schema["properties"][name]
        field["default"] = value
        field["description"] += default_note(value)


def default_note(value: Any) -> str:
    """The default in words, as `kubectl explain` shows only descriptions."""
    if value == []:
        return " Default: none."
    return f" Default: {str(value).lower() if isinstance(value, bool) else value}."


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

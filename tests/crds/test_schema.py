from typing import Any

import pytest

from crds import cel, defaults
from crds.providers import BOOTSTRAP, DEFAULT_POLICY, INFRASTRUCTURE, ProviderPolicy
from crds.scheduledmachine import ScheduledMachineSpec
from crds.schema import custom_resource_definition, object_schema
from crds.status import ScheduledMachineStatus

SCHEMA = object_schema()


def nodes(schema: dict[str, Any], path: str = "") -> list[tuple[str, dict[str, Any]]]:
    """Every schema within a schema, with its path."""
    found = [(path, schema)]
    for name, inner in schema.get("properties", {}).items():
        found += nodes(inner, f"{path}.{name}")
    for word in ("items", "additionalProperties"):
        if isinstance(schema.get(word), dict):
            found += nodes(schema[word], f"{path}[]")
    return found


BELOW = [*nodes(SCHEMA["properties"]["spec"], "spec"), *nodes(SCHEMA["properties"]["status"], "status")]


def test_every_field_of_the_models_is_in_the_schema():
    for part, model in (("spec", ScheduledMachineSpec), ("status", ScheduledMachineStatus)):
        assert set(SCHEMA["properties"][part]["properties"]) == {field.alias for field in model.model_fields.values()}


@pytest.mark.parametrize(("path", "schema"), BELOW, ids=[path for path, _ in BELOW])
def test_everything_has_a_type_and_a_bound(path, schema):
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        return  # the class or the provider says what is in it
    kind = schema["type"]
    if kind == "string":
        assert "maxLength" in schema or "enum" in schema
    elif kind == "array":
        assert {"maxItems", "items", "x-kubernetes-list-type"} <= schema.keys()
    elif kind == "integer" and path.startswith("spec"):
        assert {"minimum", "maximum"} <= schema.keys()
    elif kind == "object" and "additionalProperties" in schema:
        assert "maxProperties" in schema
    assert not {"$ref", "anyOf", "title", "$defs"} & schema.keys()


@pytest.mark.parametrize(
    ("path", "schema"), [(p, s) for p, s in BELOW if not p.endswith("[]")], ids=lambda each: str(each)[:40]
)
def test_everything_is_described_for_kubectl_explain(path, schema):
    assert schema["description"].endswith("."), path


@pytest.mark.parametrize("envelope", [BOOTSTRAP, INFRASTRUCTURE])
def test_an_envelope_is_explained_with_a_group_that_is_allowed_in_it(envelope):
    said = SCHEMA["properties"]["spec"]["properties"][envelope]["properties"]["apiVersion"]["description"]
    assert any(f"{group}/v1beta1 in {envelope}" in said for group in DEFAULT_POLICY.groups(envelope))


def test_defaults_are_those_of_the_webhook():
    spec = SCHEMA["properties"]["spec"]["properties"]
    given = {name: field["default"] for name, field in spec.items() if "default" in field}
    assert given == defaults.SPEC
    schedule = spec["schedule"]["properties"]
    assert {name: field["default"] for name, field in schedule.items() if "default" in field} == defaults.SCHEDULE


def test_optional_fields_without_default_may_be_null():
    spec = SCHEMA["properties"]["spec"]
    for schema in (spec, spec["properties"]["schedule"], spec["properties"]["bootstrapSpec"]):
        for name, field in schema["properties"].items():
            optional = name not in schema.get("required", [])
            assert field.get("nullable", False) is (optional and "default" not in field), name


def test_every_rule_says_what_is_wrong():
    rules = [rule for _, schema in [("", SCHEMA), *BELOW] for rule in schema.get(cel.VALIDATIONS, ())]
    assert len(rules) > 15
    assert all(rule["message"] and "\n" not in rule["message"] for rule in rules)


def test_no_refusal_quotes_a_regular_expression():
    assert not [path for path, schema in BELOW if "pattern" in schema]


def test_an_operator_with_another_allowlist_gets_another_crd():
    policy = ProviderPolicy(infrastructure_groups=frozenset({"metal.example.com"}), refused_kinds=("*Pool",))
    spec = object_schema(policy)["properties"]["spec"]["properties"]["infrastructureSpec"]["properties"]
    assert spec["apiVersion"][cel.VALIDATIONS][-1]["rule"] == "self.startsWith('metal.example.com/')"
    assert "Pool" in spec["kind"][cel.VALIDATIONS][-1]["rule"]
    again = object_schema(policy)["properties"]["spec"]["properties"]["infrastructureSpec"]["properties"]
    assert again == spec, "making one schema changed the next"
    assert custom_resource_definition(policy) != custom_resource_definition(DEFAULT_POLICY)


def test_lists_with_identity_are_maps():
    keys = {
        path: schema["x-kubernetes-list-map-keys"] for path, schema in BELOW if "x-kubernetes-list-map-keys" in schema
    }
    assert keys == {
        "spec.nodeTaints": ["key", "effect"],
        "status.conditions": ["type"],
        "status.appliedNodeTaints": ["key", "effect"],
    }

import re
from typing import Any

import pytest
import yaml

from crds import cel, countries, names, policies, zones
from crds.generate import POLICIES, ROOT, main
from crds.providers import ProviderPolicy
from crds.schema import object_schema

MADE = policies.manifests()
ALL = [pair[0] for pair in MADE.values()]
RULES = MADE["scheduledmachines.yaml"][0]["spec"]["validations"]


def carried(schema: dict[str, Any]) -> list[dict[str, Any]]:
    """Every rule of the CRD."""
    parts = [schema[word] for word in ("items", "additionalProperties") if word in schema]
    inner = [*schema.get("properties", {}).values(), *parts]
    return [*schema.get(cel.VALIDATIONS, ()), *(rule for each in inner for rule in carried(each))]


@pytest.mark.parametrize("name", MADE)
def test_what_is_written_reads_as_what_was_made(name):
    text = (ROOT / POLICIES / name).read_text(encoding="utf-8")
    assert list(yaml.safe_load_all(text)) == MADE[name]


def test_every_rule_of_the_crd_is_in_the_policies():
    messages = [each["message"].partition(": ")[2] for each in RULES]
    for rule in carried(object_schema()):
        assert rule["message"].removeprefix("metadata.name ") in messages
    assert len(RULES) == len(carried(object_schema())) + 4


def test_a_message_begins_with_the_field_and_is_one_line():
    for each in RULES:
        assert re.match(r"(spec|metadata)[\w.\[\]]*: ", each["message"])
        assert "\n" not in each["message"]


def test_nothing_calls_its_subject_self_any_more():
    assert not [each for each in RULES if re.search(r"\b(self|oldSelf)\b", each["expression"])]


@pytest.mark.parametrize("policy", ALL, ids=lambda policy: policy["metadata"]["name"])
def test_only_writes_of_specs_are_checked(policy):
    (rule,) = policy["spec"]["matchConstraints"]["resourceRules"]
    ours = [names.PLURAL]
    if policy["metadata"]["name"] == policies.CALENDARS:
        ours = [names.CALENDAR_PLURAL, names.CLUSTER_CALENDAR_PLURAL]
    if policy["metadata"]["name"] == policies.OVERRIDES:
        ours = [names.OVERRIDE_PLURAL]
    assert (rule["resources"], rule["operations"]) == (ours, ["CREATE", "UPDATE"])
    conditions = {each["name"]: each["expression"] for each in policy["spec"]["matchConditions"]}
    if policy["metadata"]["name"] == policies.CLASSES:
        assert list(conditions) == ["names-a-class", "changes-what-the-class-gets"]
        return
    assert conditions == {"changes-the-spec": "oldObject == null || object.spec != oldObject.spec"}


def test_advice_warns_and_never_stands_in_the_way():
    advice, binding = MADE["advice.yaml"]
    assert advice["spec"]["failurePolicy"] == "Ignore"
    assert binding["spec"]["validationActions"] == ["Warn"]


def test_every_zone_that_the_rulebook_knows_is_listed():
    (check,) = MADE["timezones.yaml"][0]["spec"]["validations"]
    assert set(re.findall(r"'([^']+)'", check["expression"])) == zones.names()


def test_every_country_and_subdivision_that_the_rulebook_knows_is_listed():
    variables = {each["name"]: each["expression"] for each in MADE["calendars.yaml"][0]["spec"]["variables"]}
    for country, parts in countries.known().items():
        listed = ", ".join(f"'{part}'" for part in parts)
        assert f"'{country}': [{listed}]" in variables["known"]


def test_policies_for_another_allowlist_can_be_printed(capsys, tmp_path):
    words = ["--root", str(tmp_path), "--print-policies", "--infrastructure-groups", "metal.example.com"]
    assert main(words) == 0
    printed = list(yaml.safe_load_all(capsys.readouterr().out))
    other = policies.manifests(ProviderPolicy(infrastructure_groups=frozenset({"metal.example.com"})))
    assert printed == [each for pair in other.values() for each in pair]
    assert "metal.example.com" in str(printed)
    assert not list(tmp_path.iterdir())

"""The rulebook of overrides, and the CRD that is made from their models."""

from typing import Any

import pytest

from crds import names
from crds.overriderules import check_override
from crds.overrideschema import override_definition
from crds.selector import Selector
from tests.corpus import Case, load_overrides, override


@pytest.mark.parametrize("case", load_overrides(), ids=lambda case: case.id)
def test_the_rulebook_judges_the_corpus(case: Case):
    verdict = check_override(case.manifest, old=case.old)
    assert [each.field for each in verdict.violations] == ([] if case.valid else [case.field])


def test_every_rule_of_the_corpus_is_shown_by_three_bad_examples():
    rules = {case.rule for case in load_overrides()}
    for rule in rules:
        assert len([case for case in load_overrides() if case.rule == rule and not case.valid]) >= 3


def test_all_that_is_wrong_is_said_at_once():
    bad = override() | {"kind": "Override"}
    bad["spec"] = {"machines": ["A"], "state": "open", "until": "later"}
    fields = [each.field for each in check_override(bad).violations]
    assert fields == ["spec.machines[0]", "spec.state", "spec.until", "kind"]


def test_nothing_that_is_sent_raises():
    deep: list[Any] = [None, [], "x", {}, {"spec": []}, {"spec": {"selector": {"matchExpressions": [None, 1, {}]}}}]
    for hostile in deep:
        assert check_override(hostile).violations


def test_an_override_older_than_a_rule_can_still_be_shortened():
    old = override()
    old["spec"]["reason"] = "a" * 300
    new = override()
    new["spec"] |= {"reason": "a" * 300, "until": "2026-11-20T21:00:00Z"}
    assert check_override(new, old=old).violations == ()


def test_null_and_absent_are_the_same_to_an_update():
    new = override()
    new["spec"] |= {"from": None, "reason": None}
    assert check_override(new, old=override()).violations == ()


def test_the_definition_says_how_overrides_are_called():
    spec = override_definition()["spec"]
    assert spec["names"]["kind"] == names.OVERRIDE_KIND
    assert spec["names"]["shortNames"] == ["sov"]
    (version,) = spec["versions"]
    assert version["subresources"] == {"status": {}}
    columns = [each["name"] for each in version["additionalPrinterColumns"] if "priority" not in each]
    assert columns == ["Machines", "State", "From", "Until", "By", "In force"]


SELECTORS = [
    ({"matchLabels": {"team": "a"}}, {"team": "a", "more": "x"}, True),
    ({"matchLabels": {"team": "a"}}, {"team": "b"}, False),
    ({"matchLabels": {"team": ""}}, {}, False),
    ({"matchExpressions": [{"key": "team", "operator": "In", "values": ["a", "b"]}]}, {"team": "b"}, True),
    ({"matchExpressions": [{"key": "team", "operator": "In", "values": ["a", "b"]}]}, {}, False),
    ({"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["a"]}]}, {}, True),
    ({"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["a"]}]}, {"team": "a"}, False),
    ({"matchExpressions": [{"key": "team", "operator": "Exists"}]}, {"team": ""}, True),
    ({"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}, {"team": ""}, False),
    ({"matchLabels": {"a": "1"}, "matchExpressions": [{"key": "b", "operator": "Exists"}]}, {"a": "1"}, False),
]


@pytest.mark.parametrize(("selector", "labels", "selected"), SELECTORS)
def test_a_selector_selects_as_kubernetes_does(selector, labels, selected):
    assert Selector.parse(selector).matches(labels) is selected

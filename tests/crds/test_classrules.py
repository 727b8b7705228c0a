"""The rules of classes on their corpus, and that an update answers only for what it changes."""

import time
from collections import Counter
from datetime import timedelta

import pytest

from crds.classes import ClassProblem, UnusableClass
from crds.classrules import check_class, read_class
from crds.classschema import class_definition
from crds.parameters import UNREADABLE
from crds.providers import ProviderPolicy
from crds.scheduledmachineclass import ClassSpec
from tests.corpus import Case, load_classes, machine_class
from tests.crds.machines import nested

CASES = load_classes()


def test_there_are_three_invalid_classes_for_every_rule():
    assert len({case.id for case in CASES}) == len(CASES)
    assert min(Counter(case.rule for case in CASES if not case.valid).values()) >= 3


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_the_rules_name_the_one_thing_that_is_wrong(case: Case):
    verdict = check_class(case.manifest)
    assert [violation.field for violation in verdict.violations] == ([] if case.valid else [case.field])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_the_controller_uses_a_class_only_whole(case: Case):
    found = read_class(case.manifest)
    problem = found.problem if isinstance(found, UnusableClass) else None
    assert problem is (None if case.valid else ClassProblem.INVALID)


@pytest.mark.parametrize("case", [case for case in CASES if case.valid], ids=lambda case: case.id)
def test_what_a_class_means_can_be_written_out_and_read_again(case: Case):
    spec = check_class(case.manifest).spec
    assert spec is not None
    assert ClassSpec.parse(spec.to_json(), unknown="forbid") == spec


def test_everything_wrong_is_listed_at_once():
    raw = machine_class(
        priority=300, parameters=[{"name": "a", "schema": {"$ref": "x"}}, {"name": "b c"}], colour="blue"
    )
    raw["metadata"] = {"name": "Desk", "namespace": "team"}
    assert {violation.field for violation in check_class(raw).violations} == {
        "metadata.name",
        "metadata.namespace",
        "spec.priority",
        "spec.parameters[0].schema",
        "spec.parameters[1].name",
        "spec.colour",
    }


def test_a_mistake_elsewhere_hides_none_in_references():
    raw = machine_class(priority=300)
    raw["spec"]["bootstrapSpec"]["spec"] = {"version": "$(params.version)"}
    assert [violation.field for violation in check_class(raw).violations] == [
        "spec.priority",
        "spec.bootstrapSpec.spec.version",
    ]


@pytest.mark.parametrize("parameters", [7, True, {}, {"address": {}}, "address", [7], [[]], [{"name": []}]], ids=repr)
def test_parameters_that_make_no_sense_are_refused_and_nothing_raises(parameters):
    assert any(
        each.field.startswith("spec.parameters")
        for each in check_class(machine_class(parameters=parameters)).violations
    )


@pytest.mark.parametrize("default", [2**70, "\ud800"], ids=["huge number", "half a character"])
def test_what_is_no_json_is_called_that_and_not_too_large(default):
    (found,) = check_class(machine_class(parameters=[{"name": "address", "default": default}])).violations
    assert (found.field, found.message) == ("spec.parameters", UNREADABLE)


def test_the_timeouts_of_a_class_that_cannot_be_used_can_still_be_read():
    found = read_class(machine_class(priority=300, gracefulShutdownTimeout="2h", nodeDrainTimeout="soon"))
    assert isinstance(found, UnusableClass)
    assert (found.grace, found.drain) == (timedelta(hours=2), None)


def test_a_reference_where_nothing_is_put_in_is_worth_a_warning():
    given = machine_class(machineTemplate={"annotations": {"a": "at $(params.address)"}}, killIfCommands=["$(params.x"])
    verdict = check_class(given)
    assert verdict.allowed
    assert [warning.split(": ")[0] for warning in verdict.warnings] == [
        "spec.machineTemplate.annotations[a]",
        "spec.killIfCommands[0]",
    ]


def test_an_update_answers_only_for_what_it_changes():
    old = machine_class(parameters=[{"name": "address", "schema": {"$ref": "#"}}])
    labelled = {**old, "metadata": {"name": "desk", "labels": {"a": "b"}}}
    assert check_class(labelled, old=old).allowed
    assert check_class(labelled, old=old).spec is None
    worse = machine_class(parameters=[{"name": "address", "schema": {"$ref": "#/other"}}])
    assert not check_class(worse, old=old).allowed


def test_a_class_obeys_the_operators_policy():
    policy = ProviderPolicy(infrastructure_groups=frozenset({"example.com"}))
    assert [each.field for each in check_class(machine_class(), policy=policy).violations] == [
        "spec.infrastructureSpec.apiVersion"
    ]


def test_a_parameter_that_nothing_uses_and_a_reference_in_a_name_are_worth_a_warning():
    raw = machine_class(parameters=[{"name": "address", "schema": {"type": "string"}}, {"name": "spare"}])
    raw["spec"]["infrastructureSpec"]["spec"]["$(params.address)"] = 1
    first, second = check_class(raw).warnings
    assert first.startswith("spec.parameters[1].name: spare")
    assert second.startswith("spec.infrastructureSpec.spec.$(params.address)")


def test_a_stored_class_with_a_field_of_a_newer_version_is_not_used():
    newer = machine_class(colour="blue")
    assert isinstance(read_class(newer), UnusableClass)


@pytest.mark.parametrize("where", ["schema", "default"])
def test_deep_and_long_schemas_are_refused_without_being_looked_at(where):
    for given in (nested(5000), ["x"] * 200_000):
        parameter = {"name": "address", "schema": {"enum": given} if where == "schema" else {}, "default": given}
        started = time.perf_counter()
        verdict = check_class(machine_class(parameters=[parameter]))
        assert [each.field for each in verdict.violations] == ["spec.parameters"]
        assert time.perf_counter() - started < 5


def test_the_definition_is_cluster_scoped_and_carries_the_policy():
    definition = class_definition(ProviderPolicy(bootstrap_groups=frozenset({"example.com"})))
    assert definition["spec"]["scope"] == "Cluster"
    assert "example.com" in str(definition)

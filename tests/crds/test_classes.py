"""What a ScheduledMachine and its class make together, and what is said of parameters that do not fit."""

import subprocess
import sys
import time
from datetime import timedelta
from typing import Any

import pytest

from crds.classes import ClassProblem, MachineClass, UnusableClass, resolve
from crds.classrules import read_class
from crds.parameters import BYTES_MAX, Parameter, parameter_violations
from crds.rules import check
from crds.scheduledmachine import DEFAULT_PRIORITY, DEFAULT_TIMEOUT, WrittenSpec
from crds.violations import ViolationReason
from tests.corpus import machine_class
from tests.crds.classes import tenancy, user
from tests.crds.machines import machine, nested

DESK = machine_class(
    parameters=[
        {"name": "address", "schema": {"type": "string", "pattern": "^[0-9.]+$", "maxLength": 15}},
        {"name": "port", "schema": {"type": "integer", "minimum": 1, "maximum": 65535}, "default": 22},
        {"name": "labels", "schema": {"type": "object", "additionalProperties": {"type": "string"}}, "default": {}},
    ],
    bootstrapSpec={
        "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta1",
        "kind": "K0sWorkerConfig",
        "spec": {"args": ["--labels=host=$(params.address):$(params.port)"]},
    },
    infrastructureSpec={
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
        "kind": "RemoteMachine",
        "spec": {"address": "$(params.address)", "port": "$(params.port)", "more": "$(params.labels)"},
    },
)


def verdict(parameters, **options) -> Any:
    return check(user(parameters), tenancy=tenancy(DESK), **options)


def complete(raw, *classes) -> Any:
    model = check(raw, tenancy=tenancy(*classes)).model
    assert model is not None
    return model.spec


def test_parameters_go_into_both_specs_with_their_types():
    spec = verdict({"address": "10.1.2.7", "labels": {"floor": "3"}}).model.spec
    assert spec.infrastructure_spec.spec == {"address": "10.1.2.7", "port": 22, "more": {"floor": "3"}}
    assert spec.bootstrap_spec.spec == {"args": ["--labels=host=10.1.2.7:22"]}
    assert (spec.bootstrap_spec.kind, spec.bootstrap_spec.namespace) == ("K0sWorkerConfig", None)


def test_every_field_of_the_machine_is_kept_but_those_that_the_class_makes():
    made = {"bootstrap_spec", "infrastructure_spec", "machine_template", "parameters"}
    written: dict[str, Any] = {name: f"the user's {name}" for name in WrittenSpec.model_fields if name not in made}
    desk = read_class(DESK)
    assert isinstance(desk, MachineClass)
    spec = resolve(WrittenSpec.model_construct(**written, parameters={"address": "10.1.2.7"}), desk).spec
    assert {name: getattr(spec, name) for name in written} == written


def test_all_that_is_wrong_with_parameters_is_said_at_once():
    wrong = verdict({"address": "10.1.2.7; rm -rf / #", "port": "22", "labels": {"a": 1, "b": 2}, "user": "root"})
    assert {(each.field, each.reason) for each in wrong.violations} == {
        ("spec.parameters.address", ViolationReason.INVALID),
        ("spec.parameters.port", ViolationReason.INVALID),
        ("spec.parameters.labels.a", ViolationReason.INVALID),
        ("spec.parameters.labels.b", ViolationReason.INVALID),
        ("spec.parameters.user", ViolationReason.FORBIDDEN),
    }
    assert sum(each.field == "spec.parameters.address" for each in wrong.violations) == 2
    assert wrong.model is None


def test_other_mistakes_in_the_object_are_listed_with_those_in_the_parameters():
    raw = user({"port": 0}, priority=300)
    raw["metadata"]["name"] = "Desk"
    assert {each.field for each in check(raw, tenancy=tenancy(DESK)).violations} == {
        "metadata.name",
        "spec.priority",
        "spec.parameters.address",
        "spec.parameters.port",
    }


def test_null_counts_as_not_given():
    assert (
        verdict({"address": "10.1.2.7", "port": None, "other": None}).model.spec.infrastructure_spec.spec["port"] == 22
    )
    (missing,) = verdict({"address": None}).violations
    assert (missing.field, missing.reason) == ("spec.parameters.address", ViolationReason.REQUIRED)


@pytest.mark.parametrize(
    "value",
    [
        "x" * 300 * 1024,
        nested(40),
        nested(5000),
        ["x"] * 200_000,
        {str(number): number for number in range(20_000)},
        "\ud800",
        2**70,
    ],
    ids=["300 KiB", "40 levels", "5000 levels", "long list", "wide object", "half a character", "huge number"],
)
def test_hostile_sizes_are_refused_quickly_and_quoted_briefly(value):
    started = time.perf_counter()
    found = verdict({"address": "10.1.2.7", "labels": value}).violations
    assert found
    assert time.perf_counter() - started < 5
    assert all(each.field.startswith("spec.parameters") and len(str(each)) < 1000 for each in found)


def test_more_than_64_parameters_are_refused():
    (found,) = verdict({f"p{number}": 1 for number in range(65)} | {"address": "1"}).violations[:1]
    assert (found.field, found.reason) == ("spec.parameters", ViolationReason.TOO_LONG)


@pytest.mark.parametrize("pattern", ["^(a+)+$", "^(a|a)*$", "^(.*a){20}$", "^([a-z]+)*[0-9]$"])
def test_a_slow_regular_expression_costs_nothing(pattern):
    parameter = Parameter("x", {"type": "string", "pattern": pattern})
    text = "a" * (BYTES_MAX - 100) + "!"
    started = time.perf_counter()
    assert parameter_violations({"x": text}, {"x": parameter})
    assert time.perf_counter() - started < 2


def test_the_library_of_schemas_is_loaded_only_for_a_class():
    program = (
        "import sys; from crds.rules import check; from tests.crds.machines import machine; "
        "assert check(machine()).allowed; assert 'jsonschema_rs' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_own_fields_come_first_then_those_of_the_class_then_the_built_in_ones():
    shop = machine_class(
        priority=70,
        nodeDrainTimeout="2h",
        killIfCommands=["ide"],
        nodeTaints=[{"key": "desk", "effect": "NoSchedule"}],
        machineTemplate={"labels": {"floor": "1", "kind": "desk"}, "version": "v1.34.2"},
    )
    bare = complete(user({"address": "a"}), shop)
    assert (bare.priority, bare.node_drain_timeout, bare.graceful_shutdown_timeout) == (
        70,
        timedelta(hours=2),
        DEFAULT_TIMEOUT,
    )
    assert bare.kill_if_commands == ("ide",)
    given = user(
        {"address": "a"},
        priority=DEFAULT_PRIORITY,
        nodeTaints=[],
        killIfCommands=["game"],
        machineTemplate={"labels": {"floor": "2"}, "failureDomain": "b"},
    )
    own = complete(given, shop)
    assert (own.priority, own.node_taints, own.kill_if_commands) == (DEFAULT_PRIORITY, (), ("game",))
    assert own.machine_template.labels == {"floor": "2", "kind": "desk"}
    assert (own.machine_template.version, own.machine_template.failure_domain) == ("v1.34.2", "b")


def test_labels_of_both_together_are_bounded():
    crowded = machine_class(machineTemplate={"labels": {f"a{number}": "x" for number in range(40)}})
    raw = user({"address": "a"}, machineTemplate={"labels": {f"b{number}": "x" for number in range(40)}})
    assert [each.field for each in check(raw, tenancy=tenancy(crowded)).violations] == ["spec.machineTemplate.labels"]


def test_a_class_that_is_missing_is_worth_a_warning_only():
    found = check(user({"anything": 1}), tenancy=tenancy())
    assert found.allowed
    assert found.model is None
    assert found.written is not None
    assert isinstance(found.of_class, UnusableClass)
    assert any("desk does not exist" in warning for warning in found.warnings)


def test_a_class_that_is_invalid_is_worth_a_warning_only():
    found = check(user({}), tenancy=tenancy(machine_class(priority=300)))
    assert found.allowed
    assert isinstance(found.of_class, UnusableClass)
    assert found.of_class.problem is ClassProblem.INVALID
    assert any("spec.priority" in warning for warning in found.warnings)


def test_a_class_that_is_not_for_the_namespace_is_refused():
    trading = machine_class(namespaceSelector={"matchLabels": {"team": "trading"}})
    assert check(user({"address": "a"}), tenancy=tenancy(trading, labels={"team": "trading"})).allowed
    (found,) = check(user({"address": "a"}), tenancy=tenancy(trading, labels={"team": "risk"})).violations
    assert (found.field, found.reason) == ("spec.classRef", ViolationReason.FORBIDDEN)


def test_a_mistake_elsewhere_does_not_hide_that_a_class_is_not_for_the_namespace():
    trading = machine_class(namespaceSelector={"matchLabels": {"team": "trading"}})
    found = check(user({"address": "a"}, priority=300), tenancy=tenancy(trading)).violations
    assert [each.field for each in found] == ["spec.priority", "spec.classRef"]


def test_a_mistake_that_was_stored_before_lets_no_parameters_in_that_the_class_refuses():
    old = user({"address": "10.1.2.7"}, priority=300)
    assert check(user({"address": "10.1.2.7"}, priority=300, killSwitch=True), old=old, tenancy=tenancy(DESK)).allowed
    (found,) = check(user({"address": "$(id)"}, priority=300), old=old, tenancy=tenancy(DESK)).violations
    assert found.field == "spec.parameters.address"


def test_a_user_whose_class_is_no_longer_for_the_namespace_can_be_edited_but_not_its_parameters():
    gone = tenancy(machine_class(namespaceSelector={"matchLabels": {"team": "trading"}}))
    old = user({"address": "a"})
    assert check(user({"address": "a"}, priority=1), old=old, tenancy=gone).allowed
    (found,) = check(user({"address": "b"}), old=old, tenancy=gone).violations
    assert found.field == "spec.classRef"


def test_a_namespace_may_take_only_classes():
    only = tenancy(DESK, only_classes=True)
    (found,) = check(machine(), tenancy=only).violations
    assert (found.field, found.reason) == ("spec.classRef", ViolationReason.FORBIDDEN)
    assert check(user({"address": "10.1.2.7"}), tenancy=only).allowed


def test_an_object_from_before_the_label_can_still_be_edited_but_not_its_specs():
    only, old = tenancy(DESK, only_classes=True), machine()
    assert check(machine(priority=1), old=old, tenancy=only).allowed
    moved = {**old["spec"]["infrastructureSpec"], "spec": {"address": "10.6.6.6"}}
    assert not check(machine(infrastructureSpec=moved), old=old, tenancy=only).allowed


def test_a_user_whose_class_has_changed_can_still_be_edited_but_not_its_parameters():
    old = user({"address": "no address"})
    assert check(user({"address": "no address"}, priority=1), old=old, tenancy=tenancy(DESK)).allowed
    assert not check(user({"address": "neither"}), old=old, tenancy=tenancy(DESK)).allowed


def test_parameters_that_make_an_object_too_deep_or_too_large_are_refused():
    deep = machine_class(
        parameters=[{"name": "x"}],
        infrastructureSpec={**DESK["spec"]["infrastructureSpec"], "spec": nested(80) | {"x": "$(params.x)"}},
    )
    inner = deep["spec"]["infrastructureSpec"]["spec"]
    while inner.get("more"):
        inner = inner["more"]
    inner["x"] = "$(params.x)"
    assert check(user({"x": nested(10)}), tenancy=tenancy(deep)).allowed
    assert [each.field for each in check(user({"x": nested(31)}), tenancy=tenancy(deep)).violations] == [
        "spec.parameters"
    ]
    wide = machine_class(
        parameters=[{"name": "x"}],
        infrastructureSpec={**DESK["spec"]["infrastructureSpec"], "spec": {"list": ["$(params.x)"] * 100}},
    )
    assert [each.field for each in check(user({"x": "x" * 50_000}), tenancy=tenancy(wide)).violations] == [
        "spec.parameters"
    ]

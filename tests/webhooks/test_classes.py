"""Admission with classes: what a namespace allows, all mistakes in parameters at once, and warnings."""

import asyncio
import base64
from typing import Any

import orjson
import pytest

from crds import defaults, names
from crds.classes import MachineClass, class_not_found
from crds.classrules import read_class
from tests.corpus import machine_class
from tests.crds.classes import user
from tests.webhooks.reviews import at_once, machine, review
from webhooks.classes import ClassLookups, NamespaceUnknownError
from webhooks.configuration import Registration, ServiceRef, manifests
from webhooks.review import parse
from webhooks.verdict import Gate

DESK = machine_class(
    namespaceSelector={"matchLabels": {"team": "trading"}},
    parameters=[
        {"name": "address", "schema": {"type": "string", "pattern": "^[0-9.]+$"}},
        {"name": "port", "schema": {"type": "integer"}, "default": 22},
    ],
)
TRADING = {"team": "trading"}
CLASSES_ONLY = {"team": "trading", names.LABEL_TENANCY: names.TENANCY_CLASSES}


def gate(labels: dict[str, str] | None = None, **options: Any) -> Gate:
    desk = read_class(DESK)
    assert isinstance(desk, MachineClass)
    lookups = ClassLookups(
        find=lambda name: desk if name == "desk" else class_not_found(name),
        labels=lambda _namespace: labels,
        **options,
    )
    return Gate(classes=lookups)


def asked(given: dict[str, Any], **options: Any) -> Any:
    return parse(orjson.dumps(review(given, **options)))


def answered(judged: Any) -> dict[str, Any]:
    response: dict[str, Any] = orjson.loads(at_once(judged).body)["response"]
    return response


def causes(response: dict[str, Any]) -> set[str]:
    return {cause["field"] for cause in response["status"]["details"]["causes"]}


@pytest.mark.parametrize("webhook", ["validate", "default"])
def test_all_mistakes_in_parameters_are_listed_at_once(webhook):
    given = user({"address": "10.1.2.7; rm -rf /", "port": "22", "user": "root"}, priority=3)
    response = answered(getattr(gate(TRADING), webhook)(asked(given)))
    assert causes(response) == {"spec.parameters.address", "spec.parameters.port", "spec.parameters.user"}


def test_a_namespace_that_takes_only_classes_refuses_specs_of_its_own():
    assert causes(answered(gate(CLASSES_ONLY).validate(asked(machine())))) == {"spec.classRef"}
    assert answered(gate(CLASSES_ONLY).validate(asked(user({"address": "10.1.2.7"}))))["allowed"]
    assert answered(gate(TRADING).validate(asked(machine())))["allowed"]


def test_a_class_for_other_namespaces_is_refused():
    assert causes(answered(gate({"team": "risk"}).validate(asked(user({"address": "10.1.2.7"}))))) == {"spec.classRef"}


def test_a_class_that_is_missing_is_let_in_with_a_warning():
    response = answered(gate(TRADING).validate(asked(user({"address": "x"}, of="later"))))
    assert response["allowed"]
    assert "later does not exist" in response["warnings"][0]


def test_defaults_are_not_written_beside_a_class():
    response = answered(gate(TRADING).default(asked(user({"address": "10.1.2.7"}))))
    patch = orjson.loads(base64.b64decode(response["patch"]))
    paths = {each["path"].removeprefix("/spec/") for each in patch}
    assert {path for path in paths if "/" not in path} == set(defaults.SPEC)
    assert paths >= {"schedule/timezone", "schedule/enabled", "/metadata/finalizers"}
    assert set(defaults.WITHOUT_CLASS).isdisjoint(paths)


def test_a_namespace_that_is_new_is_asked_for():
    async def ask(namespace: str) -> dict[str, str]:
        assert namespace == "default"
        return CLASSES_ONLY

    judged: Any = gate(None, ask=ask).validate(asked(machine()))
    assert causes(answered(asyncio.run(judged))) == {"spec.classRef"}


def test_a_namespace_that_cannot_be_read_refuses_for_now():
    async def ask(_namespace: str) -> dict[str, str]:
        raise NamespaceUnknownError("no answer")

    judged: Any = gate(None, ask=ask).validate(asked(machine()))
    response = answered(asyncio.run(judged))
    assert (response["allowed"], response["status"]["code"]) == (False, 503)
    assert "no answer; try again" in response["status"]["message"]


def of_class(given: dict[str, Any] | None, **options: Any) -> Any:
    kind = {"group": names.GROUP, "version": names.VERSION, "kind": names.CLASS_KIND}
    return parse(orjson.dumps(review(given, kind=kind, **options)), names.CLASS_KIND)


def test_a_class_is_judged_with_all_that_is_wrong():
    given = machine_class(parameters=[{"name": "a", "schema": {"$ref": "#"}}], priority=300)
    assert causes(answered(Gate().validate_class(of_class(given)))) == {
        "spec.priority",
        "spec.parameters[0].schema",
        "spec.infrastructureSpec.spec.address",
    }
    response = answered(Gate().validate_class(of_class(machine_class(parameters=[{"name": "address"}, {"name": "b"}]))))
    assert response["allowed"]
    assert "b is not used" in response["warnings"][0]


def test_deleting_a_class_in_use_warns_and_is_allowed():
    users = [f"team/desk-{number}" for number in range(300)]
    found = gate(TRADING, users=lambda name: users if name == "desk" else [])
    response = answered(found.validate_class(of_class(None, old=DESK, operation="DELETE")))
    assert response["allowed"]
    assert "team/desk-0, team/desk-1, team/desk-10 and 297 more" in response["warnings"][0]
    other = machine_class()
    other["metadata"]["name"] = "other"
    assert "warnings" not in answered(found.validate_class(of_class(None, old=other, operation="DELETE")))


def test_the_deletion_of_a_class_never_waits_for_us():
    registration = Registration(ServiceRef("5spot-system", "5spot"), service_account="me", classes=True)
    _, validating = manifests(registration)
    judges, warns = validating["webhooks"][-2:]
    assert (judges["failurePolicy"], warns["failurePolicy"]) == ("Fail", "Ignore")
    assert (judges["rules"][0]["scope"], warns["rules"][0]["operations"]) == ("Cluster", ["DELETE"])

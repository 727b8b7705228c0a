"""The CRD of classes on a real API server, and the policies that judge their users without webhooks."""

from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest

from crds.classschema import class_definition
from crds.generate import POLICIES
from local import crds
from local.cluster import LocalCluster
from service.kube.client import Client, PatchKind
from service.kube.decode import decoded
from service.kube.errors import Rejected
from service.kube.resource import NAMESPACES, SCHEDULED_MACHINE_CLASSES
from service.kube.transport import Request
from tests.corpus import base, load_classes, machine_class
from tests.crds.classes import user
from tests.crds.machines import nested
from tests.integration.api_door import served
from tests.integration.policy_door import applied, documents, in_force, refusal

STRICT = "dryRun=All&fieldValidation=Strict"
DESK = machine_class(
    namespaceSelector={
        "matchLabels": {"team": "trading"},
        "matchExpressions": [
            {"key": "stage", "operator": "In", "values": ["prod", "test"]},
            {"key": "stage", "operator": "NotIn", "values": ["test"]},
            {"key": "team", "operator": "Exists"},
            {"key": "frozen", "operator": "DoesNotExist"},
        ],
    },
    parameters=[
        {"name": "address", "schema": {"type": "string", "pattern": "^[0-9.]+$", "maxLength": 15}},
        {"name": "port", "schema": {"type": "integer", "minimum": 1, "maximum": 65535}, "default": 22},
        {"name": "size", "schema": {"enum": ["small", "large"]}, "default": "small"},
        {"name": "ratio", "schema": {"type": "number"}, "default": 1},
        {"name": "on", "schema": {"type": "boolean"}, "default": True},
        {"name": "more", "schema": {"type": "object"}, "default": {}},
        {"name": "list", "schema": {"type": "array"}, "default": []},
        {"name": "either", "schema": {"type": ["string", "integer"]}, "default": 1},
    ],
)
LABELS = {"team": "trading", "stage": "prod"}


@pytest.fixture
async def client(small_cluster: LocalCluster) -> AsyncIterator[Client]:
    async with served(small_cluster) as found:
        await crds.apply(found, class_definition())
        yield found


async def admits(client: Client, manifest: dict[str, Any]) -> bool:
    path = f"{SCHEDULED_MACHINE_CLASSES.collection(None)}?{STRICT}"
    headers = {"Content-Type": "application/json"}
    plural = SCHEDULED_MACHINE_CLASSES.plural
    request = Request("create", "POST", path, plural, orjson.dumps(manifest), headers)
    try:
        await decoded(await client.transport.call(request))
    except Rejected:
        return False
    return True


@pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")
async def test_schema_and_cel_judge_as_the_rules_but_for_what_is_in_schemas_and_specs(client: Client) -> None:
    cases = load_classes()
    admitted = {case.id for case in cases if await admits(client, case.manifest)}
    assert admitted == {case.id for case in cases if case.valid or case.webhook_only}


async def test_types_and_unknown_words_of_a_schema_are_stored_as_they_were_written(client: Client) -> None:
    given = machine_class(
        parameters=[
            {"name": "address", "schema": {"type": ["string", "integer"], "x": {"y": [1, None, 2.5]}}, "default": 7}
        ]
    )
    given["metadata"]["name"] = "kept"
    stored = await client.create(SCHEDULED_MACHINE_CLASSES, given)
    try:
        assert stored["spec"] == given["spec"]
    finally:
        await client.delete(SCHEDULED_MACHINE_CLASSES, "kept")


def named(parameters: dict[str, Any], of: str = "desk") -> dict[str, Any]:
    return user(parameters, of=of)


GOOD: list[dict[str, Any]] = [
    {"address": "10.1.2.7"},
    {"address": "10.1.2.7", "port": 2222, "size": "large", "ratio": 0.5, "on": False, "more": {"a": 1}, "list": [1]},
    {"address": "10.1.2.7", "either": "x", "port": None, "unknown": None},
]
BAD: dict[str, tuple[dict[str, Any], str]] = {
    "lacks": ({}, "required by the class: address"),
    "null": ({"address": None}, "required by the class: address"),
    "unknown": ({"address": "10.1.2.7", "user": "root"}, "unknown: user"),
    "type": ({"address": "10.1.2.7", "port": "22"}, "against type"),
    "boolean": ({"address": "10.1.2.7", "on": "true"}, "against type"),
    "list": ({"address": "10.1.2.7", "list": {}}, "against type"),
    "shell": ({"address": "10.1.2.7; id"}, "against pattern"),
    "long": ({"address": "1" * 16}, "against maxLength"),
    "low": ({"address": "10.1.2.7", "port": 0}, "against minimum"),
    "high": ({"address": "10.1.2.7", "port": 65536}, "against maximum"),
    "other": ({"address": "10.1.2.7", "size": "huge"}, "against enum"),
}


HUGE: dict[str, Any] = {
    "long": {"a": "x" * 1_000_000},
    "wide": {str(number): number for number in range(50_000)},
    "list": {"a": [["x"]] * 100_000},
    "deep": nested(200),
}


@pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")
async def test_without_webhooks_policies_know_who_may_use_a_class_and_the_plain_words_of_its_schemas(
    client: Client, namespace: str
) -> None:
    for name in ("desk", "other"):
        body = {**(DESK if name == "desk" else machine_class()), "metadata": {"name": name}}
        await client.patch(SCHEDULED_MACHINE_CLASSES, name, body, kind=PatchKind.APPLY, force=True)
    await client.patch(NAMESPACES, namespace, {"metadata": {"labels": LABELS}})
    try:
        async with applied(client, documents(POLICIES / "classes.yaml"), namespace):
            await in_force(client, named({}), namespace)
            for given in GOOD:
                assert await refusal(client, named(given), namespace) == ""
            for given, said in BAD.values():
                assert said in await refusal(client, named(given), namespace)
            assert await refusal(client, named({"x": 1}, of="nobody"), namespace) == "", (
                "a missing class is no objection"
            )
            await client.patch(NAMESPACES, namespace, {"metadata": {"labels": {"stage": "test"}}})
            await in_force(client, named(GOOD[0]), namespace)
            assert "is not for namespace" in await refusal(client, named(GOOD[0]), namespace)
            for size, value in HUGE.items():
                said = await refusal(client, named({"address": "10.1.2.7", "more": value}), namespace)
                assert "is not for namespace" in said, f"{size}: what costs CEL too much must not open the door"
            assert await refusal(client, named({"address": "x"}, of="other"), namespace) == ""
    finally:
        for name in ("desk", "other"):
            await client.delete(SCHEDULED_MACHINE_CLASSES, name)


async def test_without_webhooks_a_policy_knows_namespaces_that_take_only_classes(
    client: Client, namespace: str
) -> None:
    await client.patch(NAMESPACES, namespace, {"metadata": {"labels": {"5spot.finos.org/tenancy": "classes"}}})
    async with applied(client, documents(POLICIES / "scheduledmachines.yaml"), namespace):
        await in_force(client, base(), namespace)
        assert "spec.classRef: is required in this namespace" in await refusal(client, base(), namespace)
        assert await refusal(client, named({}), namespace) == ""

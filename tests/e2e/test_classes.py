"""Machines of a class on real servers: made from parameters; and what they do when the class changes or goes."""

from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import pytest

from crds.classschema import class_definition
from local.crds import apply
from local.provider.kinds import BOOTSTRAPS, HOSTS, MACHINES
from service.kube.errors import NotFound
from service.kube.resource import NAMESPACES, SCHEDULED_MACHINE_CLASSES, SCHEDULED_MACHINES
from service.runtime.key import Key
from tests.e2e.manifests import MONDAY_NINE, SIX, Raw, condition, machine, says
from tests.e2e.operator import Operator
from tests.e2e.workload import WorkloadSide
from tests.waiting import until

HOSTILE = [
    '"}, "user": "root", "x": {"y": "',
    "'; reboot #\nuser: root\n",
    "$(params.port)",
    "$$(params.port)",
    "$(reboot) `reboot` ${HOME} && x",
    "- a\n- b: !!python/object:os.system",
    "*anchor",
    "\u202eevil\u202c \u0000\u001b[31m",
    "x" * 60_000,
]
TAINT = {"key": "desk", "value": "yes", "effect": "NoSchedule"}


class Floor:
    """A class of the test's own, and its users."""

    def __init__(self, op: Operator) -> None:
        self.op = op
        self.name = f"desk-{op.namespace}"

    def spec(self, **changes: Any) -> Raw:
        return {
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": self.op.namespace}},
            "parameters": [
                {"name": "address", "schema": {"type": "string", "pattern": "^[a-z0-9.-]+$"}},
                {"name": "port", "schema": {"type": "integer"}, "default": 22},
                {"name": "version", "schema": {"type": "string"}, "default": "v1.30.0+k0s.0"},
            ],
            "bootstrapSpec": {
                "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta1",
                "kind": "K0sWorkerConfig",
                "spec": {"version": "$(params.version)"},
            },
            "infrastructureSpec": {
                "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
                "kind": "RemoteMachine",
                "spec": {"address": "$(params.address)", "port": "$(params.port)", "user": "admin"},
            },
        } | changes

    async def open(self, **changes: Any) -> None:
        body = {**SCHEDULED_MACHINE_CLASSES.envelope(), "metadata": {"name": self.name}, "spec": self.spec(**changes)}
        await self.op.client.create(SCHEDULED_MACHINE_CLASSES, body)

    async def change(self, **spec: Any) -> None:
        await self.op.client.patch(SCHEDULED_MACHINE_CLASSES, self.name, {"spec": spec})

    async def close(self) -> None:
        with suppress(NotFound):
            await self.op.client.delete(SCHEDULED_MACHINE_CLASSES, self.name)

    async def user(self, name: str = "worker", address: str | None = None, **spec: Any) -> None:
        body = machine(name, **spec)
        del body["spec"]["bootstrapSpec"], body["spec"]["infrastructureSpec"]
        body["spec"] |= {"classRef": {"name": self.name}}
        body["spec"]["parameters"] = {"address": address or f"{name}.{self.op.namespace}"} | spec.pop("parameters", {})
        await self.op.client.create(SCHEDULED_MACHINES, body, namespace=self.op.namespace)

    async def allow(self, value: str | None) -> None:
        body = {"metadata": {"labels": {"tests.example/floor": value}}}
        await self.op.client.patch(NAMESPACES, self.op.namespace, body)


@pytest.fixture
async def floor(op: Operator) -> AsyncIterator[Floor]:
    await apply(op.client, class_definition())
    found = Floor(op)
    yield found
    await found.close()


async def test_a_machine_is_made_from_the_class_and_its_parameters(op: Operator, floor: Floor) -> None:
    await floor.open(priority=77, machineTemplate={"labels": {"floor": "three"}})
    await floor.user(parameters={"port": 2222})
    await op.ready("worker")
    children = await op.children("worker")
    address = f"worker.{op.namespace}"
    made = children["infra"]["spec"]
    assert (made["address"], made["port"], made["user"]) == (address, 2222, "admin")
    assert children["bootstrap"]["spec"]["version"] == "v1.30.0+k0s.0"
    assert children["machine"]["metadata"]["labels"]["floor"] == "three"
    status = (await op.get("worker"))["status"]
    assert says(status, "UpToDate", "True")
    assert says(status, "ReferencesValid", "True")


async def test_hostile_values_stay_in_their_place(op: Operator, floor: Floor) -> None:
    """A class that lets any text and any object through: all of it arrives as it was given, and moves nothing else."""
    given = {f"t{number}": text for number, text in enumerate(HOSTILE)}
    spec = floor.spec()
    spec["parameters"] += [{"name": name} for name in given] + [{"name": "tree"}]
    spec["parameters"] += [{"name": "text", "schema": {"type": "string"}, "default": HOSTILE[0]}]
    alone = {name: f"$(params.{name})" for name in given}
    spec["infrastructureSpec"]["spec"] |= {
        **alone,
        "tree": "$(params.tree)",
        "within": "<$(params.text)>$$(params.text)",
    }
    await floor.open(**spec)
    tree = {"$(params.port)": {"user": "root", "deep": [[["$(params.port)"]]]}}
    await floor.user(parameters={**given, "tree": tree})
    await op.ready("worker")
    made = (await op.children("worker"))["infra"]["spec"]
    assert {name: made[name] for name in given} == given
    assert made["tree"] == tree
    assert made["within"] == f"<{HOSTILE[0]}>$(params.text)"
    assert (made["user"], made["port"]) == ("admin", 22)


async def test_an_edit_of_the_specs_waits_for_the_next_machine_and_the_rest_applies_in_place(
    op: Operator, floor: Floor, workload: WorkloadSide
) -> None:
    await floor.open()
    await floor.user()
    status = await op.ready("worker")
    before = await op.read(MACHINES, "worker-machine")
    changed = floor.spec()["infrastructureSpec"]
    changed["spec"]["user"] = "root"
    await floor.change(infrastructureSpec=changed, nodeTaints=[TAINT], machineTemplate={"labels": {"floor": "four"}})
    status = await op.until("worker", lambda found: says(found, "UpToDate", "False", "AppliesAtNextCreation"))
    assert "the class, parameters" in condition(status, "UpToDate")["message"]
    status = await op.until("worker", lambda found: says(found, "NodeTainted", "True"))
    assert [taint["key"] for taint in status["appliedNodeTaints"]] == ["desk"]
    after = await op.until_object(
        MACHINES, "worker-machine", lambda raw: raw["metadata"]["labels"].get("floor") == "four"
    )
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert (await op.read(HOSTS, "worker-infra"))["spec"]["user"] == "admin"

    op.clock.move_to(SIX)
    await op.childless("worker")
    op.clock.move_to(MONDAY_NINE)
    status = await op.ready("worker")
    assert says(status, "UpToDate", "True")
    assert (await op.read(HOSTS, "worker-infra"))["spec"]["user"] == "root"


async def test_without_its_class_a_machine_stays_until_its_window_closes_and_none_is_created(
    op: Operator, floor: Floor
) -> None:
    await floor.open()
    await floor.user()
    await op.ready("worker")
    await floor.close()
    status = await op.until("worker", lambda found: says(found, "ReferencesValid", "False", "ClassNotFound"))
    assert "keeps running" in status["message"]
    assert "deletionTimestamp" not in (await op.read(MACHINES, "worker-machine"))["metadata"]

    op.clock.move_to(SIX)
    await op.childless("worker")
    op.clock.move_to(MONDAY_NINE)
    await op.phase("worker", "Error", "ClassNotFound")
    for resource, end in ((MACHINES, "machine"), (HOSTS, "infra"), (BOOTSTRAPS, "bootstrap")):
        with pytest.raises(NotFound):
            await op.read(resource, f"worker-{end}")
    assert (await op.events("worker"))["ClassNotFound"] >= 1

    await floor.open()
    await op.ready("worker")


async def test_a_class_that_is_no_longer_for_the_namespace_creates_nothing_there(op: Operator, floor: Floor) -> None:
    await floor.allow("three")
    await floor.open(namespaceSelector={"matchLabels": {"tests.example/floor": "three"}})
    await floor.user()
    await op.ready("worker")
    await floor.allow(None)
    await op.until("worker", lambda found: says(found, "ReferencesValid", "False", "ClassNotAllowed"))
    op.clock.move_to(SIX)
    await op.childless("worker")
    op.clock.move_to(MONDAY_NINE)
    await op.phase("worker", "Error", "ClassNotAllowed")
    await floor.allow("three")
    await op.ready("worker")


async def test_a_broken_class_and_parameters_that_no_longer_fit_block_creation_only(op: Operator, floor: Floor) -> None:
    await floor.open()
    await floor.user()
    await op.ready("worker")
    port = [{"name": "address", "schema": {"type": "integer"}}, *floor.spec()["parameters"][1:]]
    await floor.change(parameters=port)
    await op.until("worker", lambda found: says(found, "ReferencesValid", "False", "InvalidSpec"))
    await floor.change(parameters=[{"name": "address", "schema": {"$ref": "#"}}])
    await op.until("worker", lambda found: says(found, "ReferencesValid", "False", "ClassInvalid"))
    assert "deletionTimestamp" not in (await op.read(MACHINES, "worker-machine"))["metadata"]
    await floor.change(parameters=floor.spec()["parameters"])
    await op.until("worker", lambda found: says(found, "ReferencesValid", "True"))


async def test_two_machines_of_a_class_with_one_address_do_not_both_get_the_host(op: Operator, floor: Floor) -> None:
    await floor.open()
    await floor.user("first", address=f"shared.{op.namespace}")
    await op.ready("first")
    await floor.user("second", address=f"shared.{op.namespace}")
    status = await op.until("second", lambda found: says(found, "HostConflict", "True"))
    assert "first" in condition(status, "HostConflict")["message"]
    await op.delete("first")
    await op.gone("first")
    await op.ready("second")


async def test_an_edit_of_a_class_wakes_only_its_users(op: Operator, floor: Floor) -> None:
    await floor.open()
    await floor.user()
    await op.apply(machine("bystander"))
    await op.ready("worker")
    await op.ready("bystander")
    await op.at_rest()
    woken: list[str] = []
    triggers = op.controller.triggers

    def recorded(key: Key) -> None:
        woken.append(key.name)
        triggers.class_user_changed(key)

    op.controller.classes.subscribe(recorded, triggers.class_user_read)
    await floor.change(priority=9)
    await until(lambda: woken == ["worker"])
    await op.client.patch(SCHEDULED_MACHINE_CLASSES, floor.name, {"metadata": {"labels": {"a": "b"}}})
    await op.delete("worker")
    await op.gone("worker")
    assert woken == ["worker"], "a label of the class concerns nobody"

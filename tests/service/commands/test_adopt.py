from types import SimpleNamespace
from typing import Any

import pytest

from crds import names
from service.cli import main
from service.commands import adoption
from service.kube.errors import Conflict, NotFound
from service.kube.resource import SCHEDULED_MACHINE_CLASSES, Resource
from tests.corpus import machine_class

MACHINES = Resource("cluster.x-k8s.io", "v1beta2", "machines", "Machine")


@pytest.mark.parametrize("words", [[], ["desk-7", "--all"], ["desk-7", "-A"], ["-A"]])
def test_it_says_what_it_wants(words, capsys):
    assert main(["adopt", *words]) == 2
    assert "name ScheduledMachines, or give --all" in capsys.readouterr().err


class Restored:
    """An API server after a restore: all objects are there, and name no owner."""

    def __init__(self, *classes: dict[str, Any]) -> None:
        self.classes = {each["metadata"]["name"]: each for each in classes}
        self.read: list[str] = []

    async def get(self, resource: Any, name: str, *, namespace: str | None = None) -> dict[str, Any]:
        self.read.append(f"{resource.kind} {name}")
        if resource is SCHEDULED_MACHINE_CLASSES:
            if name not in self.classes:
                raise NotFound(f"scheduledmachineclasses {name!r} not found")
            return self.classes[name]
        owner = name.rpartition("-")[0]
        labels = {names.LABEL_OWNER: owner, names.LABEL_MANAGED_BY: names.MANAGED_BY}
        return {
            "metadata": {"name": name, "namespace": namespace, "uid": name, "resourceVersion": "1", "labels": labels}
        }

    async def patch(self, *_: Any, **__: Any) -> None:
        return


async def adopted(server: Restored, *machines: str) -> list[adoption.AdoptionResult]:
    """The objects of machines of the class desk."""

    async def capi() -> Any:
        return SimpleNamespace(machines=MACHINES)

    async def resolve(api_version: str, kind: str) -> Resource:
        group, _, version = api_version.partition("/")
        return Resource(group, version, f"{kind.lower()}s", kind)

    client: Any = server
    discovery: Any = SimpleNamespace(capi=capi, resolve=resolve)
    adopter = adoption.Adopter(client, discovery, set(machines), dry_run=False)
    results = []
    for name in machines:
        metadata = {"name": name, "namespace": "team", "uid": name, "resourceVersion": "1", "generation": 1}
        results += await adopter.adopt({"metadata": metadata, "spec": {"classRef": {"name": "desk"}}})
    return results


async def test_the_class_says_of_which_kinds_the_objects_of_its_machines_are_and_is_read_once() -> None:
    server = Restored(machine_class())
    found = await adopted(server, "desk-7", "desk-8")
    assert [(each.kind, each.outcome) for each in found] == [
        ("Machine", "adopted"),
        ("K0sWorkerConfig", "adopted"),
        ("RemoteMachine", "adopted"),
    ] * 2
    assert server.read.count("ScheduledMachineClass desk") == 1


async def test_without_its_class_nothing_of_a_machine_is_adopted() -> None:
    (found,) = await adopted(Restored(), "desk-7")
    assert (found.kind, found.name, found.failed) == ("ScheduledMachineClass", "desk", True)
    assert "not found" in found.message


class Contested:
    """An API server on which another writer is always a moment quicker, for so many writes."""

    def __init__(self, conflicts: int) -> None:
        self.conflicts, self.reads = conflicts, 0

    async def get(self, _resource: Any, name: str, *, namespace: str) -> dict[str, Any]:
        self.reads += 1
        labels = {names.LABEL_OWNER: "desk", names.LABEL_MANAGED_BY: names.MANAGED_BY}
        return {
            "metadata": {"name": name, "namespace": namespace, "uid": "m", "resourceVersion": "1", "labels": labels}
        }

    async def patch(self, *_: Any, **__: Any) -> None:
        if self.conflicts:
            self.conflicts -= 1
            raise Conflict("the object has been modified")


@pytest.mark.parametrize(("conflicts", "outcome"), [(2, "adopted"), (99, "failed")])
async def test_a_machine_that_cluster_api_writes_to_at_the_same_time_is_read_again_and_adopted(
    conflicts: int, outcome: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adoption, "PAUSE_SECONDS", 0.0)
    client: Any = Contested(conflicts)

    async def capi() -> Any:
        return SimpleNamespace(machines=MACHINES)

    async def resolve(*_: Any) -> None:
        return None

    discovery: Any = SimpleNamespace(capi=capi, resolve=resolve)
    raw = {"metadata": {"name": "desk", "namespace": "team", "uid": "u", "resourceVersion": "1", "generation": 1}}
    (result,) = await adoption.Adopter(client, discovery, {"u"}, dry_run=False).adopt(raw)
    assert (result.outcome, client.reads) == (outcome, min(conflicts + 1, adoption.ATTEMPTS))

"""What an observer does when its caches may not tell the whole truth; the servers are modelled, as they cannot be made
to lag behind on demand."""

from types import SimpleNamespace
from typing import Any

import pytest

from crds import names
from crds.providers import DEFAULT_POLICY
from service.clock import ManualClock
from service.decide import manifests
from service.decide.world import Contract, Role, World
from service.kube.errors import NotFound
from service.kube.resource import Resource
from service.observe.observer import Observer
from service.runtime.key import Key
from tests.service.decide import builders
from tests.service.decide.builders import MORNING

KEY = Key("team", "desk")
MADE = {one.role: one.manifest for one in manifests.creations(builders.spec(), builders.world())}
Raw = dict[str, Any]


def raw_child(role: Role) -> Raw:
    metadata = {**MADE[role]["metadata"], "uid": f"uid-of-{role}", "resourceVersion": "5"}
    return {**MADE[role], "metadata": metadata}


class Cache:
    def __init__(self, manifest: Any, *objects: Raw) -> None:
        group, version = manifest["apiVersion"].split("/")
        kind = manifest["kind"]
        self.resource = Resource(group=group, version=version, plural=f"{kind.lower()}s", kind=kind, namespaced=True)
        self._objects = {Key("team", raw["metadata"]["name"]): raw for raw in objects}

    def get(self, key: Key) -> Raw | None:
        return self._objects.get(key)


class Server:
    """The management cluster, which may know more than the caches."""

    def __init__(self, *objects: Raw) -> None:
        self._objects = {raw["metadata"]["name"]: raw for raw in objects}
        self.asked: list[str] = []

    async def get(self, _resource: Resource, name: str, **_: Any) -> Raw:
        self.asked.append(name)
        if name not in self._objects:
            raise NotFound("gone", status=404)
        return self._objects[name]


async def seen(server: Server, *cached: Role) -> World:
    """What is observed of a new ScheduledMachine, with these children in the caches."""
    caches = {role: Cache(MADE[role], *([raw_child(role)] if role in cached else ())) for role in Role}
    by_kind = {cache.resource.kind: cache for cache in caches.values()}

    async def kind(_api_version: str, name: str) -> Cache:
        return by_kind[name]

    cluster = {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": "prod", "uid": "c"}}
    subject = builders.stored(builders.raw_spec())
    subject["metadata"] = {**subject["metadata"], "resourceVersion": "3", "finalizers": [names.FINALIZER]}
    watches: Any = SimpleNamespace(
        contract=Contract.V1BETA2,
        clusters=Cache(cluster, cluster),
        machines=caches[Role.MACHINE],
        scheduled=Cache(subject, subject),
        kind=kind,
    )
    workloads: Any = SimpleNamespace(release=lambda _key: None)
    client: Any = server
    observer = Observer(client, watches, workloads, DEFAULT_POLICY, ManualClock(MORNING))
    found = observer.subject(KEY)
    assert found is not None
    return await observer.observe(found)


@pytest.mark.parametrize("parts", [(Role.BOOTSTRAP,), (Role.BOOTSTRAP, Role.INFRASTRUCTURE)])
async def test_before_parts_count_as_without_a_machine_the_server_is_asked_for_it(parts):
    server = Server(raw_child(Role.MACHINE))
    world = await seen(server, *parts)
    assert world.our_machine is not None
    assert server.asked == ["desk-machine"]


async def test_where_nothing_exists_nothing_is_asked_for():
    server = Server()
    assert (await seen(server)).children == ()
    assert server.asked == []

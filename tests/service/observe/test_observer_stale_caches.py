"""What the observer does when its caches may be behind; the servers are fakes, as real ones do not lag on demand."""

import asyncio
from types import SimpleNamespace
from typing import Any, Final

import pytest

from crds import names
from crds.providers import DEFAULT_POLICY
from service.clock import ManualClock
from service.decide import manifests
from service.decide.reasons import Reason
from service.decide.world import Contract, Role, World
from service.decide.world import Reachability as State
from service.kube.client import Page
from service.kube.errors import NotFound, Unavailable
from service.kube.resource import Resource
from service.observe.observer import Observer
from service.observe.watches import CapiInformers
from service.runtime.cache import Cache as RealCache
from service.runtime.defects import Defect
from service.runtime.key import Key
from service.workload import pods as workload_pods
from service.workload.connection import slim_node
from tests.service.decide import builders
from tests.service.decide.builders import MORNING

KEY = Key("team", "desk")
MADE = {one.role: one.manifest for one in manifests.creations(builders.spec(), builders.world())}
Raw = dict[str, Any]


def raw_child(role: Role) -> Raw:
    metadata = {**MADE[role]["metadata"], "uid": builders.child(role).uid, "resourceVersion": "5"}
    joined = {"providerID": builders.PROVIDER_ID} if role is Role.MACHINE else {}
    status = {"nodeRef": {"name": "node-7"}} if role is Role.MACHINE else {}
    return {**MADE[role], "metadata": metadata, "spec": {**MADE[role]["spec"], **joined}, "status": status}


class Cache:
    def __init__(self, manifest: Any, *objects: Raw, poisoned: bool = False) -> None:
        group, version = manifest["apiVersion"].split("/")
        kind = manifest["kind"]
        self.resource = Resource(group=group, version=version, plural=f"{kind.lower()}s", kind=kind, namespaced=True)
        self._objects = {Key("team", raw["metadata"]["name"]): raw for raw in objects}
        self._poisoned = poisoned

    def get(self, key: Key) -> Raw | None:
        return None if self._poisoned else self._objects.get(key)

    def unreadable(self, key: Key) -> str | None:
        return UNREADABLE if self._poisoned and key in self._objects else None


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


UNREADABLE = "it is too large"
ENDLESS: Any = "a list that goes on and on"
SILENT: Any = "a list that does not come"
NAMED: Raw = {"namespace": "a", "name": "x", "uid": "u"}
TOO_MANY: Final = Unavailable("too many requests", status=429)


class Workload:
    """A workload cluster whose Nodes are watched; it does not list pods, or not what can be read."""

    def __init__(self, *nodes: Raw, pods: Any = TOO_MANY) -> None:
        self._pods = pods
        self.key = Key("team", "prod")
        self.settled = asyncio.Event()
        self.settled.set()
        self.state = State(reachable=True)
        self.nodes = RealCache(slim=slim_node)
        for raw in nodes:
            self.nodes.upsert(raw)

    def client(self) -> "Workload":
        return self

    def watch(self, *_: Any) -> Any:
        return SimpleNamespace(is_synced=False, error=TOO_MANY)

    async def list_page(self, *_: Any, **__: Any) -> Page:
        if isinstance(self._pods, Exception):
            raise self._pods
        if self._pods is SILENT:
            await asyncio.Event().wait()
        return Page([{"metadata": NAMED}], "1", "more") if self._pods is ENDLESS else Page(self._pods, "1", None)


CLUSTER: Raw = {
    "apiVersion": "cluster.x-k8s.io/v1beta2",
    "kind": "Cluster",
    "metadata": {"name": "prod", "uid": "c"},
}


async def seen(
    server: Server,
    *cached: Role,
    status: Raw | None = None,
    workload: Workload | None = None,
    cluster: bool = True,
    poisoned: bool = False,
) -> World:
    """What is observed of a ScheduledMachine, with these children in the caches, and its Cluster or not."""
    caches = {role: Cache(MADE[role], *([raw_child(role)] if role in cached else ())) for role in Role}
    by_kind = {cache.resource.kind: cache for cache in caches.values()}

    async def kind(_api_version: str, name: str) -> Cache:
        return by_kind[name]

    clusters = Cache(CLUSTER, *([CLUSTER] if cluster else ()), poisoned=poisoned)
    subject = builders.stored(builders.raw_spec()) | {"status": status or {}}
    subject["metadata"] = {**subject["metadata"], "resourceVersion": "3", "finalizers": [names.FINALIZER]}
    watches: Any = SimpleNamespace(
        capi=CapiInformers(Contract.V1BETA2, caches[Role.MACHINE], clusters),  # type: ignore[arg-type]
        scheduled=Cache(subject, subject),
        providers=SimpleNamespace(kind=kind),
        resolve=None,
    )
    workloads: Any = SimpleNamespace(
        release=lambda _key: None,
        hold=lambda _cluster, _key: workload or Workload(),
        held_by=lambda _key, _cluster: workload or Workload(),
    )
    client: Any = server
    made = Observer(client, watches, workloads, DEFAULT_POLICY, ManualClock(MORNING))
    found = made.subject(KEY)
    assert found is not None
    return await made.observe(found)


async def test_a_cluster_that_its_watch_could_not_read_is_read_from_the_api_server():
    server = Server(CLUSTER)
    world = await seen(server, Role.MACHINE, poisoned=True)
    assert (world.cluster and world.cluster.uid, server.asked) == ("c", ["prod"])


async def test_a_node_that_cannot_be_read_counts_neither_as_present_nor_as_gone():
    node = {"metadata": {"name": "node-7", "uid": "n", "resourceVersion": "1"}}
    workload = Workload(node)
    unreadable = {"metadata": {**node["metadata"], "resourceVersion": "2"}}
    workload.nodes.mark_unreadable(unreadable, Defect.TOO_LARGE, UNREADABLE)
    world = await seen(Server(), Role.MACHINE, workload=workload)
    assert world.workload is not None
    assert (world.node, world.workload.reachable, world.workload.reason) == (None, False, "NodeUnreadable")
    assert world.workload.message == f"Node node-7 cannot be read: {UNREADABLE}"


@pytest.mark.parametrize("parts", [(Role.BOOTSTRAP,), (Role.BOOTSTRAP, Role.INFRASTRUCTURE)])
async def test_before_children_count_as_without_a_machine_the_observer_asks_the_api_server(parts):
    server = Server(raw_child(Role.MACHINE))
    world = await seen(server, *parts)
    assert world.our_machine is not None
    assert server.asked == ["desk-machine"]


@pytest.mark.parametrize(
    ("pods", "said"),
    [
        (TOO_MANY, "too many requests"),
        (ENDLESS, "does not end"),
        (SILENT, "does not end"),
        ([{}], "not a pod"),
        (["pod"], "not a pod"),
        ([{"metadata": 5}], "not a pod"),
        ([{"metadata": {**NAMED, "name": ".."}}], "not a pod"),
        ([{"metadata": {**NAMED, "name": 7}}], "not a pod"),
        ([{"metadata": {**NAMED, "ownerReferences": ["x"]}}], "not a pod"),
        ([{"metadata": NAMED, "status": "x"}], "not a pod"),
    ],
)
async def test_pods_that_are_not_listed_do_not_hide_the_node(pods, said, monkeypatch):
    monkeypatch.setattr(workload_pods, "LIST_SECONDS", 30.0 if pods is ENDLESS else 0.05)
    metadata = {"name": "node-7", "uid": "n", "resourceVersion": "1"}
    workload = Workload({"metadata": metadata, "spec": {"providerID": builders.PROVIDER_ID}}, pods=pods)
    status = builders.running_status(shutdown_started_at=MORNING).to_json()
    world = await seen(Server(), *Role, status=status, workload=workload)
    assert world.workload is not None
    assert (world.workload.reachable, world.workload.reason, world.pods) == (False, Reason.PODS_NOT_LISTED, None)
    assert said in world.workload.message
    assert world.node is not None
    assert world.node.name == "node-7"


@pytest.mark.parametrize(("stored", "there"), [((CLUSTER,), True), ((), False)], ids=["stored", "gone"])
async def test_before_a_machine_counts_as_without_a_cluster_the_observer_asks_the_api_server(stored, there):
    server = Server(*stored)
    world = await seen(server, *Role, cluster=False)
    assert (world.cluster is not None, server.asked) == (there, ["prod"])


async def test_where_nothing_exists_nothing_is_asked_for():
    server = Server()
    assert (await seen(server)).children == ()
    assert server.asked == []

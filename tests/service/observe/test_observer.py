"""What the observer reads of the children while kinds are added, removed, refused or change their version."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from crds import names
from crds.providers import DEFAULT_POLICY
from service.clock import ManualClock
from service.decide import plan as actions
from service.decide.lifecycle import decide
from service.decide.manifests import creations
from service.decide.world import Contract, Role
from service.kube.errors import Forbidden, NotFound, Unavailable, from_response
from service.kube.resource import Resource
from service.observe.observer import Observer
from service.observe.provider_watches import NotListedError
from service.observe.watches import CapiInformers
from service.runtime.key import Key
from tests.service.decide import builders
from tests.service.decide.builders import CLUSTER_UID, EVENING, MORNING, PROVIDER_ID, UID

KEY = Key("team", "desk")
MACHINES = Resource("cluster.x-k8s.io", "v1beta2", "machines", "Machine")
CLUSTERS = Resource("cluster.x-k8s.io", "v1beta2", "clusters", "Cluster")
CLUSTER = {"metadata": {"name": "prod", "uid": CLUSTER_UID}, "spec": {}}
INFRASTRUCTURE, KIND = "infrastructure.cluster.x-k8s.io", "RemoteMachine"
NO_SUCH_PATH = from_response(404, b"404 page not found", retry_after=None, what="get machines team/desk-machine")
NO_SUCH_OBJECT = NotFound("there is no such object", status=404)
DEAD_WEBHOOK = NotListedError("conversion webhook for RemoteMachine failed", status=500)


def child(role):
    raw = {one.role: one.manifest for one in creations(builders.spec(), builders.world())}[role]
    stored = {"uid": f"uid-of-{raw['metadata']['name']}", "resourceVersion": "5"}
    raw = {**raw, "metadata": {**raw["metadata"], **stored}}
    if role is Role.MACHINE:
        raw["spec"] = {**raw["spec"], "providerID": PROVIDER_ID}
        raw["status"] = {"conditions": [{"type": "InfrastructureReady", "status": "True"}]}
    return raw


class Cache:
    def __init__(self, resource, *objects):
        self.resource = resource
        self.objects = {Key("team", raw["metadata"]["name"]): raw for raw in objects}

    def get(self, key):
        return self.objects.get(key)

    def unreadable(self, _key):
        return None

    def absorb(self, raw):
        self.objects[Key("team", raw["metadata"]["name"])] = raw


def cache_of(api_version, kind, *objects):
    group, _, version = api_version.partition("/")
    return Cache(Resource(group, version, f"{kind.lower()}s", kind), *objects)


class Scene:
    """A machine that runs, and what the API server serves of its parts."""

    def __init__(self, **spec):
        refs = {f"{role}_ref": builders.reference(role) for role in (Role.BOOTSTRAP, Role.INFRASTRUCTURE)}
        metadata = {"resourceVersion": "3", "finalizers": [names.FINALIZER]}
        raw = builders.stored(builders.raw_spec(**spec))
        self.raw = {
            **raw,
            "metadata": {**raw["metadata"], **metadata},
            "status": builders.running_status(**refs).to_json(),
        }
        machines: Any = Cache(MACHINES, child(Role.MACHINE))
        clusters: Any = Cache(CLUSTERS, CLUSTER)
        self.machines = machines
        self.capi = CapiInformers(Contract.V1BETA2, machines, clusters)
        self.kinds = {}
        for role in (Role.BOOTSTRAP, Role.INFRASTRUCTURE):
            made = child(role)
            self.kinds[made["apiVersion"], made["kind"]] = cache_of(made["apiVersion"], made["kind"], made)
        self.asked, self.answer, self.on_kind = [], NO_SUCH_OBJECT, None
        self.providers = self

    async def kind(self, *kind):
        if self.on_kind:
            await self.on_kind()
        found = self.kinds.get(kind)
        if isinstance(found, Exception):
            raise found
        return found

    async def kind_of_any_version(self, api_version, kind):
        group = api_version.partition("/")[0]
        served = (found for (one, name), found in self.kinds.items() if name == kind and one.startswith(f"{group}/"))
        return next(served, None)

    async def get(self, resource, name, **_options):
        self.asked.append((resource.version, name))
        raise self.answer

    def informer_of(self, _resource):
        return self.capi.machines

    async def resolve(self, _api_version, _kind):
        raise self.answer

    async def world(self):
        workloads: Any = SimpleNamespace(
            release=lambda _: None,
            held_by=lambda *_: SimpleNamespace(settled=asyncio.Event()),
            hold=lambda *_: SimpleNamespace(settled=asyncio.Event()),
        )
        self.scheduled = SimpleNamespace(get=lambda _: self.raw)
        me: Any = self
        self.observer = Observer(me, me, workloads, DEFAULT_POLICY, ManualClock(MORNING))
        self.subject = self.observer.subject(KEY)
        return await self.observed()

    async def observed(self):
        assert self.subject is not None
        return await self.observer.observe(self.subject)


def decide_in(scene, world, now):
    return decide(scene.subject.intent, world, now)


def deleted(plan):
    return {action.role for action in plan.actions if isinstance(action, actions.Delete)}


@pytest.fixture
def scene():
    return Scene()


async def test_everything_is_observed_where_everything_is_served(scene):
    world = await scene.world()
    assert {child.role for child in world.children} == set(Role)
    assert (world.unreadable, world.me.uid) == ({}, UID)


@pytest.mark.parametrize("now", [MORNING, EVENING], ids=["in its window", "outside"])
async def test_one_observation_uses_one_contract_although_it_changes_meanwhile(scene, now):
    async def forget():
        scene.capi = None

    scene.on_kind = forget
    world = await scene.world()
    assert (world.contract, world.our_machine is not None) == (Contract.V1BETA2, True)
    assert deleted(decide_in(scene, world, now)) <= {Role.MACHINE}


@pytest.mark.parametrize("now", [MORNING, EVENING], ids=["in its window", "outside"])
async def test_without_a_cache_of_machines_nothing_is_taken_from_under_one(scene, now):
    scene.capi = None
    world = await scene.world()
    assert (world.contract, world.machine_unknown) == (None, True)
    assert not deleted(decide_in(scene, world, now))


@pytest.mark.parametrize("now", [MORNING, EVENING], ids=["in its window", "outside"])
async def test_a_machine_whose_kind_is_not_served_is_unreadable_and_not_gone(scene, now):
    scene.capi.machines.objects.clear()
    scene.answer = NO_SUCH_PATH
    world = await scene.world()
    assert (world.machine, world.machine_unknown) == (None, True)
    plan = decide_in(scene, world, now)
    assert not deleted(plan)
    assert not any(isinstance(action, actions.Create) for action in plan.actions)


async def test_a_machine_that_the_api_server_does_not_have_is_gone(scene):
    scene.machines.objects.clear()
    world = await scene.world()
    assert (world.machine, world.machine_unknown) == (None, False)
    assert deleted(decide_in(scene, world, EVENING)) == {Role.BOOTSTRAP, Role.INFRASTRUCTURE}


async def test_an_object_recorded_in_a_version_that_is_not_served_any_more_is_found_in_the_one_of_the_spec():
    newer = {**builders.SPEC["infrastructureSpec"], "apiVersion": f"{INFRASTRUCTURE}/v1beta2"}
    scene = Scene(infrastructureSpec=newer)
    del scene.kinds[f"{INFRASTRUCTURE}/v1beta1", KIND]
    scene.kinds[f"{INFRASTRUCTURE}/v1beta2", KIND] = cache_of(
        f"{INFRASTRUCTURE}/v1beta2", KIND, child(Role.INFRASTRUCTURE)
    )
    world = await scene.world()
    assert world.infrastructure.api_version == f"{INFRASTRUCTURE}/v1beta2"
    assert world.infrastructure.ours


async def test_or_in_any_other_version_that_is_served(scene):
    del scene.kinds[f"{INFRASTRUCTURE}/v1beta1", KIND]
    scene.kinds[f"{INFRASTRUCTURE}/v1", KIND] = cache_of(f"{INFRASTRUCTURE}/v1", KIND, child(Role.INFRASTRUCTURE))
    assert (await scene.world()).infrastructure.api_version == f"{INFRASTRUCTURE}/v1"


@pytest.mark.parametrize(("now", "removed"), [(MORNING, set()), (EVENING, {Role.MACHINE})], ids=["in", "outside"])
async def test_an_object_whose_kind_is_served_in_no_version_is_unreadable_and_its_machine_not_lost(scene, now, removed):
    del scene.kinds[f"{INFRASTRUCTURE}/v1beta1", KIND]
    world = await scene.world()
    assert world.unreadable[Role.INFRASTRUCTURE].failure.reason == "KindNotServed"
    plan = decide_in(scene, world, now)
    assert plan.reason != "InfrastructureGone"
    assert deleted(plan) == removed


async def test_another_kind_in_the_spec_is_not_read_while_the_old_one_is_recorded():
    scene = Scene(infrastructureSpec={**builders.SPEC["infrastructureSpec"], "kind": "OtherMachine"})
    scene.kinds[f"{INFRASTRUCTURE}/v1beta1", "OtherMachine"] = cache_of(f"{INFRASTRUCTURE}/v1beta1", "OtherMachine")
    del scene.kinds[f"{INFRASTRUCTURE}/v1beta1", KIND]
    assert Role.INFRASTRUCTURE in (await scene.world()).unreadable


@pytest.mark.parametrize(
    ("error", "reason", "passing"),
    [
        (Forbidden("may not list remotemachines", status=403), "Forbidden", False),
        (DEAD_WEBHOOK, "APIUnavailable", False),
        (Unavailable("no answer"), "APIUnavailable", True),
        (Unavailable("starting", status=503), "APIUnavailable", True),
    ],
)
async def test_a_kind_that_cannot_be_listed_hides_one_object_and_no_more(scene, error, reason, passing):
    scene.kinds[f"{INFRASTRUCTURE}/v1beta1", KIND] = error
    world = await scene.world()
    (unseen,) = world.unreadable.values()
    assert (unseen.failure.reason, unseen.transient) == (reason, passing)
    assert error.message in unseen.failure.message
    assert {child.role for child in world.children} == {Role.MACHINE, Role.BOOTSTRAP}


async def test_a_lost_label_on_an_object_of_a_kind_that_is_not_served_right_now_does_not_count_as_a_deletion(scene):
    scene.kinds[f"{INFRASTRUCTURE}/v1beta1", KIND] = cache_of(f"{INFRASTRUCTURE}/v1beta1", KIND)
    scene.answer = NO_SUCH_PATH
    assert Role.INFRASTRUCTURE in (await scene.world()).unreadable
    scene.answer = NO_SUCH_OBJECT
    world = await scene.world()
    assert (world.infrastructure, world.unreadable) == (None, {})


@pytest.mark.parametrize(("spec", "listed"), [({}, ["node-7"]), ({"killSwitch": True}, [])])
async def test_the_pods_of_a_shutdown_are_read_unless_the_machine_is_deleted_at_once(spec, listed):
    """A machine that is deleted at once does not wait for a slow workload cluster to list its pods."""
    scene, asked = Scene(**spec), []
    scene.raw["status"]["shutdownStartedAt"] = "2026-03-02T09:59:00Z"
    scene.machines.objects[Key("team", "desk-machine")]["status"]["nodeRef"] = {"name": "node-7"}
    await scene.world()
    node = {"metadata": {"name": "node-7", "uid": "n", "resourceVersion": "1"}, "spec": {"providerID": PROVIDER_ID}}
    connection = SimpleNamespace(
        settled=asyncio.Event(),
        state=builders.CONNECTED,
        nodes=SimpleNamespace(get=lambda _: node, unreadable=lambda _: None),
    )
    connection.settled.set()
    workloads: Any = scene.observer.workload._workloads
    workloads.hold = workloads.held_by = lambda *_: connection

    async def observe(_key, world, _workload, _rules):
        asked.append(world.node.name)
        return world

    drains: Any = scene.observer.workload.drains
    drains.observe = observe
    assert scene.subject is not None
    world = await scene.observer.observe(scene.subject)
    assert world.node is not None
    assert (world.node.name, asked) == ("node-7", listed)


@pytest.mark.parametrize(
    "unwilling",
    [
        {"spec": {"killSwitch": True}},
        {"spec": {"schedule": {"enabled": False}}},
        {"spec": {"priority": "high"}},
        {"metadata": {"deletionTimestamp": "2026-03-02T09:00:00Z"}},
    ],
    ids=["killed", "disabled", "invalid", "being deleted"],
)
async def test_an_object_that_wants_no_machine_is_in_no_conflict_about_its_host(unwilling):
    scene, taken = Scene(**unwilling.get("spec", {})), Key("team", "other")
    scene.machines.objects.clear()
    for cache in scene.kinds.values():
        cache.objects.clear()
    scene.raw = {**scene.raw, "metadata": {**scene.raw["metadata"], **unwilling.get("metadata", {})}, "status": {}}
    other = {**scene.raw, "metadata": {**scene.raw["metadata"], "name": "other", "uid": "other"}}
    await scene.world()
    scene.observer.hosts.update(taken, {**other, "status": {"machineRef": {"name": "other-machine"}}})
    assert scene.subject is not None
    assert (await scene.observer.observe(scene.subject)).host_conflict is None
    scene.raw["spec"] = builders.raw_spec()
    scene.raw["metadata"].pop("deletionTimestamp", None)
    scene.subject = scene.observer.subject(KEY)
    assert (await scene.observed()).host_conflict is not None

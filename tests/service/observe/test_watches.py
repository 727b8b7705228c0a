"""Changing from one contract of Cluster API to another, with caches that are complete when a test says so."""

import asyncio
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from service.decide.world import Contract
from service.kube.client import Client
from service.kube.discovery import CapiResources as Found
from service.kube.errors import Forbidden, NotFound, Unavailable
from service.kube.resource import CUSTOM_RESOURCE_DEFINITIONS, SCHEDULED_MACHINES, Resource
from service.observe import watches as module
from service.observe.watches import NotListedError, Watches, WatchListener
from service.runtime.cache import Change, EventType
from service.runtime.key import Key
from tests.waiting import until


def found(version):
    kinds = {plural: Resource("cluster.x-k8s.io", version, plural, plural) for plural in ("clusters", "machines")}
    return Found(version=version, **kinds)


class Cache:
    """An informer that has listed everything once `complete` is set."""

    def __init__(self, resource, complete):
        self.resource, self.complete, self.runs = resource, complete, False

    async def run(self):
        self.runs = True
        try:
            await asyncio.Event().wait()
        finally:
            self.runs = False

    async def synced(self, within=None):
        try:
            async with asyncio.timeout(within):
                await self.complete.wait()
        except TimeoutError:
            raise Unavailable("cannot be listed") from None

    @property
    def is_synced(self):
        return self.complete.is_set()


class Stage:
    """Watches whose caches are played, and what discovery says."""

    def __init__(self):
        self.served, self.complete, self.caches = found("v1beta1"), asyncio.Event(), []
        client: Any = None
        discovery: Any = SimpleNamespace(capi=self.capi)
        watches: Any = Watches(client, discovery)
        watches._informer = self.informer
        self.watches = watches

    async def capi(self):
        return self.served

    def informer(self, resource, *_args, **_options):
        self.caches.append(Cache(resource, self.complete))
        return self.caches[-1]

    def running(self):
        return {cache.resource.version for cache in self.caches if cache.runs}


@asynccontextmanager
async def staged():
    stage = Stage()
    async with asyncio.TaskGroup() as group:
        stage.watches._group = group
        stage.complete.set()
        await stage.watches.find_capi()
        await until(lambda: stage.running() == {"v1beta1"})
        stage.complete = asyncio.Event()
        stage.served = found("v1beta2")
        yield stage, group
        for task in stage.watches._capi_tasks:
            task.cancel()


async def test_the_old_caches_are_read_and_fed_until_the_new_ones_are_complete():
    async with staged() as (stage, group):
        change = group.create_task(stage.watches.find_capi())
        await until(lambda: stage.running() == {"v1beta1", "v1beta2"})
        assert (stage.watches.contract, stage.watches.machines) == (Contract.V1BETA1, stage.caches[0])

        stage.complete.set()
        assert await change
        assert (stage.watches.contract, stage.watches.machines) == (Contract.V1BETA2, stage.caches[2])
        await until(lambda: stage.running() == {"v1beta2"})


async def test_new_caches_that_do_not_become_complete_in_time_are_dropped_and_tried_again(monkeypatch):
    monkeypatch.setattr(module, "SYNC_SECONDS", 0.05)
    async with staged() as (stage, _):
        with pytest.raises(Unavailable):
            await stage.watches.find_capi()
        await until(lambda: stage.running() == {"v1beta1"})
        assert (stage.watches.contract, stage.watches.machines) == (Contract.V1BETA1, stage.caches[0])

        stage.complete.set()
        assert await stage.watches.find_capi()
        assert stage.watches.contract is Contract.V1BETA2


GADGETS = Resource("example.com", "v1", "gadgets", "Gadget")


@pytest.mark.parametrize(
    ("error", "failures", "raised"),
    [
        (Unavailable("the webhook is dead", status=500), 3, NotListedError),
        (Unavailable("the webhook is dead", status=429), 3, NotListedError),
        (Unavailable("the webhook is dead", status=500), 2, Unavailable),
        (Unavailable("no connection"), 30, Unavailable),
        (Forbidden("may not", status=403), 1, Forbidden),
        (None, 0, Unavailable),
    ],
)
async def test_a_kind_that_is_answered_for_but_never_listed_is_broken_and_not_just_slow(
    monkeypatch, error, failures, raised
):
    monkeypatch.setattr(module, "SYNC_SECONDS", 0.01)
    stage = Stage()
    cache: Any = Cache(GADGETS, asyncio.Event())
    cache.error, cache.failures = error, failures
    stage.watches._kinds[GADGETS] = cache
    stage.watches._discovery.resolve = lambda *_: asyncio.sleep(0, GADGETS)
    with pytest.raises(raised) as caught:
        await stage.watches.kind(GADGETS.api_version, GADGETS.kind)
    assert type(caught.value) is raised


async def test_contract_and_caches_go_together_when_cluster_api_is_no_longer_served():
    async with staged() as (stage, _):
        stage.served = None
        assert await stage.watches.find_capi()
        assert (stage.watches.contract, stage.watches.machines, stage.watches.clusters) == (None, None, None)
        await until(lambda: not stage.running())


async def test_a_start_waits_out_machines_that_cannot_be_listed_and_takes_what_is_served_by_then(monkeypatch):
    monkeypatch.setattr(module, "SYNC_SECONDS", 0.05)
    monkeypatch.setattr(module, "ASK_AGAIN_SECONDS", 0.01)
    stage = Stage()
    async with asyncio.TaskGroup() as group:
        listed = asyncio.Event()
        listed.set()
        stage.watches.scheduled = Cache(Resource("g", "v1", "scheduledmachines", "ScheduledMachine"), listed)
        stage.watches._definitions = Cache(CUSTOM_RESOURCE_DEFINITIONS, listed)
        start = group.create_task(stage.watches.start(group))
        await until(lambda: len(stage.caches) >= 3)
        assert not start.done()
        stage.served = found("v1beta2")
        await until(lambda: stage.caches[-1].resource.version == "v1beta2")
        stage.complete.set()
        await start
        assert stage.watches.is_synced
        assert stage.watches.contract is Contract.V1BETA2
        for task in group._tasks:
            task.cancel()


@pytest.mark.parametrize("kind", ["scheduledmachines", "customresourcedefinitions", "machines", "clusters"])
async def test_a_watch_that_has_not_been_live_for_long_is_named(kind):
    async with staged() as (stage, _):
        watches = stage.watches
        watches.scheduled = Cache(SCHEDULED_MACHINES, stage.complete)
        watches._definitions = Cache(CUSTOM_RESOURCE_DEFINITIONS, stage.complete)
        core = (watches.scheduled, watches._definitions, watches.machines, watches.clusters)
        watched = {one.resource.plural: one for one in core}
        for one in core:
            one.down_seconds, one.error = 299.0, Unavailable("no answer in time")
        assert watches.not_live is None
        watched[kind].down_seconds = 301.0
        assert watches.not_live == (
            f"the watch of {watched[kind].resource.label} has not been live for 301 seconds: no answer in time"
        )
        watched[kind].error = NotFound("no such kind")
        assert watches.not_live is None, "a kind that is not installed is nobody's outage"


# Watches that end


class Kind:
    """The watch of a provider's kind, and the keys that its cache holds."""

    def __init__(self, resource, *keys, failures=0):
        self.resource, self.keys, self.failures = resource, keys, failures

    def __iter__(self):
        return iter(self.keys)

    def __len__(self):
        return len(self.keys)

    def get(self, key):
        return {"metadata": {"name": key.name}}


class Ending:
    """One kind that is watched, and what is heard of it."""

    def __init__(self, *keys, failures=0):
        self.woken: list[Key] = []
        self.ended: list[Resource] = []
        self.forgotten: list[str] = []
        discovery: Any = SimpleNamespace(forget=self.forgotten.append, crd_changed=lambda _name: None)
        client = Client.from_inline("https://127.0.0.1:1", token="t")
        self.watches = Watches(client, discovery)
        self.watches.subscribe(
            WatchListener(child=lambda change: self.woken.append(change.key), ended=self.ended.append)
        )
        informer: Any = Kind(GADGETS, *keys, failures=failures)
        self.informer = informer
        self.task: asyncio.Task[Any] = asyncio.get_running_loop().create_task(asyncio.Event().wait())
        self.watches._kinds[GADGETS], self.watches._kind_tasks[GADGETS] = self.informer, self.task

    def names(self, kind):
        metadata = {"namespace": "team", "name": "desk", "uid": "u", "resourceVersion": "1"}
        raw = {"metadata": metadata, "spec": {"bootstrapSpec": {"apiVersion": "example.com/v2", "kind": kind}}}
        self.watches.scheduled.absorb(raw)

    async def is_over(self):
        await asyncio.sleep(0)
        return self.ended == [GADGETS] and self.watches.kinds_watched == 0 and self.task.cancelled()


async def test_a_kind_that_no_object_names_is_not_watched_after_two_sweeps():
    ending = Ending()
    ending.watches.sweep()
    assert not await ending.is_over()
    ending.watches.sweep()
    assert await ending.is_over()


async def test_a_kind_that_an_object_names_in_any_version_stays_watched():
    ending = Ending()
    ending.watches.sweep()
    ending.names("Gadget")
    ending.watches.sweep()
    ending.watches.sweep()
    assert ending.watches.kinds_watched == 1
    ending.task.cancel()


async def test_a_kind_of_which_an_object_of_ours_is_left_stays_watched():
    ending = Ending(Key("team", "desk-infra"))
    ending.watches.sweep()
    ending.watches.sweep()
    assert ending.watches.kinds_watched == 1
    ending.task.cancel()


async def test_a_kind_whose_definition_is_deleted_is_not_watched_and_those_who_used_it_look_again():
    ending = Ending(Key("team", "desk-infra"))
    gone = Change(EventType.DELETED, Key("", GADGETS.label), {}, 1)
    ending.watches._definition_changed(gone)
    assert await ending.is_over()
    assert ending.woken == [Key("team", "desk-infra")]


@pytest.mark.parametrize(
    ("reason", "failures", "over"), [("NotFound", 3, True), ("NotFound", 2, False), ("Forbidden", 9, False)]
)
async def test_a_kind_that_is_not_served_any_more_is_not_listed_for_ever(reason, failures, over):
    ending = Ending(failures=failures)
    ending.watches._kind_failed(ending.informer, reason)
    assert await ending.is_over() is over
    assert ending.forgotten == ([GADGETS.group] if over else [])
    ending.task.cancel()

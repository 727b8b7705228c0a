"""Changing from one contract of Cluster API to another, with caches that are complete when a test says so."""

import asyncio
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from service.decide.world import Contract
from service.kube.discovery import CapiResources as Found
from service.kube.errors import NotFound, Unavailable
from service.kube.resource import CUSTOM_RESOURCE_DEFINITIONS, SCHEDULED_MACHINES, Resource
from service.observe import watches as module
from service.observe.watches import Watches
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

    async def listed(self, pause):
        await self.synced(pause)

    @property
    def is_synced(self):
        return self.complete.is_set()


class Stage:
    """Watches with fake caches, and what discovery answers."""

    def __init__(self):
        self.served, self.complete, self.caches = found("v1beta1"), asyncio.Event(), []
        discovery: Any = SimpleNamespace(capi=self.capi)
        no_client: Any = None
        self.watches = Watches(no_client, discovery)
        factory: Any = self.watches._factory
        factory.make = self.informer

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
        stage.watches._factory.group = group
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


async def test_contract_and_caches_go_together_when_cluster_api_is_no_longer_served():
    async with staged() as (stage, _):
        stage.served = None
        assert await stage.watches.find_capi()
        assert (stage.watches.contract, stage.watches.machines, stage.watches.clusters) == (None, None, None)
        await until(lambda: not stage.running())


async def test_a_start_waits_until_machines_can_be_listed_and_takes_the_contract_served_then(monkeypatch):
    monkeypatch.setattr(module, "SYNC_SECONDS", 0.05)
    monkeypatch.setattr(module, "RETRY_SECONDS", 0.01)
    stage = Stage()
    async with asyncio.TaskGroup() as group:
        listed = asyncio.Event()
        listed.set()
        watches: Any = stage.watches
        watches.scheduled = Cache(Resource("g", "v1", "scheduledmachines", "ScheduledMachine"), listed)
        watches._definitions = Cache(CUSTOM_RESOURCE_DEFINITIONS, listed)
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
        assert watches.not_live is None, "a kind that is not installed is not an outage"

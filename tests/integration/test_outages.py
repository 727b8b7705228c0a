"""Servers that go away and come back, errors by the dozen, clocks that jump: the work is done all the same, once.

`python -m bench.bench_outages` has the long forms, with a thousand objects, and prints how many requests a second
they cost. That a workload cluster is away is in tests/e2e/test_workload_clusters.py.
"""

import asyncio
import time
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest

from bench._proxy import busiest, proxy
from bench._replica import SHORT_LEASES, Crew
from crds import names
from local import access
from local.provider.kinds import BOOTSTRAPS, HOSTS, MACHINES
from service.clock import SimulatedClock
from service.controller import followers
from service.kube.resource import SCHEDULED_MACHINES
from service.runtime import queue
from service.runtime.backoff import Backoff
from tests.conftest import kept
from tests.e2e.manifests import EIGHT, NINE, SIX, machine
from tests.integration.guarded import guarded, home
from tests.integration.replicas import AuditLog, audited_cluster
from tests.waiting import until

pytestmark = pytest.mark.timeout(600)

PATIENCE = 180.0
WRITES_EACH = 4
"""Bootstrap, infrastructure, Machine and status: what an activation takes."""
QUIET = 25
"""Requests in one second while the server is away: a watch for each of a few kinds, a lease, and one that asks."""
LONG_LEASES: dict[str, Any] = {"lease_seconds": 60.0, "lease_renew_seconds": 45.0}
"""Nothing here is about losing a lease, and a server takes long to start where much else goes on."""


@pytest.fixture(scope="module")
def breakable(assets, pytestconfig):
    with kept(pytestconfig) as keeper, audited_cluster(assets, keeper) as cluster:
        yield cluster


@pytest.fixture
def fragile(breakable):
    """A cluster of our own, to be broken; a test that fails in the middle of it leaves the next one a whole one."""
    yield breakable
    breakable.etcd.resume()
    if breakable.apiserver.pid is None:
        breakable.apiserver.started()


async def herd(client, namespace, objects):
    """Objects whose window opens at nine."""
    for number in range(objects):
        body = machine(f"m{number}", infrastructure={"address": f"{namespace}-{number}"})
        body["metadata"]["finalizers"] = [names.FINALIZER]
        await client.create(SCHEDULED_MACHINES, body, namespace=namespace)


async def at_rest_before_nine(op, namespace, objects):
    await herd(op.client, namespace, objects)
    await until(lambda: op.phases("Inactive") == objects, within=PATIENCE)
    await op.at_rest()
    op.requests.clear()
    op.moments.clear()


async def all_served_once(op, namespace, objects):
    """Waits until all are Active; every object has its three children, and no other children are there."""
    await until(lambda: op.phases("Active") == objects, within=PATIENCE)
    await op.at_rest()
    for resource in (BOOTSTRAPS, HOSTS, MACHINES):
        assert len(await op.client.list(resource, namespace=namespace)) == objects
    stored = await op.client.list(SCHEDULED_MACHINES, namespace=namespace)
    assert {raw["status"]["phase"] for raw in stored} == {"Active"}


def long_backoff(op):
    """So that an object served at all did not wait for a back-off."""
    op.controller.queue._failures.backoff = Backoff(base=3600.0, cap=3600.0)


def acts(op):
    """Writes but for leases and Events."""
    return [one for one in op.writes if one.resource not in {"leases", "events"}]


def most(requests):
    """What there were most of, to be read when there were too many."""
    return Counter((one.verb, one.path) for one in requests).most_common(5)


def made(op):
    return [one for one in op.writes if one.resource == "machines" and one.verb == "create"]


async def test_a_herd_goes_on_where_it_was_when_the_api_server_is_killed_and_started_again(fragile):
    async with fragile.client() as admin:
        tenants, own = await home(admin, "tenants"), await home(admin, "own")
    async with guarded(fragile, (tenants,), EIGHT, namespace=own, **LONG_LEASES) as op:
        objects = 90
        long_backoff(op)
        await at_rest_before_nine(op, tenants, objects)
        op.clock.move_to(NINE)
        await until(lambda: len(made(op)) > 20, within=PATIENCE)
        fragile.apiserver.kill()
        await until(lambda: op.controller.availability.unavailable, within=PATIENCE)
        assert objects - len(made(op)) > 20, "the outage was over too soon"
        await asyncio.sleep(1)  # those in hand find out
        since = len(op.moments)
        await asyncio.sleep(2)  # a part of the outage over which it must keep quiet
        assert busiest(op.moments[since:]) <= QUIET
        await asyncio.to_thread(fragile.apiserver.started)
        await all_served_once(op, tenants, objects)
        assert len(acts(op)) < 1.5 * WRITES_EACH * objects, most(acts(op))


async def test_storage_that_stands_still_for_a_while_delays_and_nothing_else(fragile):
    async with fragile.client() as admin:
        tenants, own = await home(admin, "tenants"), await home(admin, "own")
    async with guarded(fragile, (tenants,), EIGHT, namespace=own, **LONG_LEASES) as op:
        objects = 60
        await at_rest_before_nine(op, tenants, objects)
        op.clock.move_to(NINE)
        await until(lambda: len(made(op)) > 10, within=PATIENCE)
        fragile.etcd.pause()
        before, paused = len(op.moments), time.monotonic()
        await asyncio.sleep(2.5)
        asked, seconds = len(op.moments) - before, time.monotonic() - paused
        fragile.etcd.resume()
        assert asked <= seconds * QUIET + 32  # each worker one request, or two where the first was just answered
        await all_served_once(op, tenants, objects)
        assert len(acts(op)) <= WRITES_EACH * (objects + 16), most(acts(op))


async def test_with_a_third_of_all_requests_failing_everything_is_done_with_few_requests_more(fragile, tmp_path):
    async with fragile.client() as admin:
        tenants, own = await home(admin, "tenants"), await home(admin, "own")
    async with (
        proxy(fragile, tmp_path) as line,
        guarded(fragile, (tenants,), EIGHT, url=line.url, namespace=own, **LONG_LEASES) as op,
    ):
        objects = 60
        long_backoff(op)
        await at_rest_before_nine(op, tenants, objects)
        line.moments.clear()
        line.failing = 0.3
        op.clock.move_to(NINE)
        await until(lambda: len(line.moments) > 3 * objects, within=PATIENCE)
        line.failing = 0.0
        await all_served_once(op, tenants, objects)
        assert len(line.failed) == 5, "not every kind of failure was met"
        # Three tries of each request at most, and a second look at those that failed nevertheless.
        assert len(line.moments) < 4 * WRITES_EACH * objects


@pytest.fixture
def quick_looks(monkeypatch):
    """Real behaviour, with pauses that a test can wait for; the queue is not notified that the clock was set."""
    monkeypatch.setattr(queue, "MAX_WAIT_SECONDS", 0.3)
    monkeypatch.setattr(followers, "CLOCK_SECONDS", 0.3)


@pytest.mark.usefixtures("quick_looks")
async def test_a_clock_that_is_set_forward_and_back_by_an_hour_is_followed_by_itself(audited):
    async with audited.client() as admin:
        tenants = await home(admin, "tenants")
    async with guarded(audited, (tenants,), NINE) as op:
        op.clock.on_move = lambda: None
        await herd(op.client, tenants, 4)
        await until(lambda: op.phases("Active") == 4)
        first = {raw["metadata"]["uid"] for raw in await op.client.list(MACHINES, namespace=tenants)}
        half_past_five = SIX - timedelta(minutes=30)
        for moment, phase in ((half_past_five, "Active"), (SIX + timedelta(minutes=30), "Inactive")):
            op.clock.move_to(moment)
            await until(lambda phase=phase: op.phases(phase) == 4)
        await op.at_rest()
        op.requests.clear()
        op.clock.move_to(half_past_five)
        await until(lambda: op.phases("Active") == 4)
        await op.at_rest()
        second = {raw["metadata"]["uid"] for raw in await op.client.list(MACHINES, namespace=tenants)}
        assert len(second) == 4
        assert not first & second
        # Kinds that were new a moment ago are looked up once more; that ends by itself.
        asked = [one for one in op.requests if one.resource != "discovery"]
        assert len(asked) < 4 * 12, most(asked)


async def test_a_process_that_was_suspended_over_a_boundary_catches_up_when_it_wakes(audited, pytestconfig):
    async with audited.client() as admin:
        tenants, own = await home(admin, "tenants"), await home(admin, "own")
        with kept(pytestconfig) as keeper:
            # Twenty minutes a second, so that the hour strikes while it sleeps.
            clock = SimulatedClock.starting(EIGHT, 1200.0)
            replica = Crew(audited, keeper, tenants, own, clock, 1, SHORT_LEASES).replica(0)
            began = clock.now()
            replica.start()
            await admin.create(SCHEDULED_MACHINES, opening(NINE + timedelta(days=90), "first"), namespace=tenants)
            await until(lambda: all_in_phase(admin, tenants, "Inactive"), within=PATIENCE)
            # As long as it took to start and to look at one: time enough to look at three, on any machine.
            started = clock.now()
            opens = (started + (started - began) + timedelta(hours=1)).replace(second=0, microsecond=0)
            await admin.delete(SCHEDULED_MACHINES, "first", namespace=tenants)
            for name in ("m0", "m1", "m2"):
                await admin.create(SCHEDULED_MACHINES, opening(opens, name), namespace=tenants)
            await until(lambda: all_in_phase(admin, tenants, "Inactive"), within=PATIENCE)
            replica.pause()
            assert clock.now() < opens, "the machine is too slow for this test"
            await until(lambda: clock.now() > opens + timedelta(minutes=20), within=PATIENCE)
            assert not await admin.list(MACHINES, namespace=tenants)
            audit = AuditLog(audited.audit_log)
            replica.resume()
            await until(lambda: all_in_phase(admin, tenants, "Active"), within=PATIENCE)
            assert len(await admin.list(MACHINES, namespace=tenants)) == 3
            assert len(audit.by(access.OPERATOR)) <= 2 * 3 * WRITES_EACH
            replica.kill()


def opening(moment, name):
    """Open for a week from a minute on: a few minutes by the fast clock."""
    cron = {"cron": f"{moment.minute} {moment.hour} {moment.day} {moment.month} *", "duration": "168h"}
    return machine(name, infrastructure={"address": f"suspended-{name}"}, schedule=cron)


async def all_in_phase(client, namespace, phase):
    stored = await client.list(SCHEDULED_MACHINES, namespace=namespace)
    return stored and all((raw.get("status") or {}).get("phase") == phase for raw in stored)

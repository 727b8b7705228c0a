"""Three controllers share the work on a real API server, and take over from each other."""

import asyncio
import ssl
import time
from contextlib import suppress
from datetime import UTC, datetime

import httpx
import orjson
import pytest

from certs.bundle import Policy, first_bundle
from crds import names
from local import access
from local.provider.kinds import BOOTSTRAPS, HOSTS
from service.clock import SystemClock
from service.controller.shared import Shared
from service.controller.wiring import Controller
from service.kube.resource import SCHEDULED_MACHINES
from service.runtime.key import Key
from service.settings import Settings
from service.sharding.fence import Fence
from service.sharding.shard import shard_number
from tests.e2e.manifests import machine
from tests.integration.replicas import arena
from tests.service.process import started
from tests.waiting import until
from tests.webhooks.reviews import machine as manifest
from tests.webhooks.reviews import review

PATIENCE = 120.0
LEASE, LONG_LEASE = 10, 60
"""Short where a lease must expire; long where it must not, however slow the machine is."""


class Site:
    """A replica inside the test, with three shards to compete for."""

    def __init__(self, stage, user, preferred, lease):
        settings = Settings(
            namespaces=(stage.tenants,), namespace=stage.own, webhooks=False, stop_seconds=1.0,
            instance_count=3, instance_id=preferred,
            lease_seconds=lease, lease_renew_seconds=0.8 * lease, lease_retry_seconds=1,
        )  # fmt: skip
        self.user = user
        self.client = stage.cluster.client(user)
        self.shared = Shared(settings=settings, client=self.client, clock=SystemClock())
        self.controller = Controller(self.shared, Fence(3))
        self.task = asyncio.create_task(self.controller.run())

    @property
    def held(self):
        assert self.controller.leases is not None
        return {shard.number for shard in self.controller.leases.held}

    async def stop(self):
        """As after SIGTERM."""
        self.shared.stopping.set()
        await asyncio.wait_for(self.task, PATIENCE)

    async def crash(self):
        self.task.cancel()
        with suppress(asyncio.CancelledError):
            await self.task
        await self.client.close()


@pytest.fixture
async def sites(audited, request):
    users, lease = (access.OPERATOR, access.CAPI, access.PROVIDER), getattr(request, "param", LONG_LEASE)
    async with arena(audited) as stage:
        found = [Site(stage, user, n, lease) for n, user in enumerate(users)]
        await until(lambda: [site.held for site in found] == [{0}, {1}, {2}], within=PATIENCE)
        yield stage, found
        for site in found:
            await site.crash()


def open_always(numbers):
    schedule = {"daysOfWeek": ["mon-sun"], "hoursOfDay": ["0-23"]}
    for n in numbers:
        yield machine(f"m{n}", infrastructure={"address": f"host-{n}"}, schedule=schedule)


async def statuses(stage):
    listed = await stage.client.list(SCHEDULED_MACHINES, namespace=stage.tenants)
    return {raw["metadata"]["name"]: raw.get("status") or {} for raw in listed}


async def all_active(stage):
    found = await statuses(stage)
    return found if all(status.get("phase") == "Active" for status in found.values()) else None


async def test_each_object_is_served_by_the_holder_of_its_shard_alone_and_says_which(sites):
    stage, found = sites
    audit = stage.audit()
    await stage.store(open_always(range(24)))
    shown = await until(lambda: all_active(stage), within=PATIENCE)
    assert {status["shard"] for status in shown.values()} == {"0-of-3", "1-of-3", "2-of-3"}
    for name, status in shown.items():
        holder = found[shard_number(stage.tenants, name, 3)]
        assert status["shard"] == f"{shard_number(stage.tenants, name, 3)}-of-3"
        writers = {write.user for write in audit.read() if write.name.startswith(f"{name}-") or write.name == name}
        assert writers - {access.ADMIN} == {holder.user}


@pytest.mark.parametrize("sites", [LEASE], indirect=True)
async def test_an_object_that_is_due_while_its_replica_is_dead_is_served_soon_after_its_lease(sites):
    stage, found = sites
    died = time.monotonic()
    await found[2].crash()
    await stage.store(open_always(range(24)))
    await until(lambda: all_active(stage), within=PATIENCE)
    assert time.monotonic() - died < LEASE + 20  # five on a machine that has time for it: see `make bench`


async def test_a_replica_that_is_stopped_hands_its_objects_over_at_once(sites):
    stage, found = sites
    await stage.store(open_always(range(12)))
    await until(lambda: all_active(stage), within=PATIENCE)
    await found[1].stop()
    stopped = time.monotonic()
    await until(lambda: 1 in found[0].held | found[2].held)
    assert time.monotonic() - stopped < LONG_LEASE / 2
    assert not any(found[1].controller.fence.owns(Key(stage.tenants, f"m{n}")) for n in range(12))
    await stage.store(open_always(range(12, 24)))
    await until(lambda: all_active(stage), within=PATIENCE)


async def test_the_caches_that_a_shard_needs_are_warm_before_it_is_taken_over(sites):
    stage, found = sites
    await stage.store(open_always(n for n in range(24) if shard_number(stage.tenants, f"m{n}", 3) == 0))
    await until(lambda: all_active(stage), within=PATIENCE)
    for site in found[1:]:
        for kind in (BOOTSTRAPS, HOSTS):
            await until(lambda kind=kind, site=site: is_warm(site.controller.watches.informer_of(kind)))


async def test_a_spare_replica_holds_no_shard_and_answers_webhooks(sites, tmp_path):
    stage, found = sites
    made = first_bundle(("localhost",), datetime.now(UTC), Policy())
    (tmp_path / "tls.crt").write_bytes(made.leaf.certificate)
    (tmp_path / "tls.key").write_bytes(made.leaf.key)
    words = [
        f"--kubeconfig={stage.cluster.kubeconfig_of(access.KWOK)}", f"--namespace={stage.own}",
        f"--namespaces={stage.tenants}", "--instance-count=3", "--instance-id=0", "--bind-address=127.0.0.1",
        "--webhook-port=0", "--health-port=0", "--metrics-port=0", "--drain-seconds=0",
        "--certificates=files", f"--certificate-file={tmp_path / 'tls.crt'}", f"--key-file={tmp_path / 'tls.key'}",
    ]  # fmt: skip
    trusting = ssl.create_default_context(cadata=made.trusted.decode())
    async with started(words) as spare, httpx.AsyncClient(verify=trusting) as client:
        webhooks, health, metrics = [await spare.port(name) for name in ("webhooks", "health", "metrics")]
        await until(lambda: answers(client, f"http://127.0.0.1:{health}/ready"), within=PATIENCE)
        asked = orjson.dumps(review(manifest()))
        told = await client.post(f"https://localhost:{webhooks}{names.VALIDATE_PATH}", content=asked)
        assert told.json()["response"]["allowed"] is True
        page = (await client.get(f"http://127.0.0.1:{metrics}/metrics")).text
    assert [line for line in page.splitlines() if line.startswith("fivespot_shard_held{")] == [
        f'fivespot_shard_held{{shard="{number}-of-3"}} 0.0' for number in range(3)
    ]
    assert [site.held for site in found] == [{0}, {1}, {2}]


async def answers(client, url):
    with suppress(httpx.ConnectError):
        return (await client.get(url)).status_code == 200


def is_warm(cache):
    return cache is not None and cache.is_synced and len(cache) > 0

"""Three controllers share the work on a real API server, and take over from each other."""

import ssl
import time
from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import httpx
import orjson
import pytest

from certs.bundle import Policy, first_bundle
from crds import names
from crds.base import rfc3339
from local import access
from local.provider.kinds import BOOTSTRAPS, CLUSTERS, HOSTS, MACHINES
from service.kube.client import PatchKind
from service.kube.resource import SCHEDULE_OVERRIDES, SCHEDULED_MACHINES
from service.runtime.key import Key
from service.settings import Settings
from service.sharding.fence import Fence
from service.sharding.shard import shard_number
from tests.e2e.manifests import machine, says
from tests.integration.replica import Replica
from tests.integration.replicas import arena
from tests.service.process import started
from tests.waiting import until
from tests.webhooks.reviews import machine as manifest
from tests.webhooks.reviews import review

PATIENCE = 120.0
LEASE, LONG_LEASE = 10, 60
"""Short where a lease must expire; long where it must not, however slow the machine is."""


class Site(Replica):
    """A replica inside the test, with three shards to compete for."""

    def __init__(self, stage, user, preferred, lease):
        settings = Settings(
            namespaces=(stage.tenants,), namespace=stage.own, webhooks=False, stop_seconds=1.0,
            instance_count=3, instance_id=preferred,
            lease_seconds=lease, lease_renew_seconds=0.8 * lease, lease_retry_seconds=1,
        )  # fmt: skip
        super().__init__(stage.cluster, user, settings, Fence(3))

    @property
    def held(self):
        assert self.controller.leases is not None
        return {shard.number for shard in self.controller.leases.held}


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


async def all_decided(stage):
    """The statuses of all, once each has a Machine or waits for its turn."""
    found = await statuses(stage)
    return found if found and all(status.get("phase") in ("Active", "Pending") for status in found.values()) else None


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


async def test_each_shard_has_its_share_of_a_limit_rounded_up(sites):
    stage, _found = sites
    limited = {"metadata": {"annotations": {names.ANNOTATION_MAX_PROVISIONING: "5"}}}
    await stage.client.patch(CLUSTERS, "demo", limited, kind=PatchKind.MERGE, namespace=stage.tenants)
    await stage.store(open_always(range(24)))
    shown = await until(lambda: all_decided(stage), within=PATIENCE)
    # No provider is at work here: what is on the way stays so.
    on_the_way = Counter(status["shard"] for status in shown.values() if status["phase"] == "Active")
    assert on_the_way == {"0-of-3": 2, "1-of-3": 2, "2-of-3": 2}
    assert len(await stage.client.list(MACHINES, namespace=stage.tenants)) == 6


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
        answer = await client.post(f"https://localhost:{webhooks}{names.VALIDATE_PATH}", content=asked)
        assert answer.json()["response"]["allowed"] is True
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


async def test_an_override_is_reported_and_deleted_by_the_holder_of_the_shard_of_its_own_key_alone(sites):
    stage, found = sites
    audit = stage.audit()
    await stage.store(open_always(range(3)))
    await until(lambda: all_active(stage), within=PATIENCE)
    until_then = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1)
    for n in range(12):
        await override(stage, f"o{n}", f"m{n % 3}", until_then)
    over = datetime.now(UTC).replace(microsecond=0) - timedelta(days=2)
    for n in range(6):
        await override(stage, f"over{n}", "m0", over)
        await age(stage, f"over{n}", over)
    shown = await until(lambda: all_in_force(stage, 12), within=PATIENCE)
    await until(lambda: all_closed(stage), within=PATIENCE)
    for name in (*shown, *(f"over{n}" for n in range(6))):
        holder = found[shard_number(stage.tenants, name, 3)]
        writes = {write.user for write in audit.read() if write.name == name and "scheduleoverrides" in write.what}
        assert writes - {access.ADMIN} == {holder.user}, name
    deleted = {write.name for write in audit.read() if write.what.startswith("delete scheduleoverrides")}
    assert deleted == {f"over{n}" for n in range(6)}


async def override(stage, name, machine_name, ends):
    spec = {"machines": [machine_name], "state": "Closed", "until": rfc3339(ends)}
    body = {**SCHEDULE_OVERRIDES.envelope(), "metadata": {"name": name}, "spec": spec}
    await stage.client.create(SCHEDULE_OVERRIDES, body, namespace=stage.tenants)


async def age(stage, name, accepted):
    """Has the operator believe that it accepted an override at that time."""

    async def seen():
        raw = await stage.client.get(SCHEDULE_OVERRIDES, name, namespace=stage.tenants)
        return (raw.get("status") or {}).get("acceptedAt")

    await until(seen, within=PATIENCE)
    body = {"status": {"acceptedAt": rfc3339(accepted)}}
    await stage.client.patch(SCHEDULE_OVERRIDES, name, body, namespace=stage.tenants, subresource="status")


async def all_in_force(stage, count):
    """The overrides by name, once there are so many left and each says that it is in force."""
    listed = await stage.client.list(SCHEDULE_OVERRIDES, namespace=stage.tenants)
    right = [raw["metadata"]["name"] for raw in listed if says(raw.get("status") or {}, "InForce", "True")]
    return right if len(right) == len(listed) == count else None


async def all_closed(stage):
    found = await statuses(stage)
    return all(says(status, "Overridden", "True", "OverrideClosed") for status in found.values())

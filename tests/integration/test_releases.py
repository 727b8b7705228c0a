"""Two releases of the operator, each in a namespace of its own, that watch the same namespace of a real API server."""

import asyncio
from datetime import UTC, datetime

import pytest

from local import access
from local.provider.kinds import BOOTSTRAPS, HOSTS, MACHINES
from service.kube.resource import LEASES, NAMESPACES, SCHEDULED_MACHINES
from service.settings import Settings
from service.sharding.fence import Fence
from service.sharding.releases import LEASE_NAME
from tests.e2e.manifests import machine
from tests.integration.replica import Replica
from tests.integration.replicas import arena
from tests.waiting import until

PATIENCE = 120.0
LEASE = 4


class Release(Replica):
    """One replica of a release, inside the test; each release is a user of its own in the audit log."""

    def __init__(self, stage, user, namespace, *, watches=None):
        settings = Settings(
            namespaces=(stage.tenants,) if watches is None else watches, namespace=namespace, webhooks=False,
            stop_seconds=1.0, lease_seconds=LEASE, lease_renew_seconds=0.6 * LEASE, lease_retry_seconds=0.4,
        )  # fmt: skip
        super().__init__(stage.cluster, user, settings, Fence(1))

    @property
    def acts(self):
        return bool(self.controller.leases and self.controller.leases.held)

    @property
    def stands_back(self):
        assert self.controller.leases is not None
        return self.controller.leases.releases.blocked_for() > 0 and not self.acts


@pytest.fixture
async def stage(audited):
    async with arena(audited) as found:
        found.other = f"{found.own}-other"
        await found.client.create(NAMESPACES, {**NAMESPACES.envelope(), "metadata": {"name": found.other}})
        yield found


@pytest.fixture
async def releases(stage):
    """The first acts, then the second is installed."""
    first = Release(stage, access.OPERATOR, stage.own)
    await until(lambda: first.acts, within=PATIENCE)
    second = Release(stage, access.CAPI, stage.other)
    await until(lambda: second.stands_back, within=PATIENCE)
    yield first, second
    for release in (first, second):
        await release.crash()


def always(name):
    schedule = {"daysOfWeek": ["mon-sun"], "hoursOfDay": ["0-23"]}
    return machine(name, infrastructure={"address": name}, schedule=schedule)


async def machines(stage):
    return sorted(raw["metadata"]["name"] for raw in await stage.client.list(MACHINES, namespace=stage.tenants))


async def have_machines(stage, *names):
    return await machines(stage) == [f"{name}-machine" for name in names]


async def test_the_second_release_stands_back_and_takes_over_when_the_first_is_uninstalled(stage, releases):
    first, second = releases
    log = stage.audit()
    await stage.store([always("one")])
    await until(lambda: have_machines(stage, "one"), within=PATIENCE)
    assert second.stands_back
    await first.stop()
    stopped = datetime.now(UTC)
    await until(lambda: second.acts, within=PATIENCE)
    # The first said so: nothing had to run out.
    assert (datetime.now(UTC) - stopped).total_seconds() < 4 * LEASE
    await stage.store([always("two")])
    await until(lambda: have_machines(stage, "one", "two"), within=PATIENCE)
    assert {write.name for write in log.by(first.user)} & {"two", "two-machine"} == set()
    await until(
        lambda: {first.user, second.user} == creators(log), within=PATIENCE
    )  # the log is written a little later
    for resource in (BOOTSTRAPS, HOSTS):
        assert len(await stage.client.list(resource, namespace=stage.tenants)) == 2


def creators(log):
    """Who created a Machine."""
    return {write.user for write in log.read() if write.what.startswith("create machines")}


async def test_a_release_that_died_is_taken_over_when_its_announcement_expires(stage, releases):
    first, second = releases
    log = stage.audit()
    await first.crash()
    await until(lambda: second.acts, within=PATIENCE)
    await stage.store([always("one")])
    await until(lambda: have_machines(stage, "one"), within=PATIENCE)
    assert log.by(first.user) == []


async def test_a_release_that_stands_back_writes_nothing_to_objects(stage, releases):
    _, second = releases
    log = stage.audit()
    await stage.store([always("one")])
    await until(lambda: have_machines(stage, "one"), within=PATIENCE)
    body = {"spec": {"killSwitch": True}}
    await stage.client.patch(SCHEDULED_MACHINES, "one", body, namespace=stage.tenants)
    await until(lambda: have_machines(stage), within=PATIENCE)
    assert log.by(second.user) == []


async def test_of_two_releases_that_begin_at_once_one_acts(stage):
    both = [Release(stage, access.OPERATOR, stage.own), Release(stage, access.CAPI, stage.other)]
    acted_together = []
    try:
        await until(lambda: any(release.acts for release in both), within=PATIENCE)
        for _ in range(100):
            acted_together += [release.user for release in both] if all(release.acts for release in both) else []
            await asyncio.sleep(0.02)
        assert acted_together == []
        assert [release.acts for release in both].count(True) == 1
    finally:
        for release in both:
            await release.crash()


async def test_releases_that_watch_different_namespaces_both_act(stage):
    both = [Release(stage, access.OPERATOR, stage.own), Release(stage, access.CAPI, stage.other, watches=(stage.own,))]
    try:
        await until(lambda: all(release.acts for release in both), within=PATIENCE)
    finally:
        for release in both:
            await release.crash()


async def test_replicas_of_one_release_do_not_block_each_other(stage):
    first = Release(stage, access.OPERATOR, stage.own)
    await until(lambda: first.acts, within=PATIENCE)
    second = Release(stage, access.CAPI, stage.own)
    try:
        await first.stop()
        await until(lambda: second.acts, within=PATIENCE)
        lease = await stage.client.get(LEASES, LEASE_NAME, namespace=stage.own)
        assert len(lease["metadata"]["annotations"]) == 1
    finally:
        for release in (first, second):
            await release.crash()

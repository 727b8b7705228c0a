"""What a replica announces, and for how long the announcements of others keep it from acting; the server is played."""

import math

import pytest

from service import metrics
from service.kube.client import Client
from service.kube.errors import Forbidden, NotFound, Unavailable
from service.sharding.announcement import Announcement
from service.sharding.leases import LeaseTimes
from service.sharding.releases import LEASE_NAME, PREFIX, ReleaseRegistry


class Server:
    """One Lease of our own, and those of others; `fails` is raised by every request."""

    def __init__(self):
        self.own, self.foreign, self.writes, self.fails, self.version = None, [], 0, None, 1

    def _ask(self):
        if self.fails is not None:
            raise self.fails

    def _store(self, annotations):
        self.version += 1
        self.writes += 1
        kept = {key: value for key, value in annotations.items() if value is not None}
        self.own = lease("own", kept, self.version)
        return self.own

    async def patch(self, _resource, name, body, **_options):
        self._ask()
        assert name == LEASE_NAME
        if self.own is None:
            raise NotFound("there is none")
        return self._store(self.own["metadata"]["annotations"] | body["metadata"]["annotations"])

    async def create(self, _resource, body, **_options):
        return self._store(body["metadata"]["annotations"])

    async def list(self, _resource, *, fields):
        self._ask()
        assert fields == f"metadata.name={LEASE_NAME}"
        return [each for each in (self.own, *self.foreign) if each is not None]


def lease(namespace, annotations, version=1):
    return {"metadata": {"namespace": namespace, "resourceVersion": str(version), "annotations": annotations}}


def foreign(*watches, namespace="other", version=1, renewal="r"):
    return lease(namespace, {f"{PREFIX}a": Announcement(watches, 60.0, renewal).to_json()}, version)


@pytest.fixture
def server():
    return Server()


@pytest.fixture
def releases(server, now):
    client = Client.from_inline("https://127.0.0.1:1", token="t")
    made = ReleaseRegistry(client, "own", ("team",), LeaseTimes(), now, "host_abc")
    for verb in ("patch", "create", "list"):
        setattr(client, verb, getattr(server, verb))
    return made


async def test_an_announcement_is_renewed_a_quarter_as_often_as_a_lease_and_good_for_four_times_as_long(
    releases, server, now
):
    assert releases.until == -math.inf
    await releases.announce()
    now.at += 7.9
    await releases.renew()
    assert (server.writes, releases.until, releases.others_from) == (1, 140.0, 160.0)
    now.at += 0.2
    await releases.renew()
    assert (server.writes, releases.until) == (2, pytest.approx(148.1))


async def test_a_renewal_that_fails_leaves_the_announcement_as_it_was(releases, server, now):
    await releases.announce()
    now.at += 10.0
    server.fails = Unavailable("away")
    await releases.renew()
    assert releases.until == 140.0


@pytest.mark.parametrize(("watches", "blocked"), [((), 60.0), (("team", "lab"), 60.0), (("lab",), 0.0)])
async def test_a_release_that_acts_in_the_same_namespace_is_in_the_way(releases, server, watches, blocked):
    server.foreign = [foreign(*watches)]
    await releases.refresh()
    assert releases.blocked_for() == blocked
    assert metrics.REGISTRY.get_sample_value("fivespot_foreign_releases") == bool(blocked)


async def test_a_release_that_stopped_renewing_blocks_only_until_its_announcement_expires(releases, server, now):
    server.foreign = [foreign("team")]
    await releases.refresh()
    now.at += 59.0
    await releases.refresh()
    assert releases.blocked_for() == 1.0
    now.at += 1.0
    assert releases.blocked_for() == 0.0


async def test_our_own_release_is_never_in_the_way_and_its_dead_replicas_are_cleared_away(releases, server, now):
    server.own = foreign("team", namespace="own")
    await releases.refresh()
    assert releases.blocked_for() == 0.0
    now.at += 60.0
    await releases.announce()
    assert list(server.own["metadata"]["annotations"]) == [f"{PREFIX}abc"]


async def test_a_replica_that_withdrew_is_not_announced_and_announces_itself_again_before_it_acts(releases, server):
    await releases.announce()
    await releases.withdraw()
    assert (server.own["metadata"]["annotations"], releases.until) == ({}, -math.inf)
    await releases.announce()
    assert server.writes == 3


async def test_a_watch_event_that_is_older_than_what_is_known_change_nothing_but_a_restored_server_is_believed(
    releases, server
):
    server.foreign = [foreign("team", version=9)]
    await releases.refresh()
    releases._observe(lease("other", {}, 5))
    assert releases.blocked_for() == 60.0
    server.foreign = [lease("other", {f"{PREFIX}b": Announcement(("team",), 90.0, "r").to_json()}, 5)]
    await releases.refresh()
    assert releases.blocked_for() == 90.0
    releases._observe(lease("other", {}, 6))
    assert releases.blocked_for() == 0.0


async def test_an_operator_that_may_not_list_leases_acts_as_if_it_were_alone(releases, server):
    server.fails = Forbidden("no role")
    await releases.refresh()
    await releases.refresh()
    assert releases.blocked_for() == 0.0

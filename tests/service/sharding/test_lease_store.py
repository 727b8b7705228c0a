"""What a replica makes of the Leases it sees, in whatever order they come."""

import pytest

from service.kube.client import Client
from service.sharding.lease_store import LABELS, WANTED_BY, LeaseStore
from service.sharding.leases import LeaseTimes, Replica, acquire_at
from service.sharding.shard import Shard

SHARD = Shard(0, 2)


@pytest.fixture
async def store(now):
    async with Client.from_inline("https://127.0.0.1:1") as client:
        yield LeaseStore(client, "somewhere", LeaseTimes(), now, lambda _shard: None)


def lease(version, holder="other", renewed="12:00", name=SHARD.lease_name, **annotations):
    return {
        "metadata": {"name": name, "resourceVersion": str(version), "annotations": annotations},
        "spec": {"holderIdentity": holder, "renewTime": renewed, "leaseDurationSeconds": 15, "leaseTransitions": 3},
    }


async def test_a_lease_counts_from_when_its_renewal_was_first_seen(store, now):
    store.observe(lease(7))
    now.at = 110.0
    store.observe(lease(8, renewed="12:10"))
    assert store.get(SHARD).since == 110.0


async def test_an_annotation_does_not_prolong_the_life_of_a_dead_holder(store, now):
    store.observe(lease(7))
    now.at = 110.0
    store.observe(lease(8, **{WANTED_BY: "me"}))
    seen = store.get(SHARD)
    assert (seen.since, seen.wanted_by, seen.version) == (100.0, "me", 8)


async def test_old_news_changes_nothing(store):
    store.observe(lease(8, holder="new"))
    store.observe(lease(7, holder="old"))
    assert store.get(SHARD).holder == "new"


async def test_a_lease_without_a_holder_is_free(store, now):
    store.observe(lease(7, holder=None))
    assert not store.get(SHARD).live(now())


async def test_the_holder_says_how_long_its_lease_lasts(store):
    store.observe(lease(7) | {"spec": {"holderIdentity": "other", "leaseDurationSeconds": 40}})
    assert store.get(SHARD).live(139.0)


async def test_leases_of_others_in_the_same_namespace_are_not_ours(store):
    assert store.observe(lease(7, name="kube-scheduler")) is None
    assert list(store) == []


def answers(store, verb, answer, meanwhile=None):
    """The server's answer to a request; `meanwhile` is heard while that is under way."""

    async def ask(*_args, **_options):
        if meanwhile is not None:
            store.observe(meanwhile)
        return answer

    setattr(store._client, verb, ask)


def writes(store):
    """What is patched from now on."""
    sent = []

    async def patch(_resource, _name, body, **_options):
        sent.append(body)
        return lease(10_000, holder="me")

    store._client.patch = patch
    return sent


async def test_a_server_that_was_restored_from_a_backup_is_believed_when_it_is_asked(store, now):
    store.observe(lease(9000))
    now.at = 120.0
    answers(store, "get", lease(70, holder="former"))
    seen = await store.read(SHARD)
    assert (seen.version, seen.holder, seen.since) == (70, "former", 120.0)


async def test_but_the_last_known_holder_may_not_know_yet_and_still_counts_as_holder(store, now):
    store.observe(lease(9000))
    now.at = 110.0
    answers(store, "get", lease(70, holder="former"))
    seen = await store.read(SHARD)
    assert (seen.version, seen.holder, seen.since) == (70, "other", 100.0)
    assert acquire_at(SHARD, seen, Replica("former", preferred=0, started=0.0), LeaseTimes()) == 115.0


async def test_the_replica_that_renews_is_the_holder_also_on_a_server_that_was_restored(store):
    store.observe(lease(9000, holder="me"))
    answers(store, "get", lease(70, holder="former"))
    sent = writes(store)
    await store.renew(await store.read(SHARD))
    assert sent[0]["metadata"]["resourceVersion"] == "70"
    assert sent[0]["spec"]["holderIdentity"] == "me"


async def test_a_replica_that_acquires_a_lease_gives_it_the_labels_by_which_all_replicas_find_it(store):
    store.observe(lease(7, holder=None))
    sent = writes(store)
    await store.acquire(SHARD, "me")
    assert sent[0]["metadata"]["labels"] == LABELS


async def test_the_list_of_a_server_that_was_restored_is_believed_too(store):
    store.observe(lease(9000))
    answers(store, "list", [lease(70, holder="former")])
    await store.refresh()
    assert store.get(SHARD).version == 70


async def test_an_answer_that_the_watch_overtook_changes_nothing(store):
    store.observe(lease(7))
    answers(store, "get", lease(7), meanwhile=lease(8, holder="new"))
    assert (await store.read(SHARD)).holder == "new"


async def test_a_lease_that_was_made_after_a_list_is_not_missing_in_it(store):
    other = Shard(1, 2)
    answers(store, "list", [lease(7)], meanwhile=lease(8, name=other.lease_name))
    await store.refresh()
    assert not store.get(other).deleted


async def test_a_lease_that_we_removed_while_a_list_was_made_does_not_come_back_with_it(store):
    dead = Shard(0, 3)

    async def removed(*_args, **_options):
        await store.remove(store.get(dead))
        return [lease(7, name=dead.lease_name)]

    store.observe(lease(7, name=dead.lease_name))
    answers(store, "delete", {})
    store._client.list = removed
    await store.refresh()
    assert list(store) == []


async def test_a_lease_that_a_list_lacks_was_deleted(store):
    store.observe(lease(7))
    answers(store, "list", [])
    await store.refresh()
    assert store.get(SHARD).deleted

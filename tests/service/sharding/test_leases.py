"""When a replica acquires a shard, requests it and hands it over."""

import pytest

from service.sharding.leases import (
    LeaseRecord,
    LeaseTimes,
    Replica,
    acquire_at,
    shard_to_share,
    should_hand_over,
    should_request,
    with_other_count,
)
from service.sharding.shard import Shard

TIMES = LeaseTimes()
MINE, ITS = Shard(0, 3), Shard(1, 3)


def replica(held=0):
    return Replica("me", preferred=0, started=100.0, held=held)


def record(shard=ITS, holder="other", since=200.0, **more):
    return LeaseRecord(shard, version=7, holder=holder, renewal="then", duration=15.0, since=since, **more)


def test_a_request_leaves_time_for_another_before_the_deadline():
    assert 2 * TIMES.request + TIMES.retry < TIMES.deadline < TIMES.duration


# When to acquire


def test_the_preferred_shard_is_acquired_at_once_when_there_is_no_lease():
    assert acquire_at(MINE, None, replica(), TIMES) == 100.0


def test_on_the_first_start_others_get_time_to_take_what_they_prefer():
    assert acquire_at(ITS, None, replica(), TIMES) >= 100.0 + 2 * TIMES.retry


def test_a_lease_is_left_alone_until_its_duration_has_passed_since_it_was_last_seen_renewed():
    assert acquire_at(MINE, record(MINE), replica(), TIMES) == 215.0
    assert record().live(214.9)
    assert not record().live(215.0)


def test_a_lease_that_was_released_is_free_at_once():
    assert acquire_at(MINE, record(MINE, holder=""), replica(), TIMES) == 200.0
    assert acquire_at(ITS, record(holder=""), replica(), TIMES) < 200.5
    assert not record(holder="").live(200.0)


def test_a_replica_that_holds_fewer_shards_goes_first_and_none_waits_long():
    waits = [acquire_at(ITS, record(), replica(held), TIMES) - 215.0 for held in range(10)]
    assert waits == sorted(waits)
    assert waits[0] < waits[1]
    assert max(waits) <= TIMES.retry


def test_a_lease_that_was_requested_by_another_is_left_to_it_for_a_moment():
    requested = acquire_at(ITS, record(holder="", wanted_by="its owner"), replica(), TIMES)
    assert requested == acquire_at(ITS, record(holder=""), replica(), TIMES) + TIMES.retry


def test_our_own_lease_can_be_taken_up_again_at_once():
    assert acquire_at(ITS, record(holder="me"), replica(), TIMES) == 200.0


# Handing over


@pytest.mark.parametrize(
    ("shard", "seen", "requests"),
    [
        (MINE, record(MINE), True),
        (MINE, record(MINE, wanted_by="me"), False),
        (MINE, record(MINE, holder="me"), False),
        (MINE, record(MINE, holder=""), False),
        (MINE, record(MINE, since=0.0), False),
        (MINE, None, False),
        (ITS, record(), False),
    ],
    ids=["held by another", "asked already", "ours", "free", "expired", "absent", "not preferred"],
)
def test_the_preferred_shard_is_asked_for_while_another_holds_it(shard, seen, requests):
    assert should_request(shard, seen, replica(), now=201.0) is requests


@pytest.mark.parametrize(
    ("shard", "wanted_by", "hands_over"),
    [(ITS, "its owner", True), (ITS, "", False), (ITS, "me", False), (MINE, "another", False)],
)
def test_a_shard_is_handed_over_unless_it_is_the_preferred_one(shard, wanted_by, hands_over):
    assert should_hand_over(shard, record(shard, holder="me", wanted_by=wanted_by), replica()) is hands_over


def test_leases_for_another_number_of_shards_are_found():
    other = record(Shard(0, 4))
    assert with_other_count([record(), other, record(MINE)], 3) == [other]


def idle():
    """A replica that a Deployment has just started."""
    return Replica("me", preferred=None, started=100.0)


@pytest.mark.parametrize(
    ("seen", "requested"),
    [
        ([record(MINE), record(ITS)], MINE),
        ([record(MINE, wanted_by="a third"), record(ITS)], ITS),
        ([record(MINE, wanted_by="me"), record(ITS)], None),
        ([record(MINE, holder="one"), record(ITS, holder="two")], None),
        ([record(MINE, since=0.0), record(ITS)], None),
    ],
    ids=["of one holder", "one is promised", "requested already", "one each", "one has expired"],
)
def test_a_replica_without_a_shard_requests_one_from_a_holder_of_several(seen, requested):
    assert shard_to_share(seen, idle(), now=201.0) == requested


@pytest.mark.parametrize("other", [replica(), Replica("me", preferred=None, started=100.0, held=1)])
def test_a_replica_with_a_preference_or_a_shard_requests_no_share(other):
    assert shard_to_share([record(MINE), record(ITS)], other, now=201.0) is None


def test_without_a_preference_no_time_is_left_to_others_on_the_very_first_start():
    assert acquire_at(ITS, None, idle(), TIMES) == 100.25

"""Who serves what, and who tries when: pure arithmetic that all replicas must agree on."""

from collections import Counter

import pytest

from service.sharding.leases import (
    LeaseRecord,
    LeaseTimes,
    Replica,
    rivals,
    shard_to_share,
    should_claim,
    should_yield,
    try_at,
)
from service.sharding.shard import Shard, shard_number

TIMES = LeaseTimes()
NAMES = [(f"team-{n % 37}", f"machine-{n}") for n in range(12_000)]
MINE, ITS = Shard(0, 3), Shard(1, 3)


def replica(held=0):
    return Replica("me", preferred=0, started=100.0, held=held)


def sight(shard=ITS, holder="other", since=200.0, **more):
    return LeaseRecord(shard, version=7, holder=holder, renewal="then", duration=15.0, since=since, **more)


def numbers(count):
    return [shard_number(namespace, name, count) for namespace, name in NAMES]


@pytest.mark.parametrize("count", [1, 2, 3, 7, 64])
def test_every_object_has_one_shard_and_shards_are_of_like_size(count):
    sizes = Counter(numbers(count))
    assert set(sizes) == set(range(count))
    assert max(sizes.values()) < 1.35 * len(NAMES) / count


@pytest.mark.parametrize("count", [1, 2, 3, 9])
def test_one_more_shard_takes_its_own_part_from_the_others_and_moves_nothing_else(count):
    moved = [(old, new) for old, new in zip(numbers(count), numbers(count + 1), strict=True) if old != new]
    assert {new for _, new in moved} == {count}
    assert len(moved) == pytest.approx(len(NAMES) / (count + 1), rel=0.1)


def test_the_hash_is_the_same_in_every_process_and_release():
    assert [shard_number("default", f"machine-{n}", 5) for n in range(12)] == [4, 4, 1, 3, 4, 0, 1, 1, 3, 4, 0, 0]


@pytest.mark.parametrize("shard", [Shard(0, 1), Shard(2, 3), Shard(63, 64)])
def test_the_name_of_a_lease_tells_its_shard(shard):
    assert Shard.of_lease(shard.lease_name) == shard


def test_a_lease_is_named_as_documented():
    assert Shard(1, 3).lease_name == "5spot-shard-1-of-3"


@pytest.mark.parametrize("name", ["5spot-shard-01-of-3", "5spot-shard-1-of-0", "5spot-shard-1-of-3x", "other", "5spot"])
def test_leases_of_others_are_not_taken_for_ours(name):
    assert Shard.of_lease(name) is None


def test_a_request_leaves_time_for_another_before_the_deadline():
    assert 2 * TIMES.request + TIMES.retry < TIMES.deadline < TIMES.duration


# When to try


def test_the_preferred_shard_is_taken_at_once_when_there_is_no_lease():
    assert try_at(MINE, None, replica(), TIMES) == 100.0


def test_on_the_first_start_others_get_time_to_take_what_they_prefer():
    assert try_at(ITS, None, replica(), TIMES) >= 100.0 + 2 * TIMES.retry


def test_a_lease_is_left_alone_until_its_duration_has_passed_since_it_was_last_seen_renewed():
    assert try_at(MINE, sight(MINE), replica(), TIMES) == 215.0
    assert sight().live(214.9)
    assert not sight().live(215.0)


def test_a_lease_that_was_given_back_is_free_at_once():
    assert try_at(MINE, sight(MINE, holder=""), replica(), TIMES) == 200.0
    assert try_at(ITS, sight(holder=""), replica(), TIMES) < 200.5
    assert not sight(holder="").live(200.0)


def test_whoever_holds_less_goes_first_and_nobody_waits_long():
    waits = [try_at(ITS, sight(), replica(held), TIMES) - 215.0 for held in range(10)]
    assert waits == sorted(waits)
    assert waits[0] < waits[1]
    assert max(waits) <= TIMES.retry


def test_a_lease_that_was_promised_to_another_is_left_to_it_for_a_moment():
    promised = try_at(ITS, sight(holder="", wanted_by="its owner"), replica(), TIMES)
    assert promised == try_at(ITS, sight(holder=""), replica(), TIMES) + TIMES.retry


def test_our_own_lease_can_be_taken_up_again_at_once():
    assert try_at(ITS, sight(holder="me"), replica(), TIMES) == 200.0


# Handing over


@pytest.mark.parametrize(
    ("shard", "seen", "claims"),
    [
        (MINE, sight(MINE), True),
        (MINE, sight(MINE, wanted_by="me"), False),
        (MINE, sight(MINE, holder="me"), False),
        (MINE, sight(MINE, holder=""), False),
        (MINE, sight(MINE, since=0.0), False),
        (MINE, None, False),
        (ITS, sight(), False),
    ],
    ids=["held by another", "asked already", "ours", "free", "expired", "absent", "not preferred"],
)
def test_the_preferred_shard_is_asked_for_while_another_looks_after_it(shard, seen, claims):
    assert should_claim(shard, seen, replica(), now=201.0) is claims


def idle():
    """A replica that was just started, by a Deployment."""
    return Replica("me", preferred=None, started=100.0)


@pytest.mark.parametrize(
    ("seen", "asked_for"),
    [
        ([sight(MINE), sight(ITS)], MINE),
        ([sight(MINE, wanted_by="a third"), sight(ITS)], ITS),
        ([sight(MINE, wanted_by="me"), sight(ITS)], None),
        ([sight(MINE, holder="one"), sight(ITS, holder="two")], None),
        ([sight(MINE, since=0.0), sight(ITS)], None),
    ],
    ids=["of one", "one is promised", "asked already", "one each", "one is anybody's"],
)
def test_a_replica_without_a_shard_asks_for_one_of_a_holder_of_several(seen, asked_for):
    assert shard_to_share(seen, idle(), now=201.0) == asked_for


@pytest.mark.parametrize("other", [replica(), Replica("me", preferred=None, started=100.0, held=1)])
def test_a_replica_with_a_preference_or_a_shard_asks_for_no_share(other):
    assert shard_to_share([sight(MINE), sight(ITS)], other, now=201.0) is None


def test_without_a_preference_no_time_is_left_to_others_on_the_first_start_of_all():
    assert try_at(ITS, None, idle(), TIMES) == 100.25


@pytest.mark.parametrize(
    ("shard", "wanted_by", "yields"),
    [(ITS, "its owner", True), (ITS, "", False), (ITS, "me", False), (MINE, "another", False)],
)
def test_a_shard_is_handed_over_unless_it_is_the_preferred_one(shard, wanted_by, yields):
    assert should_yield(shard, sight(shard, holder="me", wanted_by=wanted_by), replica()) is yields


def test_leases_for_another_number_of_shards_are_rivals():
    other = sight(Shard(0, 4))
    assert rivals([sight(), other, sight(MINE)], 3) == [other]

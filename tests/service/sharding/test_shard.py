"""Which shard an object belongs to: pure arithmetic that all replicas must agree on."""

from collections import Counter

import pytest

from service.sharding.shard import Shard, shard_number

NAMES = [(f"team-{n % 37}", f"machine-{n}") for n in range(12_000)]


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
def test_the_name_of_a_lease_contains_its_shard(shard):
    assert Shard.of_lease(shard.lease_name) == shard


def test_a_lease_is_named_as_documented():
    assert Shard(1, 3).lease_name == "5spot-shard-1-of-3"


@pytest.mark.parametrize("name", ["5spot-shard-01-of-3", "5spot-shard-1-of-0", "5spot-shard-1-of-3x", "other", "5spot"])
def test_leases_of_others_are_not_taken_for_ours(name):
    assert Shard.of_lease(name) is None

import asyncio
from datetime import timedelta

import pytest

from certs.bundle import Policy, RotationRequest
from certs.issue import signed_by
from tests.certs.shelf import START, Shelf, Time, replica
from tests.waiting import running, until


async def test_the_first_replica_makes_the_bundle_and_publishes_its_authority():
    shelf = Shelf()
    bundle = await replica(shelf, Time()).settle()
    assert shelf.bundle == bundle
    assert shelf.trust == {"validating": [bundle.trusted], "mutating": [bundle.trusted]}


async def test_replicas_that_start_together_agree_on_one_authority():
    shelf = Shelf()
    replicas = [replica(shelf, Time()) for _ in range(5)]
    bundles = await asyncio.gather(*(each.settle() for each in replicas))
    assert len(shelf.saved) == 1
    assert set(bundles) == {shelf.bundle}
    assert all(each.serving.expires == bundles[0].leaf.parsed.not_valid_after_utc for each in replicas)


async def test_a_settled_store_is_not_written_again():
    shelf, time = Shelf(), Time()
    await replica(shelf, time).settle()
    version, trust_version = shelf.version, shelf.trust_version
    await replica(shelf, time).settle()
    assert (shelf.version, shelf.trust_version) == (version, trust_version)


@pytest.mark.parametrize("spoilt", [b"", b"somebody else's", b"-----BEGIN"])
async def test_a_ca_bundle_that_another_program_changed_is_repaired(spoilt: bytes):
    shelf, time = Shelf(), Time()
    rotation = replica(shelf, time)
    bundle = await rotation.settle()
    shelf.trust["validating"] = [spoilt]
    await rotation.settle()
    assert shelf.trust["validating"] == [bundle.trusted]


async def test_a_deleted_secret_comes_back_as_it_was_served():
    shelf, time = Shelf(), Time()
    rotation = replica(shelf, time)
    bundle = await rotation.settle()
    shelf.bundle = None
    assert await rotation.settle() == bundle
    assert shelf.bundle == bundle


async def test_an_authority_is_rotated_in_steps_and_the_served_leaf_is_always_trusted():
    shelf, time = Shelf(), Time()
    rotation = replica(shelf, time)
    first = await rotation.settle()
    shelf.requested = RotationRequest.CA
    announced = await rotation.settle()
    assert announced.leaf == first.leaf
    assert announced.published_at == START
    assert shelf.trust["mutating"] == [announced.trusted]

    time.at += Policy().settle
    switched = await rotation.settle()
    assert announced.coming is not None
    assert signed_by(switched.leaf.parsed, announced.coming.parsed)
    assert shelf.trust["mutating"] == [announced.trusted]

    time.at += Policy().retire
    alone = await rotation.settle()
    assert shelf.trust["mutating"] == [alone.authority.certificate]


async def test_without_webhook_configurations_rotation_still_completes():
    shelf, time = Shelf(trust={}), Time()
    rotation = replica(shelf, time)
    shelf.requested = RotationRequest.CA
    announced = await rotation.settle()
    assert announced.published_at == START


async def test_the_loop_survives_an_outage_and_reacts_to_a_change():
    shelf = Shelf(outages=2)
    rotation = replica(shelf, Time())
    async with running(rotation.run()):
        await until(lambda: shelf.bundle and shelf.trust["validating"] == [shelf.bundle.trusted])
        shelf.trust["validating"] = [b""]
        shelf.bell.set()
        await until(lambda: shelf.bundle and shelf.trust["validating"] == [shelf.bundle.trusted])


async def test_the_loop_renews_when_the_time_comes():
    shelf, time = Shelf(), Time()
    rotation = replica(shelf, time)
    first = await rotation.settle()
    time.at += timedelta(days=365) * (2 / 3)
    async with running(rotation.run()):
        await until(lambda: shelf.bundle and shelf.bundle.leaf != first.leaf)

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from certs.bundle import Bundle, Policy, RotationRequest, first_bundle
from certs.issue import new_leaf, signed_by
from certs.rotation import (
    FileWatch,
    LostRaceError,
    Published,
    Rotation,
    Snapshot,
    StoreUnavailableError,
)
from certs.tls import CertificateFiles, ServingContext
from tests.waiting import running, until

START = datetime(2026, 1, 1, tzinfo=UTC)
NAMES = ("localhost",)


@dataclass
class Shelf:
    """A store in memory that keeps versions as an API server does, shared by several replicas."""

    bundle: Bundle | None = None
    version: int = 0
    trust: dict[str, list[bytes]] = field(default_factory=lambda: {"validating": [b""], "mutating": [b""]})
    trust_version: int = 0
    requested: RotationRequest | None = None
    saved: list[Bundle] = field(default_factory=list)
    outages: int = 0
    bell: asyncio.Event = field(default_factory=asyncio.Event)

    async def read(self) -> Snapshot:
        self.bell.clear()
        if self.outages:
            self.outages -= 1
            raise StoreUnavailableError("connection refused")
        published = tuple(Published(n, str(self.trust_version), tuple(t)) for n, t in self.trust.items())
        await asyncio.sleep(0)
        version = str(self.version) if self.bundle else None
        return Snapshot(self.bundle, version, published, self.requested)

    async def save(self, bundle: Bundle, version: str | None) -> None:
        await asyncio.sleep(0)
        if version != (str(self.version) if self.bundle else None):
            raise LostRaceError
        self.bundle, self.version, self.requested = bundle, self.version + 1, None
        self.saved.append(bundle)
        self.bell.set()

    async def publish(self, trusted: bytes, configurations: tuple[Published, ...]) -> None:
        await asyncio.sleep(0)
        if any(published.version != str(self.trust_version) for published in configurations):
            raise LostRaceError
        self.trust = {published.name: [trusted] * len(published.trusted) for published in configurations}
        self.trust_version += 1
        self.bell.set()

    async def changed(self) -> None:
        await self.bell.wait()


@dataclass
class Time:
    at: datetime = START

    def __call__(self) -> datetime:
        return self.at


def replica(shelf: Shelf, time: Time) -> Rotation:
    return Rotation(store=shelf, serving=ServingContext(), names=NAMES, now=time)


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


async def test_a_settled_store_is_written_no_more():
    shelf, time = Shelf(), Time()
    await replica(shelf, time).settle()
    version, trust_version = shelf.version, shelf.trust_version
    await replica(shelf, time).settle()
    assert (shelf.version, shelf.trust_version) == (version, trust_version)


@pytest.mark.parametrize("spoilt", [b"", b"somebody else's", b"-----BEGIN"])
async def test_a_ca_bundle_that_someone_changed_is_put_right(spoilt: bytes):
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


@dataclass
class Mount:
    """A mounted certificate as cert-manager would keep it."""

    folder: Path
    bundle: Bundle = field(default_factory=lambda: first_bundle(NAMES, datetime.now(UTC), Policy()))

    def write(self, *, days: int = 2, key: bytes | None = None) -> None:
        leaf = new_leaf(self.bundle.authority, NAMES, datetime.now(UTC), timedelta(days=days))
        (self.folder / "tls.crt").write_bytes(leaf.certificate)
        (self.folder / "tls.key").write_bytes(key or leaf.key)

    @property
    def files(self) -> CertificateFiles:
        return CertificateFiles(self.folder / "tls.crt", self.folder / "tls.key")


async def test_certificates_from_files_are_taken_over_when_they_change(tmp_path: Path):
    mount, serving = Mount(tmp_path), ServingContext()
    watch = FileWatch(mount.files, serving, every=0.005)
    async with running(watch.run()):
        assert serving.expires is None
        mount.write()
        await until(watch.loaded.is_set)
        first = serving.expires
        mount.write(days=3)
        await until(lambda: serving.expires != first)


def test_files_caught_half_written_are_looked_at_again(tmp_path: Path):
    mount, serving = Mount(tmp_path), ServingContext()
    watch = FileWatch(mount.files, serving)
    mount.write()
    watch.look()
    good = serving.expires
    assert good is not None
    mount.write(key=mount.bundle.authority.key)
    watch.look()
    assert serving.expires == good
    assert serving.valid(datetime.now(UTC))
    mount.write(days=5)
    watch.look()
    assert serving.expires > good

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from certs.bundle import Bundle, Policy, first_bundle
from certs.files import FileRotation, FileWatch, MountedFiles
from certs.issue import CertificatePair, new_authority, new_leaf
from certs.tls import CertificateFiles, ServingContext
from certs.trust import LEARNT_AFTER, authorities
from tests.certs.shelf import NAMES, START, Shelf, Time, replica
from tests.waiting import running, until


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


@dataclass
class IssuedSecret:
    """A Secret as cert-manager fills it: a pair and the authority that signed it."""

    folder: Path
    authority: CertificatePair = field(default_factory=lambda: new_authority(START, timedelta(days=3650)))

    def write(self) -> "IssuedSecret":
        leaf = new_leaf(self.authority, NAMES, START, timedelta(days=365))
        parts = {"tls.crt": leaf.certificate, "tls.key": leaf.key, "ca.crt": self.authority.certificate}
        for name, content in parts.items():
            (self.folder / f"new-{name}").write_bytes(content)
            (self.folder / f"new-{name}").rename(self.folder / name)
        return self

    def reissued(self) -> "IssuedSecret":
        """The same files after the issuer got another authority."""
        return IssuedSecret(self.folder).write()

    def replica(self, shelf: Shelf, time: Time) -> FileRotation:
        files = CertificateFiles(self.folder / "tls.crt", self.folder / "tls.key")
        return FileRotation(MountedFiles(files, self.folder / "ca.crt"), shelf, ServingContext(), time)


def trusted(shelf: Shelf) -> set[bytes]:
    """What the configurations trust, all of them the same."""
    (found,) = {authorities(entry) for each in shelf.trust.values() for entry in each}
    return set(found)


async def test_the_authority_of_files_is_published_and_repaired(tmp_path: Path):
    secret, shelf = IssuedSecret(tmp_path).write(), Shelf()
    rotation = secret.replica(shelf, Time())
    await rotation.settle()
    assert trusted(shelf) == {secret.authority.certificate}
    shelf.trust["validating"] = [new_authority(START, timedelta(days=1)).certificate]
    await rotation.settle()
    assert trusted(shelf) == {secret.authority.certificate}


async def test_from_self_managed_to_files_both_authorities_are_trusted_while_replicas_of_both_run(tmp_path: Path):
    secret, shelf, time = IssuedSecret(tmp_path).write(), Shelf(), Time()
    old = replica(shelf, time)
    bundle = await old.settle()
    time.at += timedelta(days=100)
    new = secret.replica(shelf, time)
    await new.settle()
    both = {secret.authority.certificate, bundle.authority.certificate}
    assert trusted(shelf) == both
    await old.settle()
    assert trusted(shelf) == both
    time.at += Policy().retire
    await new.settle()
    assert trusted(shelf) == {secret.authority.certificate}


async def test_from_files_to_self_managed_both_authorities_are_trusted_while_replicas_of_both_run(tmp_path: Path):
    secret, shelf, time = IssuedSecret(tmp_path).write(), Shelf(), Time()
    old = secret.replica(shelf, time)
    await old.settle()
    time.at += timedelta(days=100)
    new = replica(shelf, time)
    bundle = await new.settle()
    both = {secret.authority.certificate, bundle.authority.certificate}
    await old.settle()
    assert trusted(shelf) == both
    time.at += Policy().retire
    await new.settle()
    assert trusted(shelf) == {bundle.authority.certificate}


async def test_a_replica_of_another_source_is_called_only_after_api_servers_learnt_its_authority(tmp_path: Path):
    shelf, time = Shelf(), Time()
    first = replica(shelf, time)
    await first.settle()
    assert first.trust.obstacle(time.at) is None, "nothing was trusted before, so there is nothing to wait for"
    second = IssuedSecret(tmp_path).write().replica(shelf, time)
    assert second.trust.obstacle(time.at) is not None
    await second.settle()
    assert second.trust.obstacle(time.at) is not None
    assert second.trust.obstacle(time.at + LEARNT_AFTER) is None


async def test_a_pair_of_another_authority_is_served_only_when_that_has_been_published_for_a_while(tmp_path: Path):
    secret, shelf, time = IssuedSecret(tmp_path).write(), Shelf(), Time()
    rotation = secret.replica(shelf, time)
    await rotation.settle()
    old = rotation.serving.loaded
    renewed = secret.reissued()
    await rotation.settle()
    assert trusted(shelf) == {secret.authority.certificate, renewed.authority.certificate}
    assert rotation.serving.loaded == old
    time.at += Policy().settle
    await rotation.settle()
    assert rotation.serving.loaded != old
    await rotation.settle()
    time.at += Policy().retire
    await rotation.settle()
    assert trusted(shelf) == {renewed.authority.certificate}


async def test_files_that_vanish_leave_certificate_and_trust_as_they_are(tmp_path: Path):
    secret, shelf = IssuedSecret(tmp_path).write(), Shelf()
    rotation = secret.replica(shelf, Time())
    await rotation.settle()
    (tmp_path / "ca.crt").write_bytes(b"")
    shelf.trust["mutating"] = [b""]
    await rotation.settle()
    assert trusted(shelf) == {secret.authority.certificate}
    assert rotation.serving.valid(START)

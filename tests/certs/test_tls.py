import asyncio
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Self

import pytest

from certs.bundle import Bundle, Policy, first_bundle
from certs.issue import CertificatePair, new_leaf
from certs.tls import CertificateFiles, ServingContext, UnusableCertificateError

NOW = datetime.now(UTC)
NAMES = ("127.0.0.1", "localhost")


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    return first_bundle(NAMES, NOW, Policy())


def another_leaf(bundle: Bundle) -> CertificatePair:
    return new_leaf(bundle.authority, NAMES, NOW, timedelta(days=1))


class Echo:
    """A TLS server that answers each line with itself, and clients that report which certificate they were given."""

    def __init__(self, serving: ServingContext, bundle: Bundle) -> None:
        self.serving = serving
        self.trust = ssl.create_default_context(cadata=bundle.trusted.decode())

    async def __aenter__(self) -> Self:
        self.server = await asyncio.start_server(self._answer, "127.0.0.1", 0, ssl=self.serving.live)
        self.port = self.server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self.server.close()
        await self.server.wait_closed()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            writer.write(line)
        writer.close()

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port, ssl=self.trust, server_hostname="localhost")

    async def met(self) -> bytes:
        _, writer = await self.connect()
        try:
            return writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        finally:
            writer.close()
            await writer.wait_closed()


def der(pair: CertificatePair) -> bytes:
    return ssl.PEM_cert_to_DER_cert(pair.certificate.decode())


async def test_new_handshakes_get_the_new_certificate_and_open_connections_live_on(bundle: Bundle):
    serving = ServingContext()
    serving.load(bundle.leaf)
    async with Echo(serving, bundle) as echo:
        reader, writer = await echo.connect()
        assert await echo.met() == der(bundle.leaf)
        renewed = another_leaf(bundle)
        assert serving.load(renewed)
        assert await echo.met() == der(renewed)
        writer.write(b"still here\n")
        assert await reader.readline() == b"still here\n"
        writer.close()
        await writer.wait_closed()


async def test_a_key_that_does_not_fit_leaves_what_is_served_untouched(bundle: Bundle):
    serving = ServingContext()
    serving.load(bundle.leaf)
    async with Echo(serving, bundle) as echo:
        with pytest.raises(UnusableCertificateError, match="KEY_VALUES_MISMATCH"):
            serving.load(CertificatePair(another_leaf(bundle).certificate, another_leaf(bundle).key))
        assert await echo.met() == der(bundle.leaf)


@pytest.mark.parametrize(
    "certificate", [b"", b"not PEM", b"-----BEGIN CERTIFICATE-----\nAA\n-----END CERTIFICATE-----\n"]
)
def test_nonsense_is_refused(bundle: Bundle, certificate: bytes):
    with pytest.raises(UnusableCertificateError):
        ServingContext().load(CertificatePair(certificate, bundle.leaf.key))


def test_loading_the_same_pair_again_does_nothing(bundle: Bundle):
    serving = ServingContext()
    assert serving.load(bundle.leaf)
    assert not serving.load(bundle.leaf)


def test_a_context_is_valid_from_its_first_certificate_until_that_ends(bundle: Bundle):
    serving = ServingContext()
    assert not serving.valid(NOW)
    serving.load(bundle.leaf)
    assert serving.valid(NOW)
    assert not serving.valid(NOW + timedelta(days=366))


def test_only_tls_1_2_and_newer_is_spoken():
    assert ServingContext().live.minimum_version is ssl.TLSVersion.TLSv1_2


def open_descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def test_loading_leaves_no_descriptor_open(bundle: Bundle):
    serving = ServingContext()
    before = open_descriptors()
    for _ in range(5):
        serving.load(another_leaf(bundle))
    assert open_descriptors() == before


def test_files_change_their_signature_when_a_mounted_secret_is_swapped(tmp_path: Path, bundle: Bundle):
    for generation, pair in (("one", bundle.leaf), ("two", another_leaf(bundle))):
        (tmp_path / generation).mkdir()
        (tmp_path / generation / "tls.crt").write_bytes(pair.certificate)
        (tmp_path / generation / "tls.key").write_bytes(pair.key)
    link = tmp_path / "..data"
    link.symlink_to("one")
    files = CertificateFiles(link / "tls.crt", link / "tls.key")
    before = files.signature()
    assert files.signature() == before
    swapped = tmp_path / "swapped"
    swapped.symlink_to("two")
    swapped.rename(link)
    assert files.signature() != before

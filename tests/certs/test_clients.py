"""Who may call: with a client CA, only callers that present a certificate of it get past the handshake."""

import asyncio
import ssl
from pathlib import Path

import pytest

from certs.bundle import Bundle, Policy, first_bundle
from certs.files import FileWatch
from certs.tls import AuthorityFile, ServingContext, UnusableCertificateError
from local.pki import Authority
from tests.certs.test_tls import NAMES, NOW, Echo, another_leaf


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    return first_bundle(NAMES, NOW, Policy())


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority.create("callers")


@pytest.fixture
def serving(bundle: Bundle) -> ServingContext:
    made = ServingContext(verify_clients=True)
    made.load(bundle.leaf)
    return made


async def answered(echo: Echo, caller: Authority | None, folder: Path) -> bool:
    """Whether a caller with a certificate of that authority gets an answer."""
    if caller is not None:
        echo.trust.load_cert_chain(*caller.client("api-server").write(folder))
    try:
        reader, writer = await echo.connect()
        writer.write(b"hello\n")
        line = await asyncio.wait_for(reader.readline(), 10)
        writer.close()
    except (ssl.SSLError, ConnectionError):
        return False
    return line == b"hello\n"


async def test_until_a_ca_is_known_no_client_gets_in(serving, bundle, authority, tmp_path):
    async with Echo(serving, bundle) as echo:
        assert not await answered(echo, authority, tmp_path)


async def test_only_a_certificate_of_the_client_ca_gets_in(serving, bundle, authority, tmp_path):
    serving.trust(authority.pem)
    for caller, gets_in in ((None, False), (Authority.create("others"), False), (authority, True)):
        async with Echo(serving, bundle) as echo:
            assert await answered(echo, caller, tmp_path) is gets_in


async def test_a_ca_that_was_replaced_is_trusted_no_longer(serving, bundle, authority, tmp_path):
    after = Authority.create("callers")
    serving.trust(authority.pem)
    async with Echo(serving, bundle) as echo:
        assert await answered(echo, authority, tmp_path)
        serving.trust(after.pem)
        assert not await answered(echo, authority, tmp_path)
        assert await answered(echo, after, tmp_path)


async def test_a_renewed_serving_certificate_is_shown_to_verified_callers_too(serving, bundle, authority, tmp_path):
    serving.trust(authority.pem)
    async with Echo(serving, bundle) as echo:
        echo.trust.load_cert_chain(*authority.client("api-server").write(tmp_path))
        before = await echo.met()
        serving.load(another_leaf(bundle))
        assert await echo.met() != before


def test_nonsense_is_no_ca(serving):
    with pytest.raises(UnusableCertificateError):
        serving.trust(b"nonsense")
    with pytest.raises(UnusableCertificateError):
        serving.trust(b"")


async def test_the_file_is_read_again_when_it_changes_and_kept_when_it_is_broken(
    serving,
    bundle,
    authority,
    tmp_path,
):
    path = tmp_path / "ca.crt"
    watch = FileWatch(AuthorityFile(path), serving)
    watch.look()
    assert not watch.loaded.is_set()
    path.write_bytes(authority.pem)
    watch.look()
    assert watch.loaded.is_set()
    path.write_bytes(b"half")
    watch.look()
    async with Echo(serving, bundle) as echo:
        assert await answered(echo, authority, tmp_path)

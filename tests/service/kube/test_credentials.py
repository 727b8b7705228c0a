"""Where credentials come from, and which are refused."""

import base64
import ssl
import stat
import sys
from pathlib import Path

import pytest
import yaml

from local.pki import Authority
from service.kube import credentials
from service.kube.credentials import KubeconfigRefused


@pytest.fixture
def authority():
    return Authority.create("test CA")


def kubeconfig(path, *, cluster, user):
    config = {
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": user}],
    }
    path.write_text(yaml.safe_dump(config))
    return path


def trusted(authority, **more):
    return {
        "server": "https://127.0.0.1:6443/",
        "certificate-authority-data": base64.b64encode(authority.pem).decode(),
        **more,
    }


async def test_a_kubeconfig_with_a_token(tmp_path, authority):
    path = kubeconfig(tmp_path / "config", cluster=trusted(authority), user={"token": "abc"})
    endpoint, source = await credentials.from_kubeconfig(path)
    assert endpoint.server == "https://127.0.0.1:6443"
    assert source.authorization() == "Bearer abc"


async def test_a_kubeconfig_with_a_plugin_runs_it_again_when_its_token_is_refused(tmp_path, authority):
    plugin = tmp_path / "plugin"
    count = tmp_path / "count"
    count.write_text("")
    plugin.write_text(
        f"#!{sys.executable}\n"
        "import json, pathlib\n"
        f"count = pathlib.Path({str(count)!r})\n"
        "count.write_text(count.read_text() + 'x')\n"
        "print(json.dumps({'apiVersion': 'client.authentication.k8s.io/v1', 'kind': 'ExecCredential',\n"
        "                  'status': {'token': 'token' + str(len(count.read_text()))}}))\n"
    )
    plugin.chmod(plugin.stat().st_mode | stat.S_IXUSR)
    user = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": str(plugin)}}
    path = kubeconfig(tmp_path / "config", cluster=trusted(authority), user=user)
    _, source = await credentials.from_kubeconfig(path)
    assert source.authorization() == "Bearer token1"
    assert await source.refresh()
    assert source.authorization() == "Bearer token2"


@pytest.mark.parametrize("broken", ["", "users: [", "users: []\n"])
async def test_a_kubeconfig_that_cannot_be_read_again_has_nothing_newer(tmp_path, authority, broken):
    path = kubeconfig(tmp_path / "config", cluster=trusted(authority), user={"token": "abc"})
    _, source = await credentials.from_kubeconfig(path)
    path.write_text(broken)
    assert not await source.refresh()
    path.unlink()
    assert not await source.refresh()
    assert source.authorization() == "Bearer abc"


async def test_nor_has_one_whose_plugin_fails(tmp_path, authority):
    path = kubeconfig(tmp_path / "config", cluster=trusted(authority), user={"token": "abc"})
    _, source = await credentials.from_kubeconfig(path)
    user = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": str(tmp_path / "missing")}}
    kubeconfig(path, cluster=trusted(authority), user=user)
    assert not await source.refresh()
    user["exec"]["command"] = "false"
    kubeconfig(path, cluster=trusted(authority), user=user)
    assert not await source.refresh()


async def test_a_kubeconfig_that_skips_verification_is_refused(tmp_path):
    cluster = {"server": "https://127.0.0.1:6443", "insecure-skip-tls-verify": True}
    path = kubeconfig(tmp_path / "config", cluster=cluster, user={"token": "abc"})
    with pytest.raises(KubeconfigRefused, match="insecure-skip-tls-verify"):
        await credentials.from_kubeconfig(path)


@pytest.mark.parametrize("server", ["http://127.0.0.1:8080", "127.0.0.1", "https://", "https://me@host", "file:///x"])
async def test_a_server_without_tls_is_refused(server):
    with pytest.raises(KubeconfigRefused, match="https"):
        credentials.inline(server)


@pytest.mark.parametrize("server", ["host:66443", "host:x", "[::1", "a..b", "a\\b", "\u2100.com", f"{'a' * 64}.com"])
def test_an_address_that_cannot_be_connected_to_is_refused(server):
    with pytest.raises(KubeconfigRefused, match="https"):
        credentials.inline(f"https://{server}")


@pytest.mark.parametrize("name", [".", "a..b", "a" * 64])
def test_a_name_that_no_server_can_have_is_refused(name):
    with pytest.raises(KubeconfigRefused, match="tls-server-name"):
        credentials.inline("https://127.0.0.1", server_name=name)


@pytest.mark.parametrize("server", ["127.0.0.1", "[::1]:6443", "a-b.example:6443/k8s/clusters/c-1", "k0s_server:6443"])
def test_other_addresses_are_taken_as_they_are(server):
    assert credentials.inline(f"https://{server}/").server == f"https://{server}"


async def test_a_missing_file_is_said_to_be_missing(tmp_path):
    with pytest.raises(KubeconfigRefused, match="no such kubeconfig file"):
        await credentials.from_kubeconfig(tmp_path / "nothing")


def several(tmp_path, authority):
    """As $KUBECONFIG lists them; the first that names a context names the current one."""
    for name, context in (("none", ""), ("first", "first"), ("second", "second")):
        config = {
            "current-context": context,
            "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
            "clusters": [{"name": name, "cluster": trusted(authority, server=f"https://{name}.example")}],
            "users": [{"name": name, "user": {"token": name}}],
        }
        (tmp_path / name).write_text(yaml.safe_dump(config))
    return Path(":".join(str(tmp_path / name) for name in ("none", "missing", "first", "second")))


@pytest.mark.parametrize(("asked", "found"), [(None, "first"), ("second", "second")])
async def test_several_kubeconfigs_are_one_as_they_are_for_kubectl(tmp_path, authority, asked, found):
    endpoint, source = await credentials.from_kubeconfig(several(tmp_path, authority), asked)
    assert (endpoint.server, source.authorization()) == (f"https://{found}.example", f"Bearer {found}")


async def test_an_unknown_context_is_named(tmp_path, authority):
    path = kubeconfig(tmp_path / "config", cluster=trusted(authority), user={"token": "abc"})
    with pytest.raises(KubeconfigRefused, match="elsewhere"):
        await credentials.from_kubeconfig(path, "elsewhere")


def test_a_pod_uses_its_service_account(tmp_path, authority, monkeypatch):
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    (tmp_path / "ca.crt").write_bytes(authority.pem)
    (tmp_path / "token").write_text("pod-token")
    endpoint, source = credentials.from_pod(tmp_path)
    assert endpoint.server == "https://10.0.0.1:443"
    assert source.authorization() == "Bearer pod-token"


def test_outside_a_pod_that_is_said(tmp_path, monkeypatch):
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(KubeconfigRefused, match="not a pod with a service account"):
        credentials.from_pod(tmp_path)


def test_the_server_is_always_verified_and_tls_at_least_1_2(authority):
    tls = credentials.inline("https://127.0.0.1:1", ca=authority.pem).tls
    assert tls.verify_mode is ssl.CERT_REQUIRED
    assert tls.check_hostname
    assert tls.minimum_version is ssl.TLSVersion.TLSv1_2


def test_a_client_certificate_is_loaded_from_memory(authority):
    pair = authority.serving("client")
    endpoint = credentials.inline("https://127.0.0.1:1", ca=authority.pem, cert=pair.certificate, key=pair.key)
    assert endpoint.tls.get_ca_certs()


@pytest.mark.parametrize("ca", [b"no certificate", b"\xff\xfe", b"-----BEGIN CERTIFICATE-----\nxx\n"])
def test_a_ca_that_is_none_is_refused(ca):
    with pytest.raises(KubeconfigRefused, match="CA certificate"):
        credentials.inline("https://127.0.0.1:1", ca=ca)


def test_a_key_that_does_not_fit_its_certificate_is_refused(authority):
    one, other = authority.serving("one"), authority.serving("other")
    with pytest.raises(KubeconfigRefused, match="not a valid pair"):
        credentials.inline("https://127.0.0.1:1", ca=authority.pem, cert=one.certificate, key=other.key)


def test_a_proxy_is_taken_from_the_environment_unless_the_server_is_exempt(monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")
    monkeypatch.setenv("NO_PROXY", "10.0.0.1")
    assert credentials.environment_proxy("https://192.0.2.1:6443") == "http://proxy:3128"
    assert credentials.environment_proxy("https://10.0.0.1:443") is None

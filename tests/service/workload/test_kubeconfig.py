"""The kubeconfig Secret of a workload cluster: inline data or nothing."""

import base64

import pytest
import yaml

from local.pki import Authority
from service.kube.credentials import KubeconfigRefused
from service.workload.kubeconfig import LARGEST, read_kubeconfig, read_secret

CA = Authority.create("test CA")
TOKEN = "the-token-of-a-user"
"""No certificate has this in its base64."""


def encoded(data):
    return base64.b64encode(data).decode()


def config(*, cluster=None, user=None, **more):
    return yaml.safe_dump(
        {
            "current-context": "here",
            "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [
                {
                    "name": "c",
                    "cluster": {"server": "https://127.0.0.1:1", "certificate-authority-data": encoded(CA.pem)}
                    | (cluster or {}),
                }
            ],
            "users": [{"name": "u", "user": {"token": TOKEN} if user is None else user}],
            **more,
        }
    ).encode()


def secret(value=None, **changes):
    return {
        "type": "cluster.x-k8s.io/secret",
        "metadata": {"name": "prod-kubeconfig", "labels": {"cluster.x-k8s.io/cluster-name": "prod"}},
        "data": {"value": encoded(config() if value is None else value)},
    } | changes


def test_a_token_and_a_ca_are_read():
    access = read_secret(secret(), "prod")
    assert (access.server, access.token, access.ca) == ("https://127.0.0.1:1", TOKEN, CA.pem)


def test_a_client_certificate_is_read():
    pair = CA.serving("client")
    user = {"client-certificate-data": encoded(pair.certificate), "client-key-data": encoded(pair.key)}
    access = read_kubeconfig(config(user=user))
    assert access.endpoint().server == "https://127.0.0.1:1"
    assert (access.cert, access.key) == (pair.certificate, pair.key)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"type": "Opaque"}, "type"),
        ({"metadata": {"name": "prod-kubeconfig"}}, "label"),
        ({"metadata": {"labels": {"cluster.x-k8s.io/cluster-name": "other"}}}, "label"),
        ({"data": None}, "no key 'value'"),
        ({"data": {"value": "!!"}}, "base64"),
        ({"data": {"value": encoded(b"x" * (LARGEST + 9))}}, "larger"),
    ],
)
def test_a_secret_that_is_not_the_clusters_is_refused(changes, complaint):
    with pytest.raises(KubeconfigRefused, match=complaint):
        read_secret(secret(**changes), "prod")


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        (config(user={"exec": {"command": "sh"}}), "exec"),
        (config(user={"auth-provider": {"name": "gcp"}}), "auth-provider"),
        (config(user={"tokenFile": "/etc/passwd"}), "tokenFile"),
        (config(user={"client-certificate": "/a", "client-key": "/b"}), "client-certificate"),
        (config(user={"token": TOKEN, "as": "admin"}), "uses as"),
        (config(user={"username": "a", "password": "b"}), "password"),
        (config(user={}), "neither a token"),
        (config(user={"client-certificate-data": encoded(b"x")}), "must be given together"),
        (config(user={"token": "a\nb"}), "one line"),
        (config(cluster={"certificate-authority": "/etc/ssl"}), "certificate-authority"),
        (config(cluster={"insecure-skip-tls-verify": True}), "insecure-skip-tls-verify"),
        (config(cluster={"proxy-url": "http://x"}), "proxy-url"),
        (config(cluster={"server": "http://127.0.0.1"}), "https"),
        (config(cluster={"server": ["https://x"]}), "one line"),
        (config(**{"current-context": "elsewhere"}), "contexts"),
        (config(clusters="c"), "clusters"),
        (config(users=[None, 7]), "users"),
        (b"[" * 50_000, "YAML"),
        (b"a: [b", "YAML"),
        (b"!!python/object/apply:os.system ['true']", "YAML"),
        (b'a: !!int ""', "YAML"),
        (b"a: !!bool hunter2", "YAML"),
        (b"a: !!timestamp x", "YAML"),
        (b"just text", "mapping"),
        (b"\x00\x01", "YAML"),
    ],
)
def test_what_would_run_read_or_trust_more_than_it_should_is_refused(value, complaint):
    with pytest.raises(KubeconfigRefused, match=complaint):
        read_kubeconfig(value)


def test_a_few_lines_cannot_keep_us_busy_for_hours():
    levels = (f"l{n}: &l{n} {{<<: [*l{n - 1}, *l{n - 1}]}}" for n in range(1, 50))
    with pytest.raises(KubeconfigRefused, match="aliases"):
        read_kubeconfig("\n".join(["l0: &l0 {x: 1}", *levels]).encode())


def test_verification_that_is_explicitly_on_is_fine():
    assert read_kubeconfig(config(cluster={"insecure-skip-tls-verify": False})).token == TOKEN


def test_no_refusal_quotes_the_secret():
    with pytest.raises(KubeconfigRefused) as caught:
        read_kubeconfig(b"hunter2: [")
    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_an_access_does_not_show_its_secrets():
    assert TOKEN not in repr(read_secret(secret(), "prod"))


def test_a_rotated_token_alone_keeps_the_connections():
    before = read_kubeconfig(config())
    assert read_kubeconfig(config(user={"token": "new"})).only_token_differs(before)
    assert not read_kubeconfig(config(cluster={"server": "https://127.0.0.1:2"})).only_token_differs(before)

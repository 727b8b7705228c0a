"""The chart's larger choices on a real node: each is installed, checked by `helm test`, and removed again."""

import base64
from collections.abc import Iterator

import pytest

from local.pki import Authority
from tests.charts.helm import NAMESPACE
from tests.charts.kinds import CERTIFICATES, ISSUERS, open_definition
from tests.cluster.site import Raw, Refused, Site, installed, is_ready
from tests.e2e.manifests import machine

CLOSED: Raw = {"cron": "0 0 29 2 *"}
WRONG = machine("wrong", schedule={"hoursOfDay": ["25"]})


@pytest.fixture(autouse=True)
def nothing_left(site: Site) -> Iterator[None]:
    yield
    site.kubectl("delete", "namespace", NAMESPACE, "--ignore-not-found", patience=120)


def checked(site: Site) -> None:
    """What holds for all of them."""
    assert all(map(is_ready, site.pods()))
    assert "all is well" in site.release("test", "--logs", "--timeout=120s")


def test_two_shards(site: Site):
    with installed(site, {"shards": 2}):
        checked(site)
        assert len(site.all("leases", f"-n={NAMESPACE}", "-l=5spot.finos.org/lease")) >= 2


def test_only_some_namespaces(site: Site):
    site.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    with installed(site, {"watchNamespaces": ["team"]}):
        checked(site)
        with pytest.raises(Refused, match="hoursOfDay"):
            site.apply(WRONG, namespace="team")
        site.apply(machine("elsewhere", schedule=CLOSED), namespace="default")
        assert "finalizers" not in site.get("scheduledmachine", "elsewhere")["metadata"]
        site.kubectl("delete", "scheduledmachine", "elsewhere")


def test_policies_instead_of_webhooks(site: Site):
    with installed(site, {"webhooks": {"enabled": False}}):
        checked(site)
        with pytest.raises(Refused, match="hoursOfDay"):
            site.apply(WRONG)


def test_a_namespace_that_enforces_restricted_pods(site: Site):
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    site.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": labels}})
    with installed(site):
        checked(site)


def test_certificates_from_files(site: Site):
    """As of cert-manager, which cannot be built here: the test makes the Secret and fills in the CA in its place."""
    for kind in (CERTIFICATES, ISSUERS):
        site.apply(open_definition(kind))
    site.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    authority = Authority.create("issuer")
    site.apply(secret_of(authority), namespace=NAMESPACE)
    with installed(site, {"webhooks": {"certificates": "cert-manager"}}):
        trust(site, authority)
        checked(site)
        with pytest.raises(Refused, match="hoursOfDay"):
            site.apply(WRONG)


def secret_of(authority: Authority) -> Raw:
    """What cert-manager would make of the chart's Certificate."""
    pair = authority.serving("webhook", names=webhook_names())
    data = {"tls.crt": pair.certificate, "tls.key": pair.key, "ca.crt": authority.pem}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "5spot-webhook-certificates"},
        "type": "kubernetes.io/tls",
        "data": {name: base64.b64encode(value).decode() for name, value in data.items()},
    }


def webhook_names() -> tuple[str, ...]:
    service = f"fivespot-webhook.{NAMESPACE}.svc"
    return (service, f"{service}.cluster.local")


def trust(site: Site, authority: Authority) -> None:
    """What cert-manager's injector does."""
    bundle = base64.b64encode(authority.pem).decode()
    patch = f'[{{"op":"add","path":"/webhooks/0/clientConfig/caBundle","value":"{bundle}"}}]'
    for kind in ("mutating", "validating"):
        site.kubectl("patch", f"{kind}webhookconfiguration", f"5spot-{kind}", "--type=json", f"-p={patch}")

"""Upgrades and rollbacks while a user applies without a pause: not one request may be refused."""

from local.pki import Authority
from tests.charts.helm import NAMESPACE
from tests.charts.kinds import CERTIFICATES, ISSUERS, open_definition
from tests.cluster.applies import Applies, applying
from tests.cluster.certificates import authorities_of, secret_of
from tests.cluster.site import Raw, Site, eventually

CERT_MANAGER: Raw = {"webhooks": {"certificates": "cert-manager"}}


def test_an_upgrade_to_two_shards_and_its_rollback(release: Site):
    before = names(release.pods())
    with applying(release) as applies:
        release.install({"shards": 2})
        between = names(successors(release, before))
        eventually(lambda: leases(release) >= {"5spot-shard-0-of-2", "5spot-shard-1-of-2"})
        release.rollback()
        successors(release, between)
    assert_undisturbed(applies)


def test_an_upgrade_to_certificates_of_cert_manager_and_its_rollback(release: Site):
    """cert-manager cannot be built here: the test makes the Secret in its place, before its Certificate is there."""
    for kind in (CERTIFICATES, ISSUERS):
        release.apply(open_definition(kind))
    issuer = Authority.create("issuer")
    with applying(release) as applies:
        release.apply(secret_of(issuer), namespace=NAMESPACE)
        own = authorities_of(release)
        release.install(CERT_MANAGER)
        assert authorities_of(release) == own | {issuer.pem}
        release.checked()
        release.rollback()
        assert authorities_of(release) == own | {issuer.pem}
        release.settled()  # replaced pods answer until API servers know of others
    assert_undisturbed(applies)


def assert_undisturbed(applies: Applies) -> None:
    assert applies.refused == []
    assert applies.done > 20


def successors(site: Site, replaced: set[str]) -> list[Raw]:
    """The pods as soon as these are gone or going: Helm waits only until there are enough new ones."""
    return eventually(lambda: [] if names(site.pods()) & replaced else site.pods())


def names(pods: list[Raw]) -> set[str]:
    return {pod["metadata"]["name"] for pod in pods}


def leases(site: Site) -> set[str]:
    return names(site.all("leases", f"-n={NAMESPACE}", "-l=5spot.finos.org/lease"))

"""What a platform that several teams share would choose: restricted pods, two shards, and rules for tenants."""

from collections.abc import Iterator

import pytest

from tests.charts.helm import NAMESPACE
from tests.cluster.making import Making
from tests.cluster.site import Raw, Refused, Site, eventually, installed
from tests.e2e.manifests import machine, says

TENANT = "tenant"
ADDRESS = "192.0.2.7"
NODE = "host-192-0-2-7"
ENFORCED = "pod-security.kubernetes.io/enforce"


@pytest.fixture(scope="module")
def platform(site: Site, release_in_the_making: Making | None) -> Iterator[Site]:
    """The release for `test_release.py` is made beside these tests."""
    site.apply(namespace(NAMESPACE, {ENFORCED: "restricted"}))
    site.apply(namespace(TENANT, {"5spot.finos.org/tenancy": "restricted"}))
    site.add_cluster("demo", namespace=TENANT)
    with installed(site, {"shards": 2, "tenancy": {"enabled": True}}):
        yield site
    site.apply(namespace(NAMESPACE, {ENFORCED: "privileged"}))


def test_the_pods_may_run_where_only_restricted_ones_may(platform: Site):
    platform.checked()


def test_each_of_two_pods_holds_one_of_two_shards(platform: Site):
    eventually(lambda: len(holders(platform)) == 2)


def test_a_tenant_may_not_name_a_host_of_others_nor_a_field_that_is_not_allowed(platform: Site):
    with pytest.raises(Refused, match=r"an address must be an IP address.*192"):
        platform.apply(tenants_machine(address="198.51.100.1"), namespace=TENANT)
    with pytest.raises(Refused, match="provisionJob"):
        platform.apply(tenants_machine(address=ADDRESS, provisionJob={}), namespace=TENANT)


def test_a_tenant_gets_a_host_that_the_rules_allow(platform: Site):
    platform.apply(tenants_machine(address=ADDRESS), namespace=TENANT)
    eventually(lambda: says(platform.status("desk", TENANT), "Ready", "True"))
    assert platform.status("desk", TENANT)["nodeRef"]["name"] == NODE
    platform.kubectl("delete", "scheduledmachine", "desk", f"-n={TENANT}")
    assert platform.get("node", NODE, workload=True) == {}


def tenants_machine(**infrastructure: Raw | str) -> Raw:
    return machine("desk", infrastructure=infrastructure, schedule={"daysOfWeek": ["mon-sun"]})


def namespace(name: str, labels: dict[str, str]) -> Raw:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def holders(site: Site) -> set[str]:
    """Who holds a shard."""
    leases = [site.get("lease", f"5spot-shard-{number}-of-2", f"-n={NAMESPACE}") for number in range(2)]
    return {str(lease.get("spec", {}).get("holderIdentity") or "") for lease in leases} - {""}

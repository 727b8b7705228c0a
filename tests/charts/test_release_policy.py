"""Only an operator may announce a release: the chart's policy on a real API server."""

import json
import subprocess

import pytest

from local.binaries import Assets
from local.cluster import LocalCluster
from service.kube.client import Client
from service.kube.credentials import Token
from service.kube.errors import Denied, Forbidden
from service.kube.resource import LEASES, NAMESPACES
from service.sharding.releases import LEASE_NAME
from tests import accounts
from tests.charts.helm import Helm, of_kind
from tests.waiting import until

TENANT, RELEASE = "release-tenant", "release-policy"


@pytest.fixture
def operator(small_cluster: LocalCluster, helm: Helm, assets: Assets):
    """The chart's account and policy; the policy goes with the test."""
    values = {"fullnameOverride": RELEASE, "watchNamespaces": [TENANT]}
    kubectl(assets, small_cluster, "apply", {**NAMESPACES.envelope(), "metadata": {"name": TENANT}})
    account = accounts.install(helm, small_cluster, assets.kubectl, values, RELEASE)
    rendered = list(account.rendered)
    policies = of_kind(rendered, "ValidatingAdmissionPolicy") + of_kind(rendered, "ValidatingAdmissionPolicyBinding")
    assert [each["metadata"]["name"] for each in policies] == ["release-policy-release"] * 2
    grant = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": "leases", "namespace": TENANT},
        "rules": [{"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["*"]}],
    }
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "leases", "namespace": TENANT},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "leases"},
        "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": TENANT}],
    }
    for document in (grant, binding, *policies):
        kubectl(assets, small_cluster, "apply", document)
    yield account
    for document in policies:
        kubectl(assets, small_cluster, "delete", document)


def kubectl(assets, cluster, verb, document):
    argv = [str(assets.kubectl), f"--kubeconfig={cluster.kubeconfig}", verb, "-f", "-"]
    subprocess.run(argv, input=json.dumps(document), text=True, capture_output=True, check=True)


def lease(name):
    return {**LEASES.envelope(), "metadata": {"name": name}, "spec": {"holderIdentity": "me"}}


async def refused(client):
    try:
        await client.create(LEASES, lease(LEASE_NAME), namespace=TENANT, dry_run=True)
    except Denied as error:
        return "only an operator may announce" in error.message
    return False


async def test_who_may_edit_leases_cannot_pretend_to_be_a_release(small_cluster, operator):
    token = await accounts._token(small_cluster, TENANT, "default")
    async with (
        Client(small_cluster.client().transport.endpoint, Token(token)) as tenant,
        Client(small_cluster.client().transport.endpoint, Token(operator.token)) as release,
    ):
        await until(lambda: refused(tenant), within=60)
        await tenant.create(LEASES, lease("another"), namespace=TENANT)
        await release.create(LEASES, lease(LEASE_NAME), namespace=RELEASE)
        await release.patch(LEASES, LEASE_NAME, {"spec": {"holderIdentity": "you"}}, namespace=RELEASE)
        assert len(await release.list(LEASES, fields=f"metadata.name={LEASE_NAME}")) >= 1
        with pytest.raises(Forbidden):
            await release.list(LEASES)

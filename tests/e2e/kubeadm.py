"""Machines that Cluster API's kubeadm bootstrap provider prepares, and Clusters that they can join."""

from typing import Any

from local.cluster import LocalCluster
from local.provider.kinds import CLUSTERS
from service.kube.client import Client
from service.kube.resource import SECRETS, Resource
from tests.e2e.manifests import machine

Raw = dict[str, Any]
GROUP = "bootstrap.cluster.x-k8s.io"
VERSION = "v1.34.2"


def kubeadm_configs(version: str) -> Resource:
    """The kind in one of its versions, v1beta1 or v1beta2."""
    return Resource(GROUP, version, "kubeadmconfigs", "KubeadmConfig")


def kubeadm_machine(api: str = "v1beta2", *, config: Raw | None = None, **spec: Any) -> Raw:
    """Office hours for a machine that kubeadm joins; `config` is the spec of its KubeadmConfig in version `api`."""
    bootstrap = {"apiVersion": f"{GROUP}/{api}", "kind": "KubeadmConfig", "spec": config or {}}
    return machine(bootstrapSpec=bootstrap, **{"machineTemplate": {"version": VERSION}, **spec})


async def joinable(client: Client, namespace: str, workload: LocalCluster, name: str = "demo") -> None:
    """Gives a Cluster what its control plane's provider would: an endpoint, and the authority behind it in a Secret."""
    host, _, port = workload.url.removeprefix("https://").partition(":")
    endpoint = {"spec": {"controlPlaneEndpoint": {"host": host, "port": int(port)}}}
    await client.patch(CLUSTERS, name, endpoint, namespace=namespace, field_manager="tests")
    secret = {
        **SECRETS.envelope(),
        "metadata": {"name": f"{name}-ca", "labels": {"cluster.x-k8s.io/cluster-name": name}},
        "type": "cluster.x-k8s.io/secret",
        # The provider wants a key too, but signs nothing for workers.
        "stringData": {"tls.crt": workload.authority.pem.decode(), "tls.key": "not for workers"},
    }
    await client.create(SECRETS, secret, namespace=namespace, field_manager="tests")

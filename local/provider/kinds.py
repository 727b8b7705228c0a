"""The kinds that the simulated provider serves, and their CRDs: open schemas that take whatever a user writes."""

from typing import Any

from service.kube.resource import Resource

CONTRACT = "v1beta1"
# Cluster API finds out by this label which versions of a kind follow which contract.
CONTRACT_LABEL = f"cluster.x-k8s.io/{CONTRACT}"

BOOTSTRAPS = Resource("bootstrap.cluster.x-k8s.io", "v1beta1", "k0sworkerconfigs", "K0sWorkerConfig")
HOSTS = Resource("infrastructure.cluster.x-k8s.io", "v1beta1", "remotemachines", "RemoteMachine")
CONTROL_PLANES = Resource("controlplane.cluster.x-k8s.io", "v1beta1", "simulatedcontrolplanes", "SimulatedControlPlane")
MACHINES = Resource("cluster.x-k8s.io", "v1beta2", "machines", "Machine")
CLUSTERS = Resource("cluster.x-k8s.io", "v1beta2", "clusters", "Cluster")

SERVED = (BOOTSTRAPS, HOSTS, CONTROL_PLANES)
_OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def definitions() -> list[dict[str, Any]]:
    """The CRDs of all kinds served."""
    return [definition(resource) for resource in SERVED]


def definition(resource: Resource) -> dict[str, Any]:
    """The CRD of one kind, in any group."""
    names = {
        "kind": resource.kind,
        "plural": resource.plural,
        "singular": resource.kind.lower(),
        "listKind": f"{resource.kind}List",
        "categories": ["cluster-api"],
    }
    version = {
        "name": resource.version,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": _OPEN, "status": _OPEN}}},
        "additionalPrinterColumns": _columns(),
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": resource.label, "labels": {CONTRACT_LABEL: resource.version}},
        "spec": {"group": resource.group, "scope": "Namespaced", "names": names, "versions": [version]},
    }


def _columns() -> list[dict[str, str]]:
    return [
        {"name": "Ready", "type": "boolean", "jsonPath": ".status.ready"},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ]

"""SimulatedControlPlane: gives a Cluster a workload cluster that runs already, and publishes its kubeconfig."""

from contextlib import suppress

from crds.names import KUBECONFIG_SECRET_KEY, KUBECONFIG_SECRET_SUFFIX, KUBECONFIG_SECRET_TYPE, LABEL_CLUSTER_NAME
from local.provider.kinds import CONTROL_PLANES
from local.provider.view import FIELD_MANAGER, Management
from local.provider.workloads import ProviderWorkloads
from service.kube.decode import Object
from service.kube.errors import AlreadyExists
from service.kube.resource import SECRETS

# Externally managed: without it Cluster API neither drains nor deletes Nodes of a Cluster that has no
# control-plane Machines.
INITIALIZED = {"initialized": True, "ready": True, "externalManagedControlPlane": True}


async def reconcile(management: Management, workloads: ProviderWorkloads, control_plane: Object) -> float:
    """Publishes the kubeconfig once: a Secret that is changed or deleted later stays so, as tests want."""
    if control_plane["metadata"].get("deletionTimestamp") or control_plane.get("status", {}).get("initialized"):
        return 0
    await _publish(management, workloads, control_plane)
    await management.report(CONTROL_PLANES, control_plane, INITIALIZED)
    return 0


async def _publish(management: Management, workloads: ProviderWorkloads, control_plane: Object) -> None:
    meta = control_plane["metadata"]
    owner = {"name": meta["name"], "uid": meta["uid"], "controller": True, **CONTROL_PLANES.envelope()}
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": f"{meta['name']}{KUBECONFIG_SECRET_SUFFIX}",
            "labels": {LABEL_CLUSTER_NAME: meta["name"]},
            "ownerReferences": [owner],
        },
        "type": KUBECONFIG_SECRET_TYPE,
        "stringData": {KUBECONFIG_SECRET_KEY: workloads.kubeconfig(control_plane)},
    }
    with suppress(AlreadyExists):  # made before a restart of ours, or given by hand
        await management.client.create(SECRETS, secret, namespace=meta["namespace"], field_manager=FIELD_MANAGER)

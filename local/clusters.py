"""Adds Cluster API Clusters that stand for a workload cluster, in any namespace."""

import asyncio

from local.crds import FIELD_MANAGER, LOOK_EVERY
from local.errors import LocalError
from local.provider.kinds import CLUSTERS, CONTROL_PLANES
from local.provider.workloads import DEFAULT
from service.kube.client import Client
from service.kube.decode import Object

PATIENCE = 60.0


async def add(client: Client, namespace: str, name: str = "demo", *, workload: str = DEFAULT) -> None:
    """Creates Cluster and control plane; returns when the Cluster's control plane is initialised.

    The simulated provider has then published Secret `<name>-kubeconfig` next to it.
    """
    control_plane = {**CONTROL_PLANES.envelope(), "metadata": {"name": name}, "spec": {"workload": workload}}
    reference = {"apiGroup": CONTROL_PLANES.group, "kind": CONTROL_PLANES.kind, "name": name}
    cluster = {**CLUSTERS.envelope(), "metadata": {"name": name}, "spec": {"controlPlaneRef": reference}}
    await client.create(CONTROL_PLANES, control_plane, namespace=namespace, field_manager=FIELD_MANAGER)
    stored = await client.create(CLUSTERS, cluster, namespace=namespace, field_manager=FIELD_MANAGER)
    try:
        async with asyncio.timeout(PATIENCE):
            await _initialised(client, stored)
    except TimeoutError as error:
        raise LocalError(
            f"Cluster API did not initialise Cluster {namespace}/{name} within {PATIENCE:.0f} s; "
            "the logs of the provider and of Cluster API say why"
        ) from error


async def _initialised(client: Client, cluster: Object) -> None:
    meta = cluster["metadata"]
    while not cluster.get("status", {}).get("initialization", {}).get("controlPlaneInitialized"):
        await asyncio.sleep(LOOK_EVERY)
        cluster = await client.get(CLUSTERS, meta["name"], namespace=meta["namespace"])

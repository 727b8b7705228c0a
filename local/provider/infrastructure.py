"""RemoteMachine: a host that joins the workload cluster as a Node, and leaves it again."""

from contextlib import suppress

from crds.names import LABEL_CLUSTER_NAME
from local.provider.hosts import ANNOTATION_HOST_OF, Host
from local.provider.kinds import BOOTSTRAPS, CONTROL_PLANES, HOSTS
from local.provider.simulate import SimulatedFailure, Simulation
from local.provider.view import FIELD_MANAGER, Management
from local.provider.workloads import ProviderWorkloads
from service.kube.client import Client
from service.kube.decode import Object
from service.kube.errors import AlreadyExists, Conflict, NotFound
from service.kube.resource import NODES
from service.runtime.key import Key

FINALIZER = "remotemachine.infrastructure.cluster.x-k8s.io"


async def reconcile(management: Management, workloads: ProviderWorkloads, remote: Object) -> float:
    """Starts or stops the host; returns the seconds until the next pass is due, 0 for none."""
    if management.paused(remote):
        return 0
    if remote["metadata"].get("deletionTimestamp"):
        await _take_down(management, workloads, remote)
        return 0
    machine = management.machine_of(remote)
    if machine is None or not machine["spec"]["bootstrap"].get("dataSecretName") or _is_up(remote):
        return 0
    return await _bring_up(management, workloads, remote, machine)


async def _bring_up(management: Management, workloads: ProviderWorkloads, remote: Object, machine: Object) -> float:
    simulation, host = Simulation.of(remote), Host.of(remote)
    if left := management.seconds_left(remote, simulation):
        return left
    if failed_status := management.failed_status(simulation):
        await management.report(HOSTS, remote, failed_status)
        return 0
    await _claim(management, remote, host)
    if not _stays_away(management, remote, machine):
        await _join(await _workload_of(management, workloads, remote), host, simulation)
    await management.report(HOSTS, remote, {"ready": True, "addresses": host.addresses, "conditions": []})
    return 0


def _stays_away(management: Management, remote: Object, machine: Object) -> bool:
    """Whether the host, or the configuration that it was given, never lets its Node join."""
    config = Key(remote["metadata"]["namespace"], machine["spec"]["bootstrap"].get("configRef", {}).get("name", ""))
    asked = (remote, management.look(BOOTSTRAPS, config) or {})
    return any(Simulation.of(each).failure is SimulatedFailure.NODE_NEVER_JOINS for each in asked)


async def _claim(management: Management, remote: Object, host: Host) -> None:
    """Before the host does anything: what would take it down again must be stored."""
    finalizers = remote["metadata"].get("finalizers") or []
    if FINALIZER in finalizers and remote.get("spec", {}).get("providerID") == host.provider_id:
        return
    meta = {"finalizers": [*finalizers, FINALIZER], "resourceVersion": remote["metadata"]["resourceVersion"]}
    await management.patch(HOSTS, remote, {"metadata": meta, "spec": {"providerID": host.provider_id}})


async def _join(workload: Client, host: Host, simulation: Simulation) -> None:
    with suppress(AlreadyExists):  # the same host: it was up before
        await workload.create(NODES, host.node(simulation.machine_id), field_manager=FIELD_MANAGER)


async def _take_down(management: Management, workloads: ProviderWorkloads, remote: Object) -> None:
    finalizers = remote["metadata"].get("finalizers") or []
    if FINALIZER not in finalizers:
        return
    await _leave(await _workload_of(management, workloads, remote), Host.of(remote))
    kept = [name for name in finalizers if name != FINALIZER]
    meta = {"finalizers": kept, "resourceVersion": remote["metadata"]["resourceVersion"]}
    await management.patch(HOSTS, remote, {"metadata": meta})


async def _leave(workload: Client, host: Host) -> None:
    try:
        node = await workload.get(NODES, host.name)
        if (node["metadata"].get("annotations") or {}).get(ANNOTATION_HOST_OF) == host.owner:
            await workload.delete(NODES, host.name, uid=node["metadata"]["uid"])
    except (NotFound, Conflict):
        pass  # gone, or another's by now


async def _workload_of(management: Management, workloads: ProviderWorkloads, remote: Object) -> Client:
    """The workload cluster that the RemoteMachine's Cluster stands for."""
    meta = remote["metadata"]
    name = (meta.get("labels") or {}).get(LABEL_CLUSTER_NAME, "")
    return await workloads.client(management.look(CONTROL_PLANES, Key(meta["namespace"], name)))


def _is_up(remote: Object) -> bool:
    return bool(remote.get("status", {}).get("ready"))

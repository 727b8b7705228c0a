"""The writes of an emergency reclaim to the workload cluster, and those that bring the agent to a Node and away."""

import asyncio
import json
from contextlib import suppress
from typing import Any, Final, assert_never

import structlog

from crds import names
from service import metrics
from service.act.writer import Writer
from service.decide.drain import must_leave
from service.decide.plan import ClearReclaimRequest, ForceDrain, InstallAgent, RemoveAgent
from service.decide.reclaim_agent import config_name, is_labelled
from service.decide.world import Node, Pod
from service.kube.client import PatchKind
from service.kube.errors import Conflict, KubeError, NotFound
from service.kube.resource import CONFIG_MAPS, NODES, PODS
from service.objects.subject import Subject
from service.runtime.tasks import all_of

DRAIN_SECONDS: Final = 60.0
"""The Machine goes when this is up, whatever pods are left."""
DELETIONS_AT_ONCE: Final = 16

log = structlog.get_logger(__name__)


async def perform(
    writer: Writer, subject: Subject, action: ForceDrain | ClearReclaimRequest | InstallAgent | RemoveAgent
) -> None:
    """Carries out one of these actions."""
    match action:
        case ForceDrain():
            await _force_drain(writer, subject, action)
        case ClearReclaimRequest(node=node, uid=uid):
            with suppress(NotFound):  # gone, and the request with it
                await _annotate(writer, subject, node, uid, {"annotations": dict.fromkeys(names.RECLAIM_ANNOTATIONS)})
        case InstallAgent():
            await _equip(writer, subject, action)
        case RemoveAgent():
            await _strip(writer, subject, action)
        case _:
            assert_never(action)


async def _force_drain(writer: Writer, subject: Subject, action: ForceDrain) -> None:
    """Best effort: the owner wants his machine back, whatever becomes of the pods."""
    try:
        async with asyncio.timeout(DRAIN_SECONDS):
            pods = await _cordoned(writer, subject, action)
            slots = asyncio.Semaphore(DELETIONS_AT_ONCE)
            failed = await all_of(*(_delete(writer, subject, pod, slots) for pod in pods))
    except TimeoutError:
        log.warning("forced drain gave up", node=action.node, seconds=DRAIN_SECONDS)
    except KubeError as error:
        log.warning("forced drain failed; going on", node=action.node, error=error.message)
    else:
        log.info("forced drain", node=action.node, pods=len(pods), failed=sum(failed))


async def _cordoned(writer: Writer, subject: Subject, action: ForceDrain) -> list[Pod]:
    """Closes the Node to new pods and tells which to delete, if it is still the host that it was."""
    node = await writer.node_now(subject, action.node)
    writer.workload_client(subject)  # raises where no pod can be reached: that is not the same as no pods
    if node is None or node.provider_id != action.provider_id:
        return []
    if not node.unschedulable:
        await _cordon(writer, subject, node)
    return [pod for pod in await writer.pods_of(subject, node.name) if must_leave(pod)]


async def _cordon(writer: Writer, subject: Subject, node: Node) -> None:
    """Or what replaces the deleted pods would be put on the same Node, which is the emptiest then."""
    metadata = {"uid": node.uid, "annotations": {names.ANNOTATION_CORDONED: subject.me.uid}}
    body = {"metadata": metadata, "spec": {"unschedulable": True}}
    try:
        raw = await writer.workload_client(subject).patch(NODES, node.name, body)
    except KubeError as error:
        log.warning("node not cordoned; going on", node=node.name, error=error.message)
    else:
        writer.absorb_node(subject, raw)


async def _delete(writer: Writer, subject: Subject, pod: Pod, slots: asyncio.Semaphore) -> bool:
    """Whether it failed; asks for the client each time, as a cluster that went silent is not waited for twice."""
    async with slots:
        try:
            client = writer.workload_client(subject)
            await client.delete(PODS, pod.name, namespace=pod.namespace, uid=pod.uid, grace_seconds=0)
        except (NotFound, Conflict):
            return False  # gone, or another pod has its name now
        except KubeError as error:
            log.warning("pod not deleted", pod=f"{pod.namespace}/{pod.name}", error=error.message)
            metrics.FORCED_DELETIONS.labels("failed").inc()
            return True
        metrics.FORCED_DELETIONS.labels("accepted").inc()
        return False


async def _equip(writer: Writer, subject: Subject, action: InstallAgent) -> None:
    """The label first: where it is missing, there is nothing of ours to take away."""
    node = await writer.node_now(subject, action.node)
    # Where it is there already, the answer would hold what others wrote last, and be taken for our own doing.
    if node is None or node.uid != action.uid or not is_labelled(node):
        label = {"labels": {names.LABEL_RECLAIM_AGENT: names.RECLAIM_AGENT_ENABLED}}
        await _annotate(writer, subject, action.node, action.uid, label)
    name = config_name(action.node)
    owner = {"apiVersion": "v1", "kind": "Node", "name": action.node, "uid": action.uid}
    body = {
        **CONFIG_MAPS.envelope(),
        # Owned by the Node: should we be away when that goes, the garbage collector sees to it.
        "metadata": {
            "name": name,
            "labels": {names.LABEL_MANAGED_BY: names.MANAGED_BY},
            "ownerReferences": [owner],
        },
        "data": {names.RECLAIM_CONFIG_KEY: json.dumps(action.commands, ensure_ascii=False)},
    }
    client, namespace = writer.workload_client(subject), names.RECLAIM_NAMESPACE
    raw = await client.patch(CONFIG_MAPS, name, body, kind=PatchKind.APPLY, namespace=namespace, force=True)
    writer.absorb_agent_config(subject, raw)


async def _strip(writer: Writer, subject: Subject, action: RemoveAgent) -> None:
    client = writer.workload_client(subject)
    with suppress(NotFound):
        await client.delete(CONFIG_MAPS, config_name(action.node), namespace=names.RECLAIM_NAMESPACE)
    with suppress(NotFound):
        await _annotate(writer, subject, action.node, action.uid, {"labels": {names.LABEL_RECLAIM_AGENT: None}})


async def _annotate(writer: Writer, subject: Subject, node: str, uid: str, metadata: dict[str, Any]) -> None:
    """Changes labels or annotations of a Node, on condition that it is still the same one."""
    raw = await writer.workload_client(subject).patch(NODES, node, {"metadata": {"uid": uid, **metadata}})
    writer.absorb_node(subject, raw)

"""The writes of an emergency reclaim to the workload cluster, and those that install and remove the agent."""

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
"""After this time the Machine is deleted, even if pods are left."""
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
                await _patch_metadata(
                    writer, subject, node, uid, {"annotations": dict.fromkeys(names.RECLAIM_ANNOTATIONS)}
                )
        case InstallAgent():
            await _install_agent(writer, subject, action)
        case RemoveAgent():
            await _remove_agent(writer, subject, action)
        case _:
            assert_never(action)


async def _force_drain(writer: Writer, subject: Subject, action: ForceDrain) -> None:
    """Best effort: the owner needs the host at once, so pods that cannot be deleted do not delay the reclaim."""
    try:
        async with asyncio.timeout(DRAIN_SECONDS):
            pods = await _cordon_and_list(writer, subject, action)
            slots = asyncio.Semaphore(DELETIONS_AT_ONCE)
            failed = await all_of(*(_delete(writer, subject, pod, slots) for pod in pods))
    except TimeoutError:
        log.warning("forced drain timed out", node=action.node, seconds=DRAIN_SECONDS)
    except KubeError as error:
        log.warning("forced drain failed; continuing", node=action.node, error=error.message)
    else:
        log.info("forced drain", node=action.node, pods=len(pods), failed=sum(failed))


async def _cordon_and_list(writer: Writer, subject: Subject, action: ForceDrain) -> list[Pod]:
    """Cordons the Node and returns the pods to delete; none if the Node is another host now."""
    node = await writer.node_now(subject, action.node)
    writer.workload_client(subject)  # raises if the cluster is unreachable: that is not the same as no pods
    if node is None or node.provider_id != action.provider_id:
        return []
    if not node.unschedulable:
        await _cordon(writer, subject, node)
    return [pod for pod in await writer.pods_of(subject, node.name) if must_leave(pod)]


async def _cordon(writer: Writer, subject: Subject, node: Node) -> None:
    """Without it, the scheduler would place the replacements of the deleted pods on the same Node."""
    metadata = {"uid": node.uid, "annotations": {names.ANNOTATION_CORDONED: subject.me.uid}}
    body = {"metadata": metadata, "spec": {"unschedulable": True}}
    try:
        raw = await writer.workload_client(subject).patch(NODES, node.name, body)
    except KubeError as error:
        log.warning("node not cordoned; continuing", node=node.name, error=error.message)
    else:
        writer.absorb_node(subject, raw)


async def _delete(writer: Writer, subject: Subject, pod: Pod, slots: asyncio.Semaphore) -> bool:
    """Deletes a pod; returns whether that failed. Getting the client raises as soon as the cluster is unreachable."""
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


async def _install_agent(writer: Writer, subject: Subject, action: InstallAgent) -> None:
    """Writes the label first: a Node without it needs no removal of the agent."""
    node = await writer.node_now(subject, action.node)
    # If the label exists, the answer to a write would hold changes of others, which would count as our own.
    if node is None or node.uid != action.uid or not is_labelled(node):
        label = {"labels": {names.LABEL_RECLAIM_AGENT: names.RECLAIM_AGENT_ENABLED}}
        await _patch_metadata(writer, subject, action.node, action.uid, label)
    name = config_name(action.node)
    owner = {"apiVersion": "v1", "kind": "Node", "name": action.node, "uid": action.uid}
    body = {
        **CONFIG_MAPS.envelope(),
        # Owned by the Node: the garbage collector deletes it with the Node, even if the controller does not run.
        "metadata": {
            "name": name,
            "labels": {names.LABEL_MANAGED_BY: names.MANAGED_BY},
            "ownerReferences": [owner],
        },
        "data": {names.RECLAIM_CONFIG_KEY: json.dumps(action.commands, ensure_ascii=False)},
    }
    client = writer.workload_client(subject)
    namespace = names.RECLAIM_NAMESPACE
    raw = await client.patch(CONFIG_MAPS, name, body, kind=PatchKind.APPLY, namespace=namespace, force=True)
    writer.absorb_agent_config(subject, raw)


async def _remove_agent(writer: Writer, subject: Subject, action: RemoveAgent) -> None:
    client = writer.workload_client(subject)
    with suppress(NotFound):
        await client.delete(CONFIG_MAPS, config_name(action.node), namespace=names.RECLAIM_NAMESPACE)
    with suppress(NotFound):
        await _patch_metadata(writer, subject, action.node, action.uid, {"labels": {names.LABEL_RECLAIM_AGENT: None}})


async def _patch_metadata(writer: Writer, subject: Subject, node: str, uid: str, metadata: dict[str, Any]) -> None:
    """Changes labels or annotations of a Node, if it still has this uid."""
    raw = await writer.workload_client(subject).patch(NODES, node, {"metadata": {"uid": uid, **metadata}})
    writer.absorb_node(subject, raw)

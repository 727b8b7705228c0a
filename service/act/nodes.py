"""Writes to the Node of a ScheduledMachine: cordon, taints, evictions."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final, assert_never

from crds import names
from service.act.interruption import ChangedMeanwhile
from service.act.writer import Writer
from service.decide import taints
from service.decide.outcome import Blocker
from service.decide.plan import AnnotateClose, ApplyTaints, Cordon, Evict, Uncordon
from service.decide.world import Pod
from service.kube.client import Client, PatchKind
from service.kube.errors import Conflict, KubeError, NotFound
from service.kube.resource import NODES, PODS
from service.objects.subject import Subject
from service.runtime.tasks import all_of

EVICTIONS_AT_ONCE: Final = 8

OnNode = Cordon | Uncordon | ApplyTaints | AnnotateClose | Evict


async def perform(writer: Writer, subject: Subject, action: OnNode, cancelled: Callable[[], bool]) -> list[Blocker]:
    """Carries out one of these actions; returns the pods whose eviction was refused.

    `cancelled` returns whether the plan no longer holds: the shutdown was cancelled, or its time is up.
    """
    client = writer.workload_client(subject)
    match action:
        case Cordon():
            await _write(writer, client, subject, action.node, _cordon(subject.me.uid, action))
        case Uncordon(node=node, uid=uid):
            await _write(writer, client, subject, node, _uncordon(uid))
        case AnnotateClose(node=node, uid=uid, closes_at=closes_at):
            annotations = {names.ANNOTATION_CLOSES_AT: closes_at}
            await _write(writer, client, subject, node, {"metadata": {"uid": uid, "annotations": annotations}})
        case ApplyTaints():
            await _apply_taints(writer, client, subject, action)
        case Evict():
            blockers = await _evict(client, action, cancelled)
            return [_refused(writer, subject, blocker) for blocker in blockers]
        case _:
            assert_never(action)
    return []


def _refused(writer: Writer, subject: Subject, blocker: Blocker) -> Blocker:
    retry_after = blocker.retry_after.total_seconds() if blocker.retry_after else None
    return replace(blocker, retry_after=writer.eviction_refused(subject, blocker.pod, blocker.reason, retry_after))


async def _write(writer: Writer, client: Client, subject: Subject, node: str, body: dict[str, Any], **how: Any) -> None:
    """Patches the Node; after a conflict reads it, as every further write would conflict until its watch catches up."""
    try:
        raw = await client.patch(NODES, node, body, **how)
    except Conflict:
        await _refresh(writer, client, subject, node)
        raise
    except NotFound as gone:
        raise ChangedMeanwhile(gone.message) from gone
    writer.absorb_node(subject, raw)


async def _refresh(writer: Writer, client: Client, subject: Subject, node: str) -> None:
    try:
        writer.absorb_node(subject, await client.get(NODES, node))
    except NotFound as gone:
        raise ChangedMeanwhile(gone.message) from gone


async def _apply_taints(writer: Writer, client: Client, subject: Subject, action: ApplyTaints) -> None:
    """Applies the whole list, which is atomic, on condition that the Node has not changed since it was read."""
    closing = {names.ANNOTATION_CLOSES_AT: action.closes_at} if action.closes_at else {}
    body = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": action.node,
            "uid": action.uid,  # without it, apply would create the Node again if it is gone
            "resourceVersion": action.resource_version,
            "annotations": {names.ANNOTATION_APPLIED_TAINTS: action.note, **closing},
        },
        "spec": {"taints": [taints.to_json(taint) for taint in action.taints]},
    }
    how = {"kind": PatchKind.APPLY, "field_manager": names.TAINT_FIELD_MANAGER, "force": True}
    await _write(writer, client, subject, action.node, body, **how)


def _cordon(by: str, action: Cordon) -> dict[str, Any]:
    annotations: dict[str, str | None] = {names.ANNOTATION_CORDONED: by}
    if action.closed:
        annotations[names.ANNOTATION_CLOSES_AT] = None
    metadata = {"uid": action.uid, "resourceVersion": action.resource_version, "annotations": annotations}
    return {"metadata": metadata, "spec": {"unschedulable": True}}


def _uncordon(uid: str) -> dict[str, Any]:
    return {"metadata": {"uid": uid, "annotations": {names.ANNOTATION_CORDONED: None}}, "spec": {"unschedulable": None}}


async def _evict(client: Client, action: Evict, cancelled: Callable[[], bool]) -> list[Blocker]:
    """Evicts a few pods at a time; the ones that a budget or a fault refuses are evicted again later."""
    slots = asyncio.Semaphore(EVICTIONS_AT_ONCE)
    unanswered: list[KubeError] = []

    async def one(pod: Pod) -> Blocker | None:
        async with slots:
            # An API server that does not answer would cost every further pod a time-out, and the drain its deadline.
            if unanswered or cancelled():
                return None
            return await _evict_one(client, pod, action.grace_seconds, unanswered)

    answers = await all_of(*(one(pod) for pod in action.pods))
    if unanswered:
        raise unanswered[0]
    if cancelled():
        raise ChangedMeanwhile("the drain was cancelled, or its time is up")
    return [answer for answer in answers if answer is not None]


async def _evict_one(client: Client, pod: Pod, grace: int | None, unanswered: list[KubeError]) -> Blocker | None:
    options: dict[str, Any] = {"preconditions": {"uid": pod.uid}}
    if grace is not None:
        options["gracePeriodSeconds"] = grace
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": pod.name, "namespace": pod.namespace},
        "deleteOptions": options,
    }
    try:
        await client.create_subresource(PODS, pod.name, "eviction", eviction, namespace=pod.namespace)
    except (NotFound, Conflict):
        return None  # the pod is gone, or another pod has its name now
    except KubeError as error:
        if not error.status:
            unanswered.append(error)
        # The causes are the budget's own message; the error's message only names the request.
        causes = "; ".join(cause.message for cause in error.causes if cause.message)
        retry_after = timedelta(seconds=error.retry_after) if error.retry_after else None
        return Blocker(pod=pod, reason=causes or error.message, retry_after=retry_after)
    return None

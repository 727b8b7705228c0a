"""Carries out plans, one action after the other; the only place where decisions become writes.

Every action is safe to repeat. The first that fails ends the plan: the next look starts from what is then observed.
Taints that a server refuses are the exception: nothing that comes after them needs them.
"""

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, assert_never

import structlog

from crds import names
from service.act import reclaim, scheduledmachine
from service.act.failures import failure_from
from service.decide import manifests, taints
from service.decide.outcome import Blocker, Failure, Outcome, Throttled
from service.decide.plan import (
    Action,
    AddFinalizer,
    ApplyTaints,
    BestEffort,
    ClearReclaimRequest,
    Cordon,
    Create,
    Delete,
    DisableSchedule,
    Evict,
    ForceDrain,
    InstallAgent,
    Patch,
    Plan,
    RecordReclaim,
    RecordRemediation,
    RecordShutdown,
    ReleaseFinalizer,
    RemoveAgent,
    Uncordon,
)
from service.decide.world import Child, Pod, Role, World
from service.kube.client import Client, PatchKind
from service.kube.errors import AlreadyExists, Conflict, KubeError, NotFound
from service.kube.resource import NODES, PODS, Resource
from service.observe.observer import Observer
from service.observe.subject import Subject
from service.runtime.key import Key
from service.runtime.slots import CREATE, Lane, NoSlotError, Slots
from service.runtime.tasks import all_of

EVICTIONS_AT_ONCE = 8

log = structlog.get_logger(__name__)


class ChangedMeanwhile(Exception):
    """Something changed under our hands; nothing is wrong."""


@dataclass(slots=True)
class Execution:
    """A plan in the making: the world grows with what is created."""

    world: World
    until: datetime | None
    """When to look again: by then the plan may not hold any more."""
    done: list[Action]
    blockers: list[Blocker]
    left: list[Action]
    certain: bool = False
    """Whether the API server has said in this pass that the ScheduledMachine is as we know it."""


class Performer:
    """Performs plans against the management cluster and its workload clusters."""

    def __init__(self, client: Client, observer: Observer, slots: Slots) -> None:
        self._client = client
        self._observer = observer
        self._slots = slots
        self.doubtful: Callable[[Key], bool] = lambda _key: False
        """Whether what is known of a ScheduledMachine may be out of date."""

    async def perform(self, subject: Subject, world: World, plan: Plan) -> tuple[World, Outcome]:
        """The world as it is after the plan, and what came of it."""
        progress = Execution(world=world, until=plan.requeue_at, done=[], blockers=[], left=[])
        trouble: Failure | None = None
        interrupted = False
        awaits: Throttled | None = None
        for action in plan.actions:
            try:
                if isinstance(action, BestEffort):
                    await self._attempt(action, subject, progress)
                    continue
                await self._do(action, subject, progress)
            except (Conflict, ChangedMeanwhile):
                interrupted = True
                break
            except NoSlotError as full:
                awaits = Throttled(full.lane.kind, full.slow)
                break
            except KubeError as error:
                trouble = trouble or failure_from(action, error)
                if _ends_the_plan(action, error):
                    break
                continue
            progress.done.append(action)
        done, blockers, left = tuple(progress.done), tuple(progress.blockers), tuple(progress.left)
        return progress.world, Outcome(done, trouble, blockers, interrupted, left, awaits)

    async def _attempt(self, action: BestEffort, subject: Subject, progress: Execution) -> None:
        try:
            await self._do(action, subject, progress)
        except KubeError as error:
            log.warning("left for later", action=type(action).__name__, error=error.message)
            progress.left.append(action)
        else:
            progress.done.append(action)

    async def _do(self, action: Action, subject: Subject, progress: Execution) -> None:
        if isinstance(action, Cordon | Evict | ForceDrain | Delete):
            await self._make_certain(subject, progress)  # its window may have been prolonged
        match action:
            case (
                AddFinalizer()
                | ReleaseFinalizer()
                | RecordShutdown()
                | RecordRemediation()
                | RecordReclaim()
                | DisableSchedule()
            ):
                await self._on_subject(action, subject)
            case ForceDrain() | ClearReclaimRequest() | InstallAgent() | RemoveAgent():
                await reclaim.perform(self._observer, subject, action)
            case Create():
                await self._make_sure(subject, progress)
                progress.world = await self._create(action, subject, progress.world)
            case Patch():
                progress.world = await self._patch(action, subject, progress.world)
            case Delete():
                progress.world = await self._delete(action, subject, progress.world)
            case Cordon() | Uncordon() | ApplyTaints() | Evict():
                await self._on_workload(action, subject, progress)
            case _:
                assert_never(action)

    async def _on_subject(self, action: scheduledmachine.OnItself, subject: Subject) -> None:
        try:
            await scheduledmachine.perform(self._observer, subject, action)
        except Conflict:
            await self._observer.catch_up(subject)
            raise
        except NotFound as gone:
            # The ScheduledMachine itself: our cache may not have heard yet that it was let go.
            raise ChangedMeanwhile(gone.message) from gone

    async def _make_sure(self, subject: Subject, progress: Execution) -> None:
        """Nothing is made for a ScheduledMachine that is gone, which nobody would ever take away, or edited since."""
        if self._observer.is_superseded(subject):
            raise ChangedMeanwhile("the ScheduledMachine was edited meanwhile")
        if not progress.world.children:
            await self._make_certain(subject, progress)

    async def _make_certain(self, subject: Subject, progress: Execution) -> None:
        """Where our view may be old, asks whether it is; unless a write that is conditional on it has just shown."""
        proven = any(isinstance(action, AddFinalizer | RecordShutdown) for action in progress.done)
        if proven or progress.certain or not self.doubtful(subject.key):
            return
        if not await self._observer.is_current(subject):
            raise ChangedMeanwhile("the ScheduledMachine is not what it was")
        progress.certain = True

    async def _create(self, action: Create, subject: Subject, world: World) -> World:
        resource = await self._observer.resolve(action.manifest["apiVersion"], action.manifest["kind"])
        try:
            with await self._turn(CREATE, action, resource, subject):
                raw = await self._client.create(resource, dict(action.manifest), namespace=world.me.namespace)
        except AlreadyExists:
            # Ours from before a crash or a lost answer, or somebody else's: the next look tells.
            raw = await self._what_is_there(resource, action.manifest["metadata"]["name"], world)
            seen = self._observer.absorbed(subject, world, action.role, resource, raw)
            found = seen.child(action.role)
            if found is not None and found.ours and (found.leaving or _outdated(found, action)):
                raise ChangedMeanwhile from None
            if found is None or not found.ours:
                raise
            return seen
        return self._observer.absorbed(subject, world, action.role, resource, raw)

    async def _what_is_there(self, resource: Resource, name: str, world: World) -> dict[str, Any]:
        try:
            return await self._client.get(resource, name, namespace=world.me.namespace)
        except NotFound as gone:
            raise ChangedMeanwhile(gone.message) from gone

    async def _patch(self, action: Patch, subject: Subject, world: World) -> World:
        resource = await self._observer.resource_of(world, action.role)
        precondition = {"uid": action.uid}
        if action.resource_version:
            precondition["resourceVersion"] = action.resource_version
        body = {**action.body, "metadata": {**action.body.get("metadata", {}), **precondition}}
        try:
            with await self._turn("patch", action, resource, subject):
                raw = await self._client.patch(
                    resource, action.name, body, namespace=world.me.namespace, subresource=action.subresource
                )
        except Conflict:
            await self._observer.catch_up_child(resource, action.name, world.me.namespace)
            raise
        except NotFound as gone:
            raise ChangedMeanwhile(gone.message) from gone
        return self._observer.absorbed(subject, world, action.role, resource, raw)

    async def _delete(self, action: Delete, subject: Subject, world: World) -> World:
        resource = await self._observer.resource_of(world, action.role)
        seen = world.child(action.role)
        version = seen.resource_version if action.unchanged and seen else None
        try:
            with await self._turn("delete", action, resource, subject):
                raw = await self._client.delete(
                    resource, action.name, namespace=world.me.namespace, uid=action.uid, resource_version=version
                )
        except Conflict:
            await self._observer.catch_up_child(resource, action.name, world.me.namespace)
            raise
        except NotFound as gone:
            if gone.missing_kind:  # that its kind is not served at the moment says nothing about the object
                raise
            return self._observer.vanished(world, action.role, resource)
        if raw.get("kind") == "Status":  # nothing held it: it went at once
            return self._observer.vanished(world, action.role, resource)
        return self._observer.absorbed(subject, world, action.role, resource, raw)

    async def _turn(
        self, verb: str, action: Create | Patch | Delete, resource: Resource, subject: Subject
    ) -> AbstractContextManager[None]:
        """A slot for a call that a provider's webhook may hold up."""
        if action.role is Role.MACHINE:
            return nullcontext()
        lane = Lane(resource.label, verb)
        await self._slots.until_free(lane)
        return self._slots.held(lane, subject.key)

    async def _on_workload(
        self, action: Cordon | Uncordon | ApplyTaints | Evict, subject: Subject, progress: Execution
    ) -> None:
        client = self._observer.workload_client(subject)
        match action:
            case Cordon(node=node, uid=uid, resource_version=version):
                await self._write_node(client, subject, node, _cordon(subject.me.uid, uid, version))
            case Uncordon(node=node, uid=uid):
                await self._write_node(client, subject, node, _uncordon(uid))
            case ApplyTaints():
                await self._apply_taints(client, subject, action)
            case Evict():
                blockers = await _evict(client, action, partial(self._over, subject, progress))
                progress.blockers += [self._refused(subject, blocker) for blocker in blockers]
            case _:
                assert_never(action)

    def _refused(self, subject: Subject, blocker: Blocker) -> Blocker:
        asked = blocker.retry_after.total_seconds() if blocker.retry_after else None
        return replace(blocker, retry_after=self._observer.refused(subject, blocker.pod, blocker.reason, asked))

    def _over(self, subject: Subject, progress: Execution) -> bool:
        """Whether somebody edited the ScheduledMachine, or a window opened or a timeout is up, since the plan."""
        return self._observer.is_superseded(subject) or self._observer.is_past(progress.until)

    async def _write_node(self, client: Client, subject: Subject, node: str, body: dict[str, Any], **how: Any) -> None:
        """After a conflict it is asked for: until its watch hears, every further write would conflict."""
        try:
            try:
                raw = await client.patch(NODES, node, body, **how)
            except Conflict:
                self._observer.absorb_node(subject, await client.get(NODES, node))
                raise
        except NotFound as gone:
            raise ChangedMeanwhile(gone.message) from gone
        self._observer.absorb_node(subject, raw)

    async def _apply_taints(self, client: Client, subject: Subject, action: ApplyTaints) -> None:
        """The list is atomic, so the whole of it is applied, on condition that nobody wrote meanwhile."""
        body = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": action.node,
                "uid": action.uid,  # without it, a Node that is gone would be made anew
                "resourceVersion": action.resource_version,
                "annotations": {names.ANNOTATION_APPLIED_TAINTS: action.note},
            },
            "spec": {"taints": [taints.to_json(taint) for taint in action.taints]},
        }
        how = {"kind": PatchKind.APPLY, "field_manager": names.TAINT_FIELD_MANAGER, "force": True}
        await self._write_node(client, subject, action.node, body, **how)


def _ends_the_plan(action: Action, error: KubeError) -> bool:
    """Refused taints must not keep our cordon on the Node; a server that gives no answer is not asked for more."""
    return not (isinstance(action, ApplyTaints) and error.status)


def _outdated(found: Child, action: Create) -> bool:
    """Whether it was made before an edit, so that a Machine must not be pointed at it."""
    return action.role is not Role.MACHINE and not manifests.made_from(found, action.manifest)


def _cordon(by: str, uid: str, version: str) -> dict[str, Any]:
    annotations = {names.ANNOTATION_CORDONED: by}
    metadata = {"uid": uid, "resourceVersion": version, "annotations": annotations}
    return {"metadata": metadata, "spec": {"unschedulable": True}}


def _uncordon(uid: str) -> dict[str, Any]:
    return {"metadata": {"uid": uid, "annotations": {names.ANNOTATION_CORDONED: None}}, "spec": {"unschedulable": None}}


async def _evict(client: Client, action: Evict, over: Callable[[], bool]) -> list[Blocker]:
    """Asks for all of them, a few at a time; what a budget or a fault refuses is asked for again later.

    Once it is `over`, the shutdown may have been called off, or the Machine is to go: nobody else is moved then.
    """
    slots, silence = asyncio.Semaphore(EVICTIONS_AT_ONCE), list[KubeError]()

    async def one(pod: Pod) -> Blocker | None:
        async with slots:
            # A server that does not answer would cost every further pod a time-out, and us the deadline.
            return None if silence or over() else await _evict_one(client, pod, action.grace_seconds, silence)

    answers = await all_of(*(one(pod) for pod in action.pods))
    if silence:
        raise silence[0]
    if over():
        raise ChangedMeanwhile("the drain was called off, or its time is up")
    return [answer for answer in answers if answer is not None]


async def _evict_one(client: Client, pod: Pod, grace: int | None, silence: list[KubeError]) -> Blocker | None:
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
        return None  # gone, or another pod has its name now: not this one's problem any more
    except KubeError as error:
        if not error.status:
            silence.append(error)
        # The budget's own words, where it has any, rather than the request they answer.
        causes = "; ".join(cause.message for cause in error.causes if cause.message)
        asked = timedelta(seconds=error.retry_after) if error.retry_after else None
        return Blocker(pod=pod, reason=causes or error.message, retry_after=asked)
    return None

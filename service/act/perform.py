"""Carries out plans, one action after the other; the only place where decisions become writes.

Every action is safe to repeat. The first that fails ends the plan: the next pass observes and decides again.
Taints that an API server refuses are the exception: no later action needs them.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import assert_never

import structlog

from service.act import nodes, reclaim, scheduledmachine
from service.act.children import Children
from service.act.failures import failure_from
from service.act.interruption import ChangedMeanwhile
from service.act.writer import Writer
from service.clock import Clock
from service.decide.outcome import Blocker, Failure, Outcome, Throttled
from service.decide.plan import (
    Action,
    AddFinalizer,
    AnnotateClose,
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
from service.decide.world import World
from service.kube.errors import Conflict, KubeError, NotFound
from service.objects.subject import Subject
from service.runtime.key import Key
from service.runtime.slots import NoSlotError

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class Execution:
    """A plan as far as it has been carried out; each write updates the world."""

    world: World
    until: datetime | None
    """From this instant on, the plan may not hold any more."""
    done: list[Action] = field(default_factory=list)
    blockers: list[Blocker] = field(default_factory=list)
    postponed: list[Action] = field(default_factory=list)
    failure: Failure | None = None
    interrupted: bool = False
    throttled: Throttled | None = None
    confirmed: bool = False
    """Whether the API server has confirmed in this pass that the cached ScheduledMachine is current."""

    @property
    def outcome(self) -> Outcome:
        """What was done, and what was not."""
        return Outcome(
            done=tuple(self.done),
            failure=self.failure,
            blockers=tuple(self.blockers),
            interrupted=self.interrupted,
            postponed=tuple(self.postponed),
            throttled=self.throttled,
        )


class Performer:
    """Performs plans against the management cluster and its workload clusters."""

    def __init__(self, writer: Writer, children: Children, clock: Clock, may_be_stale: Callable[[Key], bool]) -> None:
        self._writer = writer
        self._children = children
        self._clock = clock
        self._may_be_stale = may_be_stale
        """Whether the cached ScheduledMachine may be out of date."""

    async def perform(self, subject: Subject, world: World, plan: Plan) -> tuple[World, Outcome]:
        """The world after the plan, and the outcome."""
        execution = Execution(world=world, until=plan.requeue_at)
        for action in plan.actions:
            if not await self._perform_action(action, subject, execution):
                break
        return execution.world, execution.outcome

    async def _perform_action(self, action: Action, subject: Subject, execution: Execution) -> bool:
        """Carries out one action; returns whether to continue with the next."""
        try:
            await self._execute(action, subject, execution)
        except ChangedMeanwhile:
            execution.interrupted = True
            return False
        except NoSlotError as full:
            execution.throttled = Throttled(full.lane.kind, full.slow)
            return False
        except KubeError as error:
            return self._failed(action, error, execution)
        execution.done.append(action)
        return True

    def _failed(self, action: Action, error: KubeError, execution: Execution) -> bool:
        """Records a failure; returns whether to continue with the next action all the same."""
        if isinstance(action, BestEffort):
            log.warning("postponed", action=type(action).__name__, error=error.message)
            execution.postponed.append(action)
            return True
        if isinstance(error, Conflict):
            execution.interrupted = True
            return False
        execution.failure = execution.failure or failure_from(action, error)
        # Refused taints must not keep our cordon on the Node; an API server that does not answer gets no more requests.
        return isinstance(action, ApplyTaints) and bool(error.status)

    async def _execute(self, action: Action, subject: Subject, execution: Execution) -> None:
        if isinstance(action, Cordon | Evict | ForceDrain | Delete):
            await self._confirm_current(subject, execution)  # the user may have extended the window
        match action:
            case (
                AddFinalizer()
                | ReleaseFinalizer()
                | RecordShutdown()
                | RecordRemediation()
                | RecordReclaim()
                | DisableSchedule()
            ):
                await self._on_scheduled_machine(action, subject)
            case ForceDrain() | ClearReclaimRequest() | InstallAgent() | RemoveAgent():
                await reclaim.perform(self._writer, subject, action)
            case Create():
                await self._before_creation(subject, execution)
                execution.world = await self._children.create(action, subject, execution.world)
            case Patch():
                execution.world = await self._children.patch(action, subject, execution.world)
            case Delete():
                execution.world = await self._children.delete(action, subject, execution.world)
            case Cordon() | Uncordon() | ApplyTaints() | AnnotateClose() | Evict():
                cancelled = partial(self._cancelled, subject, execution)
                execution.blockers += await nodes.perform(self._writer, subject, action, cancelled)
            case _:
                assert_never(action)

    async def _on_scheduled_machine(self, action: scheduledmachine.OnItself, subject: Subject) -> None:
        try:
            await scheduledmachine.perform(self._writer, subject, action)
        except Conflict:
            await self._writer.refresh(subject)
            raise
        except NotFound as gone:
            # The ScheduledMachine itself: the cache may not know yet that its last finalizer was released.
            raise ChangedMeanwhile(gone.message) from gone

    async def _before_creation(self, subject: Subject, execution: Execution) -> None:
        """Creates nothing for a ScheduledMachine that was edited or is gone: its children would be left behind."""
        if self._writer.is_superseded(subject):
            raise ChangedMeanwhile("the ScheduledMachine was edited meanwhile")
        if not execution.world.children:
            await self._confirm_current(subject, execution)

    async def _confirm_current(self, subject: Subject, execution: Execution) -> None:
        """Asks the API server where the cache may be stale, unless a conditional write has just confirmed it."""
        by_write = any(isinstance(action, AddFinalizer | RecordShutdown) for action in execution.done)
        if by_write or execution.confirmed or not self._may_be_stale(subject.key):
            return
        if not await self._writer.is_current(subject):
            raise ChangedMeanwhile("the cached ScheduledMachine was out of date")
        execution.confirmed = True

    def _cancelled(self, subject: Subject, execution: Execution) -> bool:
        """Whether the user edited the ScheduledMachine, a window opened or a timeout ended since the decision."""
        until = execution.until
        return self._writer.is_superseded(subject) or (until is not None and until <= self._clock.now())

"""Carries out plans, one action after the other; the only place where decisions become writes.

Every action is safe to repeat. The first that fails ends the plan: the next pass starts from what it then observes.
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
    """A plan as far as it has been carried out; the world grows with what is created."""

    world: World
    until: datetime | None
    """The plan may not hold any more from this instant on."""
    done: list[Action] = field(default_factory=list)
    blockers: list[Blocker] = field(default_factory=list)
    postponed: list[Action] = field(default_factory=list)
    failure: Failure | None = None
    interrupted: bool = False
    throttled: Throttled | None = None
    certain: bool = False
    """Whether the API server has confirmed in this pass that the ScheduledMachine is as we know it."""

    @property
    def outcome(self) -> Outcome:
        """What came of it."""
        done, blockers, postponed = tuple(self.done), tuple(self.blockers), tuple(self.postponed)
        return Outcome(done, self.failure, blockers, self.interrupted, postponed, self.throttled)


class Performer:
    """Performs plans against the management cluster and its workload clusters."""

    def __init__(self, writer: Writer, children: Children, clock: Clock, may_be_stale: Callable[[Key], bool]) -> None:
        self._writer = writer
        self._children = children
        self._clock = clock
        self._may_be_stale = may_be_stale
        """Whether what is known of a ScheduledMachine may be out of date."""

    async def perform(self, subject: Subject, world: World, plan: Plan) -> tuple[World, Outcome]:
        """The world after the plan, and the outcome."""
        execution = Execution(world=world, until=plan.requeue_at)
        for action in plan.actions:
            if not await self._goes_on(action, subject, execution):
                break
        return execution.world, execution.outcome

    async def _goes_on(self, action: Action, subject: Subject, execution: Execution) -> bool:
        """Carries out one action; whether the rest of the plan follows."""
        try:
            await self._do(action, subject, execution)
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
        """Takes down what went wrong; whether the rest of the plan follows all the same."""
        if isinstance(action, BestEffort):
            log.warning("postponed", action=type(action).__name__, error=error.message)
            execution.postponed.append(action)
            return True
        if isinstance(error, Conflict):
            execution.interrupted = True
            return False
        execution.failure = execution.failure or failure_from(action, error)
        # Refused taints must not keep our cordon on the Node; an API server that gives no answer is not asked for more.
        return isinstance(action, ApplyTaints) and bool(error.status)

    async def _do(self, action: Action, subject: Subject, execution: Execution) -> None:
        if isinstance(action, Cordon | Evict | ForceDrain | Delete):
            await self._make_certain(subject, execution)  # its window may have been extended
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
            case Cordon() | Uncordon() | ApplyTaints() | Evict():
                over = partial(self._over, subject, execution)
                execution.blockers += await nodes.perform(self._writer, subject, action, over)
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
        """Creates nothing for a ScheduledMachine that was edited or is gone: its children would be postponed behind."""
        if self._writer.is_superseded(subject):
            raise ChangedMeanwhile("the ScheduledMachine was edited meanwhile")
        if not execution.world.children:
            await self._make_certain(subject, execution)

    async def _make_certain(self, subject: Subject, execution: Execution) -> None:
        """Asks the API server where our view may be stale, unless a conditional write has just confirmed it."""
        confirmed = any(isinstance(action, AddFinalizer | RecordShutdown) for action in execution.done)
        if confirmed or execution.certain or not self._may_be_stale(subject.key):
            return
        if not await self._writer.is_current(subject):
            raise ChangedMeanwhile("the cached ScheduledMachine was out of date")
        execution.certain = True

    def _over(self, subject: Subject, execution: Execution) -> bool:
        """Whether the ScheduledMachine was edited, or a window opened or a timeout is up, since the plan was made."""
        until = execution.until
        return self._writer.is_superseded(subject) or (until is not None and until <= self._clock.now())

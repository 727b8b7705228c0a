"""What came of a plan: what was done, what stopped it, what held it up. Made by `service.act`, read by the report."""

from dataclasses import dataclass, field
from datetime import timedelta

from service.decide.plan import Action, Plan
from service.decide.reasons import AnyReason
from service.decide.world import Pod

BLOCKERS_NAMED = 3


@dataclass(frozen=True, slots=True)
class Blocker:
    """A pod that could not be evicted, and the API server's reason, such as the budget that forbids it."""

    pod: Pod
    reason: str
    retry_after: timedelta | None = None
    """In how much real time the controller asks again."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an action failed, and whether only a human can help."""

    action: Action
    reason: AnyReason
    message: str
    retry_after: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Throttled:
    """A write that was put off, as enough calls to the same kind of provider object are under way."""

    kind: str
    slow: bool
    """Whether those calls take long: the user is told then."""

    @property
    def message(self) -> str:
        """The sentence for the user."""
        return f"Waiting for the provider: calls for {self.kind} take long, and other machines go first."


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of performing a plan as far as it went."""

    done: tuple[Action, ...] = ()
    failure: Failure | None = None
    blockers: tuple[Blocker, ...] = field(default=())
    interrupted: bool = False
    """Whether something changed under our hands, so that the rest of the plan must be thought over."""
    postponed: tuple[Action, ...] = ()
    """What was tried in vain and left for later."""
    throttled: Throttled | None = None
    """What the rest of the plan waits for."""

    def did(self, kind: type[Action]) -> bool:
        """Whether an action of that class was carried out."""
        return any(isinstance(action, kind) for action in self.done)


def explain(plan: Plan, outcome: Outcome) -> str:
    """The sentence for the user: the trouble if there is any, else where things stand and who holds them up."""
    if outcome.failure is not None:
        return outcome.failure.message
    if outcome.throttled is not None and outcome.throttled.slow:
        return outcome.throttled.message
    blockers = sorted((*outcome.blockers, *_refused_before(plan)), key=lambda one: (one.pod.namespace, one.pod.name))
    if not blockers:
        return plan.message
    named = blockers[:BLOCKERS_NAMED]
    held = "; ".join(f"{one.pod.namespace}/{one.pod.name}: {one.reason}" for one in named)
    more = len(blockers) - len(named)
    return f"{plan.message} Held up by {held}" + (f" (and {more} more)" if more else "")


def _refused_before(plan: Plan) -> tuple[Blocker, ...]:
    """Pods that are not asked again yet hold the drain up all the same."""
    refused = plan.drain.refused if plan.drain else ()
    return tuple(Blocker(pod, pod.refusal.reason) for pod in refused if pod.refusal)

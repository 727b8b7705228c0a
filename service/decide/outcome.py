"""The result of a plan: what was done, what failed, what held it up. Made by `service.act`, read by the report."""

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
    """In real time: when the controller tries again."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an action failed."""

    action: Action
    reason: AnyReason
    message: str
    retry_after: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Throttled:
    """A write that waits because enough calls for the same kind of provider object are in flight."""

    kind: str
    slow: bool
    """Whether those calls take long; then the status says so."""

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
    """Whether an object changed meanwhile, so that the rest of the plan must be decided again."""
    postponed: tuple[Action, ...] = ()
    """Best-effort actions that failed and are tried again later."""
    throttled: Throttled | None = None
    """Why the rest of the plan waits."""

    def did(self, kind: type[Action]) -> bool:
        """Whether an action of that class was carried out."""
        return any(isinstance(action, kind) for action in self.done)


def explain(plan: Plan, outcome: Outcome) -> str:
    """The sentence for the user: the failure if there is one, else the plan's message and the pods that hold it up."""
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
    """Pods whose eviction is not tried again yet; they hold up the drain, too."""
    refused = plan.drain.refused if plan.drain else ()
    return tuple(Blocker(pod, pod.refusal.reason) for pod in refused if pod.refusal)

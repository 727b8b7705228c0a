"""Which pods must leave a Node before its Machine is deleted, and in which order; as Cluster API's own drain does it.

The one difference: finished pods are left alone here, while Cluster API evicts them, too.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from service.decide.drainrules import AWAITED, SKIPPED, Behavior, DrainRules, Treatment, UnknownNamespaceError
from service.decide.reasons import Reason
from service.decide.world import Pod, World

GONE_AFTER: Final = timedelta(seconds=2)
"""On a Node whose kubelet does not report, a pod counts as gone this long after its grace period."""
LOST_GRACE_SECONDS: Final = 1
"""The grace period of pods on such a Node: nothing there can use a longer one."""
PODS_NAMED: Final = 3


def pods_unknown(world: World) -> bool:
    """Whether the list of our Node's pods failed, so that the Node may or may not be empty."""
    return world.workload is not None and world.workload.reason is Reason.PODS_NOT_LISTED


@dataclass(frozen=True, slots=True)
class Drain:
    """The pods that are still on the Node, by what happens to them."""

    to_evict: tuple[Pod, ...] = ()
    going: tuple[Pod, ...] = ()
    """Terminating."""
    refused: tuple[Pod, ...] = ()
    """Whose eviction was refused and is not tried again yet."""
    awaited: tuple[Pod, ...] = ()
    """Which are not evicted, but must complete."""
    later: tuple[Pod, ...] = ()
    """Which are evicted when those above are gone."""
    completed: tuple[Pod, ...] = ()
    """Which have completed, as they must; Cluster API would go on waiting for them."""
    problem: str | None = None
    """Why no pod is evicted at all."""

    @property
    def done(self) -> bool:
        """Whether no pod is left to wait for."""
        return not self.remaining

    @property
    def remaining(self) -> int:
        """How many pods are still there."""
        return sum(len(pods) for pods in (self.to_evict, self.going, self.refused, self.awaited, self.later))

    @property
    def retry_after(self) -> timedelta | None:
        """In real time: when the next refused eviction is tried again."""
        return min((pod.refusal.retry_after for pod in self.refused if pod.refusal), default=None)


def drain_of(world: World, now: datetime) -> Drain:
    """The state of the Node's drain; without a list of its pods, that of an empty one."""
    unreachable = world.node is not None and world.node.unreachable
    return drain(world.pods or (), world.drain_rules, lost_at=now if unreachable else None)


def drain(pods: Iterable[Pod], rules: DrainRules | None = None, *, lost_at: datetime | None = None) -> Drain:
    """Sort the pods of a Node: those that stay, are evicted, are terminating, or wait for their turn.

    `lost_at` is the time if the Node's kubelet does not report.
    """
    rules, there = rules or DrainRules(), [pod for pod in pods if not _stays(pod, lost_at)]
    unfinished = [pod for pod in there if not pod.finished]
    if rules.problem is not None:
        return _stalled(unfinished, rules.problem)
    try:
        treated = [(pod, rules.treatment(pod.labels, pod.namespace_labels)) for pod in there]
    except UnknownNamespaceError:
        return _stalled(unfinished, "a MachineDrainRule selects Namespaces by labels, and not all of them are known")
    completed = tuple(pod for pod, treatment in treated if pod.finished and treatment == AWAITED)
    return _in_turn([each for each in treated if not each[0].finished and each[1] != SKIPPED], completed)


def must_leave(pod: Pod) -> bool:
    """Whether a pod must leave: not those of DaemonSets, mirror pods and finished pods."""
    return not (_stays(pod, None) or pod.finished)


def _stays(pod: Pod, lost_at: datetime | None) -> bool:
    if lost_at is not None and pod.deleted_at is not None and lost_at - pod.deleted_at >= GONE_AFTER:
        return True
    kept = pod.controller_kind == "DaemonSet" and not pod.orphaned and not pod.finished
    return pod.mirror or kept


def _stalled(pods: list[Pod], problem: str) -> Drain:
    return Drain(
        going=tuple(pod for pod in pods if pod.deleting),
        later=tuple(pod for pod in pods if not pod.deleting),
        problem=problem,
    )


def _in_turn(treated: list[tuple[Pod, Treatment]], completed: tuple[Pod, ...]) -> Drain:
    """Only pods of the lowest order that is present are evicted; terminating and awaited pods count for it."""
    turn = min((treatment.order for _, treatment in treated), default=0)
    awaited = tuple(pod for pod, treatment in treated if treatment == AWAITED)
    evicted = [(pod, order) for pod, (behavior, order) in treated if behavior is Behavior.DRAIN]
    now = [pod for pod, order in evicted if order == turn and not pod.deleting]
    return Drain(
        to_evict=tuple(pod for pod in now if not _refused(pod)),
        going=tuple(pod for pod, _ in evicted if pod.deleting),
        refused=tuple(pod for pod in now if _refused(pod)),
        awaited=awaited,
        later=tuple(pod for pod, order in evicted if order > turn and not pod.deleting),
        completed=completed,
    )


def _refused(pod: Pod) -> bool:
    return pod.refusal is not None and pod.refusal.retry_after > timedelta(0)


def gone_at(state: Drain) -> datetime | None:
    """When the next terminating pod of a Node whose kubelet does not report counts as gone."""
    return min((pod.deleted_at + GONE_AFTER for pod in state.going if pod.deleted_at), default=None)


def progress(state: Drain) -> str:
    """What is left, for people: `2 pod(s) left, terminating: apps/web, waiting for completion: batch/nightly`."""
    parts = [
        f"{state.remaining} pod(s) left",
        _named("terminating", state.going),
        _named("waiting for completion", state.awaited),
        _named("after these", state.later) if state.problem is None else "",
    ]
    left = ", ".join(part for part in parts if part)
    return f"{left}; no pod is evicted, because {state.problem}" if state.problem else left


def _named(what: str, pods: tuple[Pod, ...]) -> str:
    named = ", ".join(f"{pod.namespace}/{pod.name}" for pod in pods[:PODS_NAMED])
    more = f" and {len(pods) - PODS_NAMED} more" if len(pods) > PODS_NAMED else ""
    return f"{what}: {named}{more}" if pods else ""

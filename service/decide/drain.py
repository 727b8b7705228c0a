"""Which pods must leave a Node before it may go, as `kubectl drain` would have it."""

from collections.abc import Iterable
from dataclasses import dataclass

from service.decide.world import Pod, World

PODS_NOT_LISTED = "PodsNotListed"
"""Why a workload cluster counts as unreachable whose Nodes can be seen: it did not say which pods they have."""


def pods_unknown(world: World) -> bool:
    """Whether the pods of our Node were asked for in vain, so that nobody can tell whether it is empty."""
    return world.workload is not None and world.workload.reason == PODS_NOT_LISTED


@dataclass(frozen=True, slots=True)
class Drain:
    """The pods that stand between us and an empty Node."""

    to_evict: tuple[Pod, ...]
    going: tuple[Pod, ...]

    @property
    def done(self) -> bool:
        """Whether nothing is left to wait for."""
        return not self.to_evict and not self.going

    @property
    def remaining(self) -> int:
        """How many pods are still there."""
        return len(self.to_evict) + len(self.going)


def drain(pods: Iterable[Pod]) -> Drain:
    """Sort the pods of a Node: what stays, what is asked to leave, what is on its way."""
    leaving = [pod for pod in pods if must_leave(pod)]
    return Drain(
        to_evict=tuple(pod for pod in leaving if not pod.leaving),
        going=tuple(pod for pod in leaving if pod.leaving),
    )


def must_leave(pod: Pod) -> bool:
    """A DaemonSet's pods would come straight back, mirror pods are the kubelet's own, finished ones hold nothing."""
    return not (pod.mirror or pod.finished or pod.controller_kind == "DaemonSet")

"""One ScheduledMachine at one instant, and the deadlines that follow from it; what every rule looks at."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from service.decide.intent import Intent
from service.decide.world import Failure, World

SMALL_STEP_BACK: Final = timedelta(minutes=5)
"""A clock that goes back less than this does not undo a shutdown."""


@dataclass(frozen=True, slots=True)
class Situation:
    """Intent, world and time."""

    intent: Intent
    world: World
    now: datetime

    @classmethod
    def at(cls, intent: Intent, world: World, now: datetime) -> "Situation":
        """The situation, with a small step back of the clock taken as the instant the shutdown began."""
        started = world.status.shutdown_started_at
        stepped_back = started is not None and timedelta(0) < started - now < SMALL_STEP_BACK
        return cls(intent=intent, world=world, now=started if stepped_back and started else now)

    @property
    def open(self) -> bool:
        """Whether a window is open."""
        return self.intent.covers(self.now)

    @property
    def shutdown_started(self) -> datetime | None:
        """When the shutdown under way began, unless the clock has since gone back a long way."""
        started = self.world.status.shutdown_started_at
        return started if started is not None and started <= self.now else None

    @property
    def grace_deadline(self) -> datetime:
        """When the shutdown must be over."""
        return (self.shutdown_started or self.now) + self.intent.grace

    @property
    def drain_deadline(self) -> datetime:
        """When draining must be over: the shorter of the two timeouts wins."""
        return (self.shutdown_started or self.now) + min(self.intent.drain, self.intent.grace)


def without_cluster(s: Situation) -> Failure | None:
    """What is wrong with the Cluster that the machine is to join."""
    cluster, name = s.world.cluster, s.intent.cluster_name
    if s.world.contract is None or name is None or (cluster is not None and not cluster.deleting):
        return None
    if cluster is not None:
        return Failure("ClusterDeleting", f"Cluster {name} is being deleted.")
    return Failure("ClusterNotFound", f"Cluster {name} does not exist in this namespace.")

"""Watches in workload clusters that last for as long as a machine uses them, such as while its Node is drained."""

from collections.abc import Callable

from service.kube.client import Client
from service.runtime.informer import Informer
from service.runtime.key import Key
from service.workload.connection import WorkloadCluster

Place = tuple[Key, str]
"""A workload cluster and the name of a watch in it."""


class SharedWatches:
    """Counts users; the last one to release a watch ends it."""

    def __init__(self) -> None:
        self._users: dict[Place, set[Key]] = {}
        self._used: dict[Key, set[Place]] = {}
        self._workloads: dict[Key, WorkloadCluster] = {}

    def use(self, user: Key, workload: WorkloadCluster, name: str, make: Callable[[Client], Informer]) -> Informer:
        """The watch of that name, started if necessary; `WorkloadUnreachable` while the cluster is."""
        informer = workload.watch(name, make)
        place = (workload.key, name)
        self._users.setdefault(place, set()).add(user)
        self._used.setdefault(user, set()).add(place)
        self._workloads[workload.key] = workload
        return informer

    def release(self, user: Key) -> None:
        """`user` needs none of its watches any more."""
        for place in self._used.pop(user, ()):
            users = self._users[place]
            users.discard(user)
            if not users:
                del self._users[place]
                self._end(*place)

    def users(self, cluster: Key) -> frozenset[Key]:
        """The users of the watches in a cluster."""
        return frozenset(user for (place, _), users in self._users.items() if place == cluster for user in users)

    def names(self, cluster: Key) -> frozenset[str]:
        """The watches in a cluster."""
        return frozenset(name for place, name in self._users if place == cluster)

    def _end(self, cluster: Key, name: str) -> None:
        self._workloads[cluster].unwatch(name)
        if not self.names(cluster):
            del self._workloads[cluster]

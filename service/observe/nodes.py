"""Which ScheduledMachine a Node belongs to, so that a change of the Node wakes the right one."""

from collections import defaultdict

from service.runtime.key import Key

Place = tuple[Key, str]
"""A workload cluster and the name of a Node in it."""


class NodeIndex:
    """Remembers which ScheduledMachine was last observed on which Node."""

    def __init__(self) -> None:
        self._place: dict[Key, Place] = {}
        self._users: defaultdict[Place, set[Key]] = defaultdict(set)

    def put(self, user: Key, cluster: Key, node: str) -> None:
        """`user` runs on that Node."""
        place = (cluster, node)
        if self._place.get(user) != place:
            self.forget(user)
            self._place[user] = place
            self._users[place].add(user)

    def forget(self, user: Key) -> None:
        """`user` has no Node any more."""
        place = self._place.pop(user, None)
        if place is None:
            return
        self._users[place].discard(user)
        if not self._users[place]:
            del self._users[place]

    def users(self, cluster: Key, node: str) -> frozenset[Key]:
        """The ScheduledMachines on a Node."""
        return frozenset(self._users.get((cluster, node), ()))

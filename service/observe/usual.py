"""How long machines of one infrastructure kind take in one Cluster, for those that have too few services of their own.

Ten thousand machines may ask at once: an answer is kept for a while, and made from a limited number of machines.
"""

import time
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any, Final, NamedTuple, Protocol

from crds.classes import class_of
from crds.history import ServiceRecord
from service.decide.leads import UNKNOWN, Usual, stored_leads, time_needed, times_to_gone, times_to_ready
from service.observe.hosts import cluster_of
from service.observe.indexes import CLASS, kind_term
from service.runtime.informer import Informer
from service.runtime.key import Key

Raw = dict[str, Any]
KEPT_SECONDS: Final = 60.0
MACHINES_MAX: Final = 100
GROUPS_MAX: Final = 1024


class ClassOutlines(Protocol):
    """The classes, which say the kinds of the machines that name them."""

    def names(self) -> Iterable[str]:
        """Those that there are."""
        ...

    def outline(self, name: str) -> Raw | None:
        """A class without what is large in it."""
        ...


class NoClassOutlines:
    """For a reader that has no classes."""

    def names(self) -> Iterable[str]:
        """None."""
        return ()

    def outline(self, name: str) -> Raw | None:  # noqa: ARG002
        """None."""
        return None


class _Group(NamedTuple):
    cluster: Key
    kind: str


class _Answer(NamedTuple):
    until: float
    usual: Usual


class UsualTimes:
    """A UsualSource that reads the histories of the ScheduledMachines in the cache."""

    def __init__(
        self,
        scheduled: Informer,
        classes: ClassOutlines = NoClassOutlines(),  # noqa: B008 - has no state
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._scheduled = scheduled
        self._classes = classes
        self._monotonic = monotonic
        self._answers: dict[_Group, _Answer] = {}

    def like(self, raw: Raw) -> Usual:
        """How long machines of the same infrastructure kind need in the Cluster of a stored object."""
        group = self._group_of(raw)
        if group is None:
            return UNKNOWN
        now = self._monotonic()
        known = self._answers.get(group)
        if known is None or known.until <= now:
            if len(self._answers) >= GROUPS_MAX:
                self._answers.clear()
            known = self._answers[group] = _Answer(now + KEPT_SECONDS, self._usual(group))
        return known.usual

    def _usual(self, group: _Group) -> Usual:
        in_cluster = self._scheduled.keys_by("cluster", group.cluster.name)
        alike = (key for key in in_cluster & self._of_kind(group.kind) if key.namespace == group.cluster.namespace)
        records: list[ServiceRecord] = []
        for key in islice(alike, MACHINES_MAX):
            raw = self._scheduled.get(key)
            records += stored_leads(raw).history.records if raw is not None else ()
        return Usual(time_needed(times_to_ready(records)), time_needed(times_to_gone(records)))

    def _of_kind(self, kind: str) -> frozenset[Key]:
        """Those with this infrastructure kind in their own spec, or in that of their class."""
        classes = (name for name in self._classes.names() if _kind_of(self._classes.outline(name)) == kind)
        users = (self._scheduled.keys_by(CLASS, name) for name in classes)
        return self._scheduled.keys_by("kind", kind).union(*users)

    def _group_of(self, raw: Raw) -> _Group | None:
        cluster, name = cluster_of(raw), class_of(raw)
        kind = _kind_of(raw if name is None else self._classes.outline(name))
        return _Group(cluster, kind) if cluster and kind else None


def _kind_of(raw: Raw | None) -> str | None:
    """The infrastructure kind that a ScheduledMachine or a class names."""
    match raw:
        case {"spec": {"infrastructureSpec": {"apiVersion": str(api_version), "kind": str(kind)}}}:
            return kind_term(api_version, kind)
        case _:
            return None

"""Evictions that an API server refused: why, and when the controller tries again.

Kept in memory only: after a restart the controller tries all of them at once, as it does after a change.
"""

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Final

from crds.invalid import InvalidValue
from service.decide.selectors import read_selector
from service.decide.world import Pod, Refusal
from service.runtime.backoff import Backoff
from service.runtime.cache import Change, EventType, Object
from service.runtime.key import Key

PAUSES: Final = Backoff(base=5.0, cap=30.0, jitter=0.2)
"""A watch reports a budget that changes; the pauses are for other reasons, and budgets that cannot be watched."""
MOST_WOKEN: Final = 16
"""How many machines retry when a budget allows an eviction: of very many, all but a few would be refused again."""


@dataclass(frozen=True, slots=True)
class _Refused:
    pod: Pod
    reason: str
    times: int
    retry_at: float


class Refusals:
    """Refusals by ScheduledMachine and uid of the pod."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._refused: dict[Key, dict[str, _Refused]] = {}

    def record(self, key: Key, pod: Pod, reason: str, retry_after: float | None = None) -> timedelta:
        """Records a refusal; in how much real time to try again."""
        pods = self._refused.setdefault(key, {})
        before = pods.get(pod.uid)
        times = before.times + 1 if before else 1
        pause = max(PAUSES.seconds(times, random.random()), retry_after or 0.0)  # noqa: S311 - spreads load
        pods[pod.uid] = _Refused(pod, reason, times, self._monotonic() + pause)
        return timedelta(seconds=pause)

    def with_refusals(self, key: Key, pods: tuple[Pod, ...]) -> tuple[Pod, ...]:
        """The pods, each with its refusal if there is one; forgets refusals of pods that are gone or being deleted."""
        present = {pod.uid for pod in pods if not pod.deleting}
        known = {uid: one for uid, one in self._refused.get(key, {}).items() if uid in present}
        if known:
            self._refused[key] = known
        else:
            self._refused.pop(key, None)
        return tuple(replace(pod, refusal=self._refusal(known[pod.uid])) if pod.uid in known else pod for pod in pods)

    def forget(self, key: Key) -> None:
        """The drain is over."""
        self._refused.pop(key, None)

    def budget_changed(self, keys: frozenset[Key], change: Change) -> Iterator[Key]:
        """The machines, of these, whose evictions are retried at once because a budget changed."""
        allowed = MOST_WOKEN if change.type is EventType.DELETED else int(change.object["allowed"])
        left = min(allowed, MOST_WOKEN)
        for key in sorted(keys):
            if left <= 0:
                return
            if self._retry_now(key, change):
                left -= 1
                yield key

    def _retry_now(self, key: Key, change: Change) -> bool:
        covered = [
            (uid, one)
            for uid, one in self._refused.get(key, {}).items()
            if one.pod.namespace == change.key.namespace and _covers(change.object, one.pod)
        ]
        for uid, one in covered:
            self._refused[key][uid] = replace(one, retry_at=self._monotonic())
        return bool(covered)

    def _refusal(self, one: _Refused) -> Refusal:
        return Refusal(one.reason, timedelta(seconds=max(0.0, one.retry_at - self._monotonic())))


def slim_budget(raw: Object) -> Object:
    """Which pods a PodDisruptionBudget covers, and how many of them may be evicted now."""
    kept = {name: raw["metadata"].get(name) for name in ("name", "namespace", "uid", "resourceVersion")}
    allowed = (raw.get("status") or {}).get("disruptionsAllowed")
    selector = (raw.get("spec") or {}).get("selector")
    return {"metadata": kept, "selector": selector, "allowed": allowed if isinstance(allowed, int) else 0}


def _covers(budget: dict[str, Any], pod: Pod) -> bool:
    try:
        return budget["selector"] is not None and read_selector(budget["selector"]).matches(pod.labels)
    except InvalidValue:
        return False

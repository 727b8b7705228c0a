"""Metrics that are read from the controller at each scrape, and those that count what its clients and watches do."""

from collections.abc import Callable, Iterator
from functools import partial
from http import HTTPStatus
from typing import Final

from crds.overrides import OverrideState
from crds.status import Phase
from service import metrics
from service.clock import Clock
from service.decide.reasons import Reason
from service.decide.turns import Queueing
from service.kube.client import Client
from service.kube.transport import Call
from service.observe.crowds import Crowds
from service.observe.indexes import READY
from service.observe.watches import Watches
from service.runtime.cache import Object
from service.runtime.informer import Informer
from service.runtime.queue import Queue

KNOWN_STATUSES: Final = frozenset({0, *HTTPStatus})
NAMED_MAX: Final = 100
"""So many series at most name a ScheduledMachine."""
MESSAGE_MAX: Final = 300


def publish(queue: Queue, watches: Watches, client: Client, clock: Clock) -> None:
    """Connects the gauges with what they show; a scrape costs no walk over all objects."""
    metrics.QUEUE_DEPTH.set_function(lambda: queue.depth)
    metrics.KINDS_WATCHED.set_function(lambda: len(watches.providers.informers))
    metrics.CLOCK_TIME.set_function(lambda: clock.now().timestamp())
    metrics.CLOCK_SKEW.set_function(lambda: client.skew_seconds or 0.0)
    for phase in Phase:
        metrics.OBJECTS.labels(phase).set_function(partial(watches.scheduled.count_by, "phase", phase))
    counted = partial(watches.scheduled.count_by, "ready")
    metrics.OBJECTS_READY.set_function(partial(counted, READY))
    metrics.OBJECTS_NOT_READY_IN_TIME.set_function(partial(counted, Reason.NOT_READY_IN_TIME))


def publish_overrides(in_force: Callable[[OverrideState], int]) -> None:
    """Likewise for overrides."""
    for state in OverrideState:
        metrics.OVERRIDES_IN_FORCE.labels(state).set_function(partial(in_force, state))


def publish_trouble(machines: Informer) -> None:
    """Names the machines that need an administrator's attention, at each scrape; an index knows them."""
    metrics.OBJECTS_IN_TROUBLE.rows = lambda: trouble(machines)


def trouble(machines: Informer) -> Iterator[tuple[str, ...]]:
    """The first of them by name, with what their status says."""
    keys = machines.keys_by("phase", Phase.ERROR) | machines.keys_by("ready", Reason.NOT_READY_IN_TIME)
    for key in sorted(keys)[:NAMED_MAX]:
        status = (machines.get(key) or {}).get("status") or {}
        ready: Object = next((each for each in status.get("conditions") or () if each.get("type") == READY), {})
        said = (status.get("phase", ""), ready.get("reason", ""), status.get("message", ""))
        yield (key.namespace, key.name, *(str(each)[:MESSAGE_MAX] for each in said))


def publish_crowds(crowds: Crowds) -> None:
    """Likewise for machines that queue."""
    for queueing in Queueing:
        metrics.TURNS_AWAITED.labels(queueing).set_function(partial(crowds.waiting, queueing))
        metrics.TURNS_TAKEN.labels(queueing).set_function(partial(crowds.under_way, queueing))


def count_restart(kind: str, reason: str) -> None:
    """A watch broke."""
    metrics.WATCH_RESTARTS.labels(kind, reason).inc()


def count_defect(kind: str, defect: str) -> None:
    """A watch sent an object that cannot be read."""
    metrics.WATCH_OBJECTS_UNREADABLE.labels(kind, defect).inc()


def count_call(call: Call) -> None:
    """A call ended; a workload cluster may answer with any status, so unknown ones share a label."""
    status = str(call.status) if call.status in KNOWN_STATUSES else "other"
    metrics.API_REQUESTS.labels(call.verb, call.resource, status).inc()

"""Whether an operator has nothing left to do: reads its own state, as no pause is long enough on a slow machine."""

from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from crds import names
from service.controller.wiring import Controller
from service.kube.client import Client
from service.kube.resource import NODES
from service.runtime.cache import Cache
from service.runtime.informer import Informer
from service.runtime.key import Key
from tests.waiting import until

Versions = dict[Key, int]
WHOLE = {"scheduledmachines", "clusters", "schedulecalendars", "scheduleoverrides"}
"""Kinds that the operator watches as a whole; of the others only objects with an owner."""
HORIZON = 5.0
"""An object that is due sooner has something to do: a write that failed, or a Retry-After of the API server."""


class RestlessError(Exception):
    """An operator did not come to rest; the message says what it still had to do."""


async def rest(unrest: Callable[[], Awaitable[str]], within: float) -> None:
    """Waits until `unrest` returns an empty text."""
    last = ""

    async def is_at_rest() -> bool:
        nonlocal last
        last = await unrest()
        return not last

    try:
        await until(is_at_rest, within=within)
    except TimeoutError:
        raise RestlessError(f"after {within:.0f} s: {last}") from None


async def unrest(controller: Controller, client: Client, namespace: str) -> str:
    """What an operator has still to do, or has not observed yet; `client` goes to the API server directly."""
    return _busy(controller) or await _not_observed(controller, client, namespace) or _busy(controller)


def _busy(controller: Controller) -> str:
    queue, left = controller.queue, controller.queue._timers.seconds_left()
    if queue.depth or queue.running:
        return f"{queue.depth} objects are due, {queue.running} are being reconciled"
    if failing := queue._failures.failing():
        return f"{', '.join(map(str, failing))} failed and will be tried again"
    if left < HORIZON:
        return f"an object is due in {left:.1f} s"
    if controller.calendars.busy or controller.calendars._queue._failures.failing():
        return "calendars are being read, or will be tried again"
    overrides = controller.overrides._queue
    if controller.overrides.busy or overrides._failures.failing() or overrides._timers.seconds_left() < HORIZON:
        return "overrides are still to be looked at"
    if not controller.events.idle.is_set():
        return "Events are still to be sent"
    broken = [informer.resource.plural for informer in _informers(controller) if informer.error is not None]
    return f"not connected: {', '.join(broken)}" if broken else _cut_off(controller)


def _cut_off(controller: Controller) -> str:
    """The workload clusters that are needed and unreachable."""
    workloads = controller.workloads
    unreachable = [key for key, one in workloads._open.items() if workloads.holders(key) and not one.state.reachable]
    return f"unreachable: {', '.join(map(str, unreachable))}" if unreachable else ""


def _informers(controller: Controller) -> Iterator[Informer]:
    watches = controller.watches
    ours = (watches.scheduled, controller.overrides._informer)
    found = (*ours, watches.machines, watches.clusters, *watches.providers.informers.values())
    yield from (informer for informer in found if informer is not None)
    yield from (one for one in controller.calendars._informers.values() if one.resource.namespaced)


async def _not_observed(controller: Controller, client: Client, namespace: str) -> str:
    """Compares the caches with the API server: a watch takes a while to report what others wrote."""
    workloads = controller.workloads
    for informer in _informers(controller):
        whole = informer.resource.plural in WHOLE
        listed = await client.list(informer.resource, namespace=namespace, labels=None if whole else names.LABEL_OWNER)
        if _versions(listed) != _known(informer._caches[namespace]):
            return f"has not observed all of {informer.resource.plural}"
    for workload in [one for key, one in workloads._open.items() if workloads.holders(key)]:
        if _of(namespace, _versions(await client.list(NODES))) != _of(namespace, _known(workload.nodes)):
            return "has not observed all of nodes"
    return ""


def _of(namespace: str, nodes: Versions) -> Versions:
    """The Nodes of a case: they bear its name."""
    return {key: version for key, version in nodes.items() if namespace in key.name.split("-")}


def _known(cache: Cache) -> Versions:
    return {key: record.version for key, record in cache._records.items()}


def _versions(listed: list[dict[str, Any]]) -> Versions:
    metas = [raw["metadata"] for raw in listed]
    return {Key(meta.get("namespace", ""), meta["name"]): int(meta["resourceVersion"]) for meta in metas}

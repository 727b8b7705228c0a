"""Whether an operator has nothing left to do: it is asked itself, as no pause is long enough on a slow machine."""

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
HORIZON = 5.0
"""Whoever is due sooner has something in mind: a write that failed, or a pause that a server asked for."""


class RestlessError(Exception):
    """It never came to rest; says what it had still to do."""


async def rest(unrest: Callable[[], Awaitable[str]], within: float) -> None:
    """Waits until `unrest` has nothing to say."""
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
    """What an operator has still to do, or has not heard of yet; `client` goes to the API server directly."""
    return _busy(controller) or await _unheard(controller, client, namespace) or _busy(controller)


def _busy(controller: Controller) -> str:
    queue, left = controller.queue, controller.queue._timers.seconds_left()
    if queue.depth or queue.running:
        return f"{queue.depth} objects are due, {queue.running} are in hand"
    if failing := queue._failures.failing():
        return f"{', '.join(map(str, failing))} failed and will be tried again"
    if left < HORIZON:
        return f"an object is due in {left:.1f} s"
    if not controller.events.idle.is_set():
        return "Events are still to be sent"
    broken = [informer.resource.plural for informer in _informers(controller) if informer.error is not None]
    return f"not connected: {', '.join(broken)}" if broken else _cut_off(controller)


def _cut_off(controller: Controller) -> str:
    """Workload clusters out of reach, as far as they are needed."""
    workloads = controller.workloads
    away = [key for key, one in workloads._open.items() if workloads.holders(key) and not one.state.reachable]
    return f"out of reach: {', '.join(map(str, away))}" if away else ""


def _informers(controller: Controller) -> Iterator[Informer]:
    watches = controller.watches
    found = (watches.scheduled, watches.machines, watches.clusters, *watches.providers.informers.values())
    yield from (informer for informer in found if informer is not None)


async def _unheard(controller: Controller, client: Client, namespace: str) -> str:
    """What others wrote takes a while to arrive by a watch."""
    watches, workloads = controller.watches, controller.workloads
    for informer in _informers(controller):
        whole = informer in (watches.scheduled, watches.clusters)  # of the others only those with an owner
        listed = await client.list(informer.resource, namespace=namespace, labels=None if whole else names.LABEL_OWNER)
        if _versions(listed) != _known(informer._caches[namespace]):
            return f"has not heard all of {informer.resource.plural}"
    for workload in [one for key, one in workloads._open.items() if workloads.holders(key)]:
        if _of(namespace, _versions(await client.list(NODES))) != _of(namespace, _known(workload.nodes)):
            return "has not heard all of nodes"
    return ""


def _of(namespace: str, nodes: Versions) -> Versions:
    """The Nodes of a case: they bear its name."""
    return {key: version for key, version in nodes.items() if namespace in key.name.split("-")}


def _known(cache: Cache) -> Versions:
    return {key: record.version for key, record in cache._records.items()}


def _versions(listed: list[dict[str, Any]]) -> Versions:
    metas = [raw["metadata"] for raw in listed]
    return {Key(meta.get("namespace", ""), meta["name"]): int(meta["resourceVersion"]) for meta in metas}

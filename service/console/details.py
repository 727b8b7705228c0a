"""One machine at length, read when its page asks: conditions, events, why, rights, and the object itself."""

import asyncio
from contextlib import suppress
from datetime import datetime
from typing import Any, Final

import orjson
import yaml

from crds.providers import ProviderPolicy
from crds.status import Phase
from service.console import rights
from service.console.viewer import Viewer
from service.decide.drain import drain_of
from service.decide.intent import Sources
from service.fleet import classes, snapshot
from service.fleet.explanation import explain
from service.fleet.snapshot import Snapshot
from service.fleet.summary import Summary
from service.fleet.timeline import milliseconds
from service.kube.errors import KubeError
from service.kube.resource import EVENTS, SCHEDULE_OVERRIDES, SCHEDULED_MACHINES
from service.runtime.cache import slim
from service.runtime.key import Key
from service.runtime.packing import packed

Raw = dict[str, Any]
EVENTS_SHOWN: Final = 40
EVENTS_READ: Final = 500
YAML_MAX: Final = 256 * 1024
"""A longer object would keep all other users of the console waiting while it is written out."""
_DUMPER: Final[type[Any]] = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


async def read(viewer: Viewer, key: Key) -> Raw:
    """All that the page shows; `NotFound` if there is no such machine."""
    raw = await viewer.client.get(SCHEDULED_MACHINES, key.name, namespace=key.namespace)
    whole = {**SCHEDULED_MACHINES.envelope(), **slim(raw)}
    summary = Summary.read(whole)
    taken, events, allowed = await asyncio.gather(
        _taken(viewer, whole, summary), _events(viewer, whole), rights.on_machine(viewer.client, *key)
    )
    conditions = [each.to_json() for each in summary.status.conditions]
    return {
        "row": summary.to_json(),
        "conditions": conditions,
        "why": explain(taken, summary, viewer.clock.now()).to_json(),
        "leaving": _leaving(summary, taken, viewer.clock.now()),
        "events": events,
        "rights": allowed,
        "killSwitch": (whole.get("spec") or {}).get("killSwitch") is True,
        "yaml": _yaml(whole),
    }


def _yaml(whole: Raw) -> str:
    """The object as text, unless it is very long or deep."""
    with suppress(orjson.JSONEncodeError):
        if len(packed(whole)) <= YAML_MAX:
            return str(yaml.dump(whole, Dumper=_DUMPER, sort_keys=False, allow_unicode=True))
    metadata = whole["metadata"]
    command = f"kubectl get scheduledmachine {metadata['name']} -n {metadata['namespace']} -o yaml"
    return f"# The object is too large for this page. To read it:\n#   {command}\n"


async def _taken(viewer: Viewer, raw: Raw, summary: Summary) -> Snapshot:
    await viewer.shelf.settle()
    listed = viewer.listed_overrides(summary.namespace)
    tenancies = await classes.read_stored(viewer.client, [raw], ProviderPolicy())
    sources = Sources(snapshot.ShelvedCalendars(viewer.shelf.shelf), listed, tenancies)
    taken = await snapshot.take(viewer.client, raw, viewer.clock, sources)
    taken.unread.extend(tenancies.unread.values())
    taken.unread.extend(viewer.unread[each] for each in (SCHEDULE_OVERRIDES.kind,) if each in viewer.unread)
    return taken


def _leaving(summary: Summary, taken: Snapshot, now: datetime) -> Raw | None:
    """How far a shutdown is: its times, and the pods that it waits for; None for these if the user may not see them."""
    status = summary.status
    if status.phase is not Phase.SHUTTING_DOWN or status.shutdown_started_at is None:
        return None
    drain = drain_of(taken.world, now)
    waited_for = (*drain.to_evict, *drain.going, *drain.refused, *drain.awaited, *drain.later)
    return {
        "since": milliseconds(status.shutdown_started_at),
        "by": milliseconds(status.next_cleanup) if status.next_cleanup else None,
        "pods": None if taken.world.pods is None else sorted(f"{pod.namespace}/{pod.name}" for pod in waited_for),
        "said": summary.held_up or summary.message,
    }


async def _events(viewer: Viewer, raw: Raw) -> list[Raw] | None:
    """The latest Events, newest first; None if the user may not read them."""
    metadata = raw["metadata"]
    fields = f"regarding.name={metadata['name']},regarding.kind={SCHEDULED_MACHINES.kind}"
    try:
        page = await viewer.client.list_page(EVENTS, namespace=metadata["namespace"], fields=fields, limit=EVENTS_READ)
    except KubeError:
        return None
    found = [_event(viewer, each) for each in page.items if (each.get("regarding") or {}).get("uid") == metadata["uid"]]
    return sorted(found, key=lambda each: str(each["at"]), reverse=True)[:EVENTS_SHOWN]


def _event(viewer: Viewer, raw: Raw) -> Raw:
    series = raw.get("series") or {}
    at = series.get("lastObservedTime") or raw.get("eventTime") or raw["metadata"]["creationTimestamp"]
    shown = viewer.clock.shown_at(datetime.fromisoformat(at))
    return {
        "at": shown.isoformat(),
        "reason": raw.get("reason") or "",
        "note": raw.get("note") or "",
        "warning": raw.get("type") == "Warning",
    }

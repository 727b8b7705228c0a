"""Reads ScheduledMachines from a cluster with the user's rights, for the commands that show machines."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from crds import names, syntax
from crds.invalid import InvalidValue, shown
from crds.providers import ProviderPolicy
from service.clock import Clock, SystemClock
from service.commands import cluster
from service.commands.documents import Document
from service.commands.options import OPERATOR_NAMESPACE, ClusterChoice
from service.commands.storedcalendars import StoredCalendars, read_stored
from service.commands.table import UsageError
from service.commands.verdicts import judge
from service.decide.intent import Sources
from service.fleet import classes, snapshot
from service.fleet.explanation import Explanation, explain
from service.fleet.overrides import ListedOverrides
from service.fleet.summary import Summary
from service.kube.client import Client
from service.kube.errors import KubeError
from service.kube.resource import EVENTS, SCHEDULED_MACHINES

Raw = dict[str, Any]
EVENTS_SHOWN = 8
PAGE = 500


@dataclass(frozen=True, slots=True)
class Scope:
    """Which objects are asked for; no namespace means all of them."""

    namespace: str | None
    wanted: tuple[str, ...]
    labels: str | None = None
    clock: Clock = field(default_factory=SystemClock)
    """The clock that schedules follow there."""


class Occurrence(NamedTuple):
    """An Event, as far as it is shown."""

    at: datetime
    reason: str
    note: str
    warning: bool


class Details(NamedTuple):
    """One machine, and its latest events; None if the user may not read Events."""

    raw: Raw
    summary: Summary
    events: list[Occurrence] | None


def scope(access: ClusterChoice, namespace: str | None, wanted: list[str], *, all_namespaces: bool = False) -> Scope:
    """What the arguments ask for."""
    if all_namespaces and (namespace or wanted):
        raise UsageError("-A shows every namespace: give neither a NAME nor -n with it")
    if namespace:
        _require("--namespace", namespace, syntax.namespace)
    for each in wanted:
        _require("NAME", each, syntax.subdomain)
    try:
        clock = cluster.clock(access)
        if all_namespaces:
            return Scope(None, (), clock=clock)
        return Scope(namespace or cluster.default_namespace(access), tuple(wanted), clock=clock)
    except ValueError as error:
        raise UsageError(f"cannot read the kubeconfig: {error}") from None


def _require(what: str, given: str, parsed: Callable[[str], str]) -> None:
    try:
        parsed(given)
    except InvalidValue as error:
        raise UsageError(f"{what}: {shown(given)} {error}") from None


async def read_machines(access: ClusterChoice, asked: Scope) -> list[Raw]:
    """All machines of a namespace or a cluster, as stored."""
    async with await connected(access) as client:
        with readable("ScheduledMachines"):
            return await client.list(SCHEDULED_MACHINES, namespace=asked.namespace)


async def read_summaries(access: ClusterChoice, asked: Scope) -> list[Summary]:
    """All machines of a namespace or a cluster; read page by page, so that thousands need little memory."""
    found: list[Summary] = []
    async with await connected(access) as client:
        with readable("ScheduledMachines"):
            more: str | None = None
            while True:
                page = await client.list_page(
                    SCHEDULED_MACHINES, namespace=asked.namespace, labels=asked.labels, limit=PAGE, more=more
                )
                found.extend(Summary.read(each).without_details() for each in page.items)
                more = page.more
                if more is None:
                    return found


async def read_details(access: ClusterChoice, asked: Scope) -> list[Details]:
    """The machines named, each with its events."""
    async with await connected(access) as client:
        return [await _details(client, asked, name) for name in asked.wanted]


async def read_explanation(access: ClusterChoice, asked: Scope) -> Explanation:
    """Why the machine named is as it is."""
    async with await connected(access) as client:
        raw = await read_machine(client, asked, asked.wanted[0])
        tenancies = await classes.read_stored(client, [raw], ProviderPolicy())
        now = asked.clock.now()
        stored = await read_calendars(client, raw)
        shelf = await stored.shelf(now.date(), OPERATOR_NAMESPACE)
        overrides, refusal = await _overrides(client, raw["metadata"]["namespace"], now)
        sources = Sources(snapshot.ShelvedCalendars(shelf), overrides, tenancies)
        taken = await snapshot.take(client, raw, asked.clock, sources)
    taken.unread.extend([*stored.refused.values(), *refusal, *tenancies.unread.values()])
    return explain(taken, Summary.read(raw), now)


async def _overrides(client: Client, namespace: str, now: datetime) -> tuple[ListedOverrides, list[str]]:
    """The overrides of a namespace, and why they cannot be read, if so; a cluster without their kind has none."""
    try:
        return await snapshot.list_overrides(client, namespace, now), []
    except KubeError as error:
        return ListedOverrides(), [f"ScheduleOverrides of namespace {namespace}: {error.message}"]


async def read_calendars(client: Client, raw: Raw) -> StoredCalendars:
    """The calendars that the schedule of a machine names, as far as the user may read them."""
    judged = judge(Document("the cluster", 1, raw), ProviderPolicy())
    return await read_stored(client, [judged], OPERATOR_NAMESPACE)


async def _details(client: Client, asked: Scope, name: str) -> Details:
    raw = await read_machine(client, asked, name)
    return Details(raw, Summary.read(raw), await _events(client, raw, asked.clock))


async def read_machine(client: Client, asked: Scope, name: str) -> Raw:
    """One ScheduledMachine, as stored."""
    with readable(f"ScheduledMachine {name}"):
        found = await client.get(SCHEDULED_MACHINES, name, namespace=asked.namespace)
    return {"apiVersion": names.API_VERSION, "kind": names.KIND, **found}


async def _events(client: Client, raw: Raw, clock: Clock) -> list[Occurrence] | None:
    metadata = raw["metadata"]
    selector = f"regarding.name={metadata['name']},regarding.kind={names.KIND}"
    try:
        listed = await client.list(EVENTS, namespace=metadata["namespace"], fields=selector)
    except KubeError:
        return None
    found = [_occurrence(each, clock) for each in listed if (each.get("regarding") or {}).get("uid") == metadata["uid"]]
    return sorted(found, key=lambda each: each.at)[-EVENTS_SHOWN:]


def _occurrence(raw: Raw, clock: Clock) -> Occurrence:
    series = raw.get("series") or {}
    at = series.get("lastObservedTime") or raw.get("eventTime") or raw["metadata"]["creationTimestamp"]
    warning = raw.get("type") == "Warning"
    return Occurrence(
        clock.shown_at(datetime.fromisoformat(at)), raw.get("reason") or "", raw.get("note") or "", warning
    )


async def connected(access: ClusterChoice) -> Client:
    """A client of the cluster asked for."""
    try:
        return await cluster.connect(access)
    except (KubeError, ValueError) as error:
        raise UsageError(f"cannot connect to the cluster: {error}") from None


@contextmanager
def readable(what: str) -> Iterator[None]:
    """Turns a refusal of the API server into a sentence that names what could not be read."""
    try:
        yield
    except KubeError as error:
        raise UsageError(f"cannot read {what}: {error.message}") from None

"""Finds in a cluster what `5spot preview` is asked for, with the calendars and overrides that count for it."""

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from crds import names
from crds.providers import ProviderPolicy
from service.clock import Clock
from service.commands import cluster
from service.commands.documents import Document
from service.commands.options import ClusterChoice
from service.commands.storedcalendars import StoredCalendars, read_stored
from service.commands.table import UsageError
from service.commands.verdicts import Judged, judge
from service.commands.windows import DayRange, PreviewInput
from service.fleet import classes
from service.fleet.overrides import ListedOverrides
from service.fleet.snapshot import list_overrides
from service.kube.client import Client
from service.kube.errors import Forbidden, KubeError
from service.kube.resource import SCHEDULED_MACHINES


class Stored(NamedTuple):
    """Which objects of a cluster are asked for: those named, or all of the namespace."""

    wanted: list[str]
    namespace: str | None
    operator_namespace: str


def clock(stored: Stored, access: ClusterChoice) -> Clock:
    """The clock that schedules follow in that cluster."""
    with _explained(stored):
        return cluster.clock(access)


def of_cluster(stored: Stored, access: ClusterChoice, policy: ProviderPolicy, span: DayRange) -> PreviewInput:
    """The verdict on objects in a cluster, the calendars that they name, and the overrides about them."""
    with _explained(stored):
        judged, found, overrides = asyncio.run(_read(stored, access, policy))
    return PreviewInput(judged, found.source(span.today, stored.operator_namespace), overrides)


@contextmanager
def _explained(stored: Stored) -> Iterator[None]:
    try:
        yield
    except (KubeError, ValueError) as error:  # ValueError: the kubeconfig
        raise UsageError(f"cannot read from the cluster: {error}{_hint(stored.wanted)}") from None


def _hint(wanted: list[str]) -> str:
    """What to do if a file was meant."""
    files = [each for each in wanted if Path(each).exists()]
    if files:
        return f"; {files[0]} exists here, too: leave out -n to read it"
    return f"; if {wanted[0]} is a file, it does not exist here" if wanted else ""


async def _read(
    stored: Stored, access: ClusterChoice, policy: ProviderPolicy
) -> tuple[list[Judged], StoredCalendars, ListedOverrides]:
    namespace = stored.namespace or cluster.default_namespace(access)
    async with await cluster.connect(access) as client:
        found = await _machines(client, stored.wanted, namespace)
        documents = [Document("the cluster", 1, _whole(each)) for each in found]
        tenancies = await classes.read_stored(client, (each.content for each in documents), policy)
        judged = [judge(each, policy, tenancies) for each in documents]
        overrides = await _stored_overrides(client, namespace, cluster.clock(access))
        return judged, await read_stored(client, judged, stored.operator_namespace), overrides


async def _stored_overrides(client: Client, namespace: str, clock: Clock) -> ListedOverrides:
    """The overrides of a namespace; without the right to list them the windows are shown all the same."""
    try:
        return await list_overrides(client, namespace, clock.now())
    except Forbidden:
        sys.stderr.write(f"you may not list ScheduleOverrides in namespace {namespace}: they are not shown\n")
        return ListedOverrides()


async def _machines(client: Client, wanted: list[str], namespace: str) -> list[dict[str, Any]]:
    if wanted:
        return [await client.get(SCHEDULED_MACHINES, name, namespace=namespace) for name in wanted]
    found = await client.list(SCHEDULED_MACHINES, namespace=namespace)
    if not found:
        raise UsageError(f"there is no {names.KIND} in namespace {namespace}")
    return found


def _whole(raw: dict[str, Any]) -> dict[str, Any]:
    """As a manifest: the items of a list do not carry their kind."""
    return {"apiVersion": names.API_VERSION, "kind": names.KIND, **raw}

"""Everything that a decision about one ScheduledMachine needs, read once with the rights of the user.

The operator reads the same from its caches. What the user may not read is listed, so that no explanation claims more
than it knows.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from crds.calendars import CalendarReference, Calendars, CalendarShelf
from crds.providers import ProviderPolicy
from crds.status import Phase
from service.clock import Clock
from service.decide.intent import Intent, Sources, read_intent
from service.decide.manifests import child_name
from service.decide.world import Contract, Role, World
from service.fleet.overrides import ListedOverrides
from service.fleet.workload import read_node
from service.kube.client import Client
from service.kube.discovery import CapiResources, Discovery
from service.kube.errors import KubeError, NotFound
from service.kube.resource import SCHEDULE_OVERRIDES, SCHEDULED_MACHINES, Resource
from service.objects import views
from service.objects.lookup import get_or_none
from service.objects.subject import Subject
from service.runtime.key import Key

Raw = dict[str, Any]


@dataclass(slots=True)
class Snapshot:
    """The object, the world around it, and what could not be read."""

    subject: Subject
    world: World
    unread: list[str] = field(default_factory=list)
    """What the user may not read, or what did not answer, each with the reason."""

    @property
    def complete(self) -> bool:
        """Whether every input of the decision was read."""
        return not self.unread


@dataclass(frozen=True, slots=True)
class ShelvedCalendars:
    """Calendars that were read before; none of them is pending."""

    shelf: CalendarShelf

    def seen_from(self, namespace: str, references: Iterable[CalendarReference]) -> Calendars:
        """The calendars that a schedule of a namespace means by these names."""
        return self.shelf.seen_from(namespace, references)

    def pending(self, namespace: str, references: Iterable[CalendarReference]) -> bool:  # noqa: ARG002
        """Never: they were read before."""
        return False


async def take(client: Client, raw: Raw, clock: Clock, sources: Sources) -> Snapshot:
    """Reads the Cluster, the three objects of a ScheduledMachine, and its Node; `sources` were read before."""
    whole = {**SCHEDULED_MACHINES.envelope(), **raw}
    subject = _subject(whole, read_intent(whole, ProviderPolicy(), sources), clock)
    snapshot = Snapshot(subject, World(subject.me, subject.status, None, None))
    discovery = Discovery(client)
    try:
        capi = await discovery.capi()
    except KubeError as error:
        snapshot.unread.append(f"which version of Cluster API is installed: {error.message}")
        return snapshot
    if capi is None:
        return snapshot
    await _read_cluster(client, snapshot, capi)
    await _read_children(client, snapshot, capi, discovery)
    await _read_node(client, snapshot)
    return snapshot


async def list_overrides(client: Client, namespace: str | None, now: datetime) -> ListedOverrides:
    """The overrides of a namespace, or of all; none where their definition is not installed."""
    try:
        listed = await client.list(SCHEDULE_OVERRIDES, namespace=namespace)
    except NotFound:
        return ListedOverrides()
    return ListedOverrides.read(listed, now)


def _subject(raw: Raw, intent: Intent, clock: Clock) -> Subject:
    metadata = raw["metadata"]
    return Subject.read(Key(metadata["namespace"], metadata["name"]), raw, intent, clock)


async def _read_cluster(client: Client, snapshot: Snapshot, capi: CapiResources) -> None:
    snapshot.world = replace(snapshot.world, contract=Contract(capi.version))
    key = snapshot.subject.cluster
    raw = await _read(client, snapshot, capi.clusters, key) if key else None
    if raw is not None:
        snapshot.world = replace(snapshot.world, cluster=views.cluster(raw))


async def _read_children(client: Client, snapshot: Snapshot, capi: CapiResources, discovery: Discovery) -> None:
    for role in Role:
        resource = capi.machines if role is Role.MACHINE else await _provider_kind(snapshot, role, discovery)
        if resource is None:
            continue
        key = Key(snapshot.subject.key.namespace, child_name(snapshot.subject.key.name, role))
        raw = await _read(client, snapshot, resource, key)
        if raw is not None:
            snapshot.world = views.with_child(snapshot.world, role, resource, raw)


async def _read_node(client: Client, snapshot: Snapshot) -> None:
    machine, cluster = snapshot.world.our_machine, snapshot.subject.cluster
    if machine is None or machine.node_name is None or cluster is None:
        return
    draining = snapshot.subject.status.phase is Phase.SHUTTING_DOWN
    try:
        seen = await read_node(client, cluster, machine.node_name, with_pods=draining)
    except KubeError as error:
        snapshot.unread.append(f"Node {machine.node_name} of workload cluster {cluster.name}: {error.message}")
        return
    snapshot.world = replace(snapshot.world, node=seen.node, pods=seen.pods)


async def _provider_kind(snapshot: Snapshot, role: Role, discovery: Discovery) -> Resource | None:
    status, spec = snapshot.subject.status, snapshot.subject.intent.spec
    recorded = status.bootstrap_ref if role is Role.BOOTSTRAP else status.infrastructure_ref
    wanted = None
    if spec is not None:
        wanted = spec.bootstrap_spec if role is Role.BOOTSTRAP else spec.infrastructure_spec
    named = recorded or wanted
    return await discovery.resolve(named.api_version, named.kind) if named else None


async def _read(client: Client, snapshot: Snapshot, resource: Resource, key: Key) -> Raw | None:
    try:
        return await get_or_none(client, resource, key)
    except KubeError as error:
        snapshot.unread.append(f"{resource.kind} {key.name}: {error.message}")
        return None

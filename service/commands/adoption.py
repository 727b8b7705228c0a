"""Makes restored ScheduledMachines the owners of their Machines and provider objects again; for `5spot adopt`."""

import asyncio
from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final

from crds import names
from crds.classes import class_of
from service.clock import SystemClock
from service.commands import cluster
from service.commands.options import ClusterChoice
from service.decide.adoption import OURS, Adoption, examine
from service.decide.manifests import child_name
from service.decide.world import Identity, Role
from service.kube.client import Client
from service.kube.discovery import Discovery
from service.kube.errors import Conflict, KubeError, NotFound
from service.kube.resource import SCHEDULED_MACHINE_CLASSES, SCHEDULED_MACHINES, Resource
from service.objects.subject import identity_of

Raw = dict[str, Any]
FIELD_MANAGER: Final = "5spot-adopt"
ATTEMPTS: Final = 5
PAUSE_SECONDS: Final = 0.2


@dataclass(frozen=True, slots=True)
class AdoptionResult:
    """One object of a ScheduledMachine, and whether it was adopted."""

    namespace: str
    machine: str
    kind: str
    name: str
    outcome: str
    message: str = ""

    @property
    def failed(self) -> bool:
        """Whether the ScheduledMachine does not own this object."""
        return self.outcome in ("refused", "failed")

    def __str__(self) -> str:
        why = f": {self.message}" if self.message else ""
        return f"{self.namespace}/{self.machine}: {self.kind} {self.name} {self.outcome}{why}"

    def to_json(self) -> dict[str, str]:
        """As `-o json` prints it."""
        shown = {"namespace": self.namespace, "scheduledMachine": self.machine, "kind": self.kind, "name": self.name}
        message = {"message": self.message} if self.message else {}
        return {**shown, "outcome": self.outcome, **message}


async def adopt(
    wanted: Sequence[str], namespace: str | None, access: ClusterChoice, *, dry_run: bool
) -> list[AdoptionResult]:
    """Adopts the objects of the ScheduledMachines named, or of all; in every namespace if none is given."""
    async with await cluster.connect(access) as client:
        try:
            listed = await client.list(SCHEDULED_MACHINES, namespace=namespace)
        except NotFound as error:
            raise ValueError(f"this cluster has no {names.KIND}s: {error.message}") from None
        living = {each["metadata"]["uid"] for each in listed}
        adopter = Adopter(client, Discovery(client), living, dry_run=dry_run)
        return [result for raw in _chosen(listed, wanted) for result in await adopter.adopt(raw)]


def _chosen(listed: list[Raw], wanted: Sequence[str]) -> list[Raw]:
    if not wanted:
        return listed
    known = {each["metadata"]["name"]: each for each in listed}
    missing = [name for name in wanted if name not in known]
    if missing:
        raise ValueError(f"there is no {names.KIND} {missing[0]} in this namespace; name another with -n")
    return [known[name] for name in dict.fromkeys(wanted)]


class Adopter:
    """Adopts the objects of ScheduledMachines, one after the other."""

    def __init__(self, client: Client, discovery: Discovery, living: Collection[str], *, dry_run: bool) -> None:
        self._client = client
        self._discovery = discovery
        self._living = living
        self._dry_run = dry_run
        self._classes: dict[str, Raw] = {}

    async def adopt(self, raw: Raw) -> list[AdoptionResult]:
        """The result for each object of one ScheduledMachine that exists and that it does not own yet."""
        me = identity_of(raw, SystemClock())
        results: list[AdoptionResult] = []
        if me.deleting_since is not None:
            return results
        try:
            made_by = await self._class_of(raw) or raw
        except KubeError as error:
            why = f"it says of which kinds the objects are, and cannot be read: {error.message}"
            name = class_of(raw) or ""
            return [AdoptionResult(me.namespace, me.name, names.CLASS_KIND, name, "failed", why)]
        async for role, resource in self._kinds(made_by):
            result = await self._adopt_settled(role, resource, me)
            if result is None:
                continue
            results.append(result)
            if result.failed and role is Role.MACHINE:
                break  # the controller deletes provider objects without their Machine as leftovers
        return results

    async def _class_of(self, raw: Raw) -> Raw | None:
        """The class that a ScheduledMachine names: it says of which kinds the objects are."""
        name = class_of(raw)
        if name is None:
            return None
        if name not in self._classes:
            self._classes[name] = await self._client.get(SCHEDULED_MACHINE_CLASSES, name)
        return self._classes[name]

    async def _adopt_settled(self, role: Role, resource: Resource, me: Identity) -> AdoptionResult | None:
        """Tries again after a conflict: Cluster API writes to a restored Machine at the same time."""
        for _ in range(ATTEMPTS - 1):
            try:
                return await self._adopt_one(role, resource, me)
            except Conflict:
                await asyncio.sleep(PAUSE_SECONDS)
        try:
            return await self._adopt_one(role, resource, me)
        except Conflict as error:
            return AdoptionResult(
                me.namespace, me.name, resource.kind, child_name(me.name, role), "failed", error.message
            )

    async def _adopt_one(self, role: Role, resource: Resource, me: Identity) -> AdoptionResult | None:
        name = child_name(me.name, role)
        try:
            child = await self._client.get(resource, name, namespace=me.namespace)
        except NotFound:
            return None
        verdict = examine(role, child, me, self._living)
        if verdict == OURS:
            return None
        outcome, message = await self._own(resource, name, me, verdict)
        return AdoptionResult(me.namespace, me.name, resource.kind, name, outcome, message)

    async def _kinds(self, made_by: Raw) -> AsyncIterator[tuple[Role, Resource]]:
        """The kinds of the three objects, as far as the API server serves them; the Machine first.

        What they are made by, a ScheduledMachine or its class, has both specs.
        """
        capi = await self._discovery.capi()
        if capi is not None:
            yield Role.MACHINE, capi.machines
        spec = made_by.get("spec") or {}
        for role, envelope in ((Role.BOOTSTRAP, "bootstrapSpec"), (Role.INFRASTRUCTURE, "infrastructureSpec")):
            given = spec.get(envelope) or {}
            resource = await self._discovery.resolve(str(given.get("apiVersion")), str(given.get("kind")))
            if resource is not None and resource.namespaced:
                yield role, resource

    async def _own(self, resource: Resource, name: str, me: Identity, verdict: Adoption) -> tuple[str, str]:
        if verdict.patch is None:
            return "refused", verdict.refusal
        if self._dry_run:
            return "would be adopted", ""
        how: dict[str, Any] = {"namespace": me.namespace, "field_manager": FIELD_MANAGER}
        try:
            await self._client.patch(resource, name, verdict.patch, **how)
        except Conflict:
            raise
        except KubeError as error:
            return "failed", error.message
        return "adopted", ""

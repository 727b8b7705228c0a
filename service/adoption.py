"""Takes over what a backup brought back of ScheduledMachines, in a cluster; for `5spot adopt`."""

from collections.abc import AsyncIterator, Collection
from dataclasses import dataclass
from typing import Any, Final

from service.clock import SystemClock
from service.decide.adoption import OURS, Adoption, examine
from service.decide.manifests import child_name
from service.decide.world import Identity, Role
from service.kube.client import Client
from service.kube.discovery import Discovery
from service.kube.errors import KubeError, NotFound
from service.kube.resource import Resource
from service.objects.subject import me_of

Raw = dict[str, Any]
FIELD_MANAGER: Final = "5spot-adopt"


@dataclass(frozen=True, slots=True)
class Found:
    """One object of a ScheduledMachine, and what became of it."""

    namespace: str
    machine: str
    kind: str
    name: str
    outcome: str
    message: str = ""

    @property
    def failed(self) -> bool:
        """Whether the ScheduledMachine cannot carry on with this object."""
        return self.outcome in ("refused", "failed")

    def __str__(self) -> str:
        why = f": {self.message}" if self.message else ""
        return f"{self.namespace}/{self.machine}: {self.kind} {self.name} {self.outcome}{why}"

    def to_json(self) -> dict[str, str]:
        """As `-o json` prints it."""
        shown = {"namespace": self.namespace, "scheduledMachine": self.machine, "kind": self.kind, "name": self.name}
        return {**shown, "outcome": self.outcome, **({"message": self.message} if self.message else {})}


class Adopter:
    """Takes over the objects of ScheduledMachines, one after the other."""

    def __init__(self, client: Client, discovery: Discovery, living: Collection[str], *, dry_run: bool) -> None:
        self._client = client
        self._discovery = discovery
        self._living = living
        self._dry_run = dry_run

    async def adopt(self, raw: Raw) -> list[Found]:
        """What became of each object of one ScheduledMachine that exists and is not its own yet."""
        me, results = me_of(raw, SystemClock()), []
        if me.deleting_since is not None:
            return []
        async for role, resource in self._kinds(raw):
            found = await self._adopt_one(role, resource, me)
            results += [found] if found else []
            if found and found.failed and role is Role.MACHINE:
                break  # its parts without it would look like leftovers, which the controller deletes
        return results

    async def _adopt_one(self, role: Role, resource: Resource, me: Identity) -> Found | None:
        name = child_name(me.name, role)
        try:
            child = await self._client.get(resource, name, namespace=me.namespace)
        except NotFound:
            return None
        verdict = examine(role, child, me, self._living)
        if verdict == OURS:
            return None
        outcome, message = await self._take_over(resource, name, me, verdict)
        return Found(me.namespace, me.name, resource.kind, name, outcome, message)

    async def _kinds(self, raw: Raw) -> AsyncIterator[tuple[Role, Resource]]:
        """The kinds of the three objects that are served, the Machine first."""
        capi = await self._discovery.capi()
        if capi is not None:
            yield Role.MACHINE, capi.machines
        spec = raw.get("spec") or {}
        for role, envelope in ((Role.BOOTSTRAP, "bootstrapSpec"), (Role.INFRASTRUCTURE, "infrastructureSpec")):
            given = spec.get(envelope) or {}
            resource = await self._discovery.resolve(str(given.get("apiVersion")), str(given.get("kind")))
            if resource is not None and resource.namespaced:
                yield role, resource

    async def _take_over(self, resource: Resource, name: str, me: Identity, verdict: Adoption) -> tuple[str, str]:
        if verdict.patch is None:
            return "refused", verdict.refusal
        if self._dry_run:
            return "would be adopted", ""
        how: dict[str, Any] = {"namespace": me.namespace, "field_manager": FIELD_MANAGER}
        try:
            await self._client.patch(resource, name, verdict.patch, **how)
        except KubeError as error:
            return "failed", error.message
        return "adopted", ""

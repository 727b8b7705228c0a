"""Creates, patches and deletes the bootstrap, infrastructure and Machine objects of a ScheduledMachine."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from service.act.interruption import ChangedMeanwhile
from service.act.writer import Writer
from service.decide import manifests
from service.decide.plan import Create, Delete, Patch
from service.decide.world import Child, Role, World
from service.kube.client import Client
from service.kube.errors import AlreadyExists, Conflict, NotFound
from service.kube.resource import Resource
from service.objects.subject import Subject
from service.runtime.slots import CREATE, Lane, Slots


class Children:
    """Writes children; calls that a provider's webhook may delay wait for a slot."""

    def __init__(self, client: Client, writer: Writer, slots: Slots) -> None:
        self._client = client
        self._writer = writer
        self._slots = slots

    async def create(self, action: Create, subject: Subject, world: World) -> World:
        """The world with the new object, or with our own one that a crash or a lost answer left behind."""
        resource = await self._writer.resolve(action.manifest["apiVersion"], action.manifest["kind"])
        try:
            with await self._slot(CREATE, action, resource, subject):
                raw = await self._client.create(resource, dict(action.manifest), namespace=world.me.namespace)
        except AlreadyExists:
            seen = await self._existing(action, subject, world, resource)
            if seen is None:
                raise
            return seen
        return self._writer.absorb_child(subject, world, action.role, resource, raw)

    async def _existing(self, action: Create, subject: Subject, world: World, resource: Resource) -> World | None:
        """The world with the object that already exists, if it is ours and up to date; None if it is foreign."""
        raw = await self._get(resource, action.manifest["metadata"]["name"], world)
        seen = self._writer.absorb_child(subject, world, action.role, resource, raw)
        found = seen.child(action.role)
        if found is None or not found.ours:
            return None
        if found.deleting or _outdated(found, action):
            raise ChangedMeanwhile(f"{resource.kind} {found.name} is being deleted, or was created before an edit")
        return seen

    async def _get(self, resource: Resource, name: str, world: World) -> dict[str, Any]:
        try:
            return await self._client.get(resource, name, namespace=world.me.namespace)
        except NotFound as gone:
            raise ChangedMeanwhile(gone.message) from gone

    async def patch(self, action: Patch, subject: Subject, world: World) -> World:
        """The world with the object as patched."""
        resource = await self._writer.resource_of(world, action.role)
        precondition = {"uid": action.uid}
        if action.resource_version:
            precondition["resourceVersion"] = action.resource_version
        body = {**action.body, "metadata": {**action.body.get("metadata", {}), **precondition}}
        try:
            with await self._slot("patch", action, resource, subject):
                raw = await self._client.patch(
                    resource, action.name, body, namespace=world.me.namespace, subresource=action.subresource
                )
        except Conflict:
            await self._writer.refresh_child(resource, action.name, world.me.namespace)
            raise
        except NotFound as gone:
            raise ChangedMeanwhile(gone.message) from gone
        return self._writer.absorb_child(subject, world, action.role, resource, raw)

    async def delete(self, action: Delete, subject: Subject, world: World) -> World:
        """The world with the object being deleted, or without it if it has no finalizer."""
        resource = await self._writer.resource_of(world, action.role)
        seen = world.child(action.role)
        version = seen.resource_version if action.unchanged and seen else None
        try:
            with await self._slot("delete", action, resource, subject):
                raw = await self._client.delete(
                    resource, action.name, namespace=world.me.namespace, uid=action.uid, resource_version=version
                )
        except Conflict:
            await self._writer.refresh_child(resource, action.name, world.me.namespace)
            raise
        except NotFound as gone:
            if gone.missing_kind:  # the kind is not served at the moment: the object may still exist
                raise
            return self._writer.absorb_deletion(world, action.role, resource)
        if raw.get("kind") == "Status":  # it had no finalizer: it is gone
            return self._writer.absorb_deletion(world, action.role, resource)
        return self._writer.absorb_child(subject, world, action.role, resource, raw)

    async def _slot(
        self, verb: str, action: Create | Patch | Delete, resource: Resource, subject: Subject
    ) -> AbstractContextManager[None]:
        """A slot for a call to a provider's kind; Machines need none, as Cluster API answers for them."""
        if action.role is Role.MACHINE:
            return nullcontext()
        lane = Lane(resource.label, verb)
        await self._slots.until_free(lane)
        return self._slots.held(lane, subject.key)


def _outdated(found: Child, action: Create) -> bool:
    """Whether it was created before an edit, so that a Machine must not refer to it."""
    return action.role is not Role.MACHINE and not manifests.made_from(found, action.manifest)

"""Observes the bootstrap, infrastructure and Machine objects of a ScheduledMachine."""

from dataclasses import replace

from service.decide.manifests import child_name
from service.decide.world import Role, World
from service.kube.client import Client
from service.kube.errors import KubeError, NotFound
from service.objects import views
from service.objects.lookup import get_or_none
from service.objects.subject import Subject
from service.observe import kinds
from service.observe.watches import CapiInformers, Watches
from service.runtime.informer import Informer
from service.runtime.key import Key


class ChildObserver:
    """Reads children from caches, and from the API server where a cache lacks one that should exist."""

    def __init__(self, client: Client, watches: Watches) -> None:
        self._client = client
        self._watches = watches

    async def observe(self, subject: Subject, world: World, capi: CapiInformers | None) -> World:
        """The world with the children that exist."""
        for role in Role:
            world = await self._with_child(subject, world, role, capi)
        if world.machine is not None:
            return world
        return replace(world, other_operators_machine=_other_operators_machine(subject, capi))

    async def _with_child(self, subject: Subject, world: World, role: Role, capi: CapiInformers | None) -> World:
        """With the object of a role; a provider's object that cannot be read is part of the world."""
        if role is Role.MACHINE:
            return await self._with_object(subject, world, role, capi.machines if capi else None)
        try:
            return await self._with_object(subject, world, role, await self._informer(subject, role))
        except KubeError as error:
            return kinds.with_read_failure(world, role, error)

    async def _with_object(self, subject: Subject, world: World, role: Role, informer: Informer | None) -> World:
        if informer is None:
            return world
        key = Key(subject.key.namespace, child_name(subject.key.name, role))
        raw = informer.get(key)
        # The other children are deleted only if there is really no Machine, even one that the status never recorded.
        has_others = role is Role.MACHINE and world.children
        if raw is None and (has_others or views.recorded_uid(role, subject.status)):
            try:
                raw = await get_or_none(self._client, informer.resource, key)
            except NotFound as error:  # the kind is not served: the object may or may not exist
                return kinds.with_read_failure(world, role, error)
        return views.with_child(world, role, informer.resource, raw) if raw is not None else world

    async def _informer(self, subject: Subject, role: Role) -> Informer | None:
        """The cache of a provider's object; None if no such object can exist, because its kind is not served."""
        for kind in kinds.possible_kinds(subject, role):
            informer = await self._watches.providers.kind(*kind)
            if informer is not None:
                return informer
        recorded = kinds.recorded_kind(subject, role)
        if recorded is None:
            return None
        informer = await self._watches.providers.kind_of_any_version(*recorded)
        if informer is None:
            raise NotFound(f"{recorded[1]} in {recorded[0]} is not served any more, nor in another version")
        return informer


def _other_operators_machine(subject: Subject, capi: CapiInformers | None) -> str | None:
    """The Machine that the operator written in Rust created for the same object, under the object's own name."""
    raw = capi.machines.get(subject.key) if capi else None
    if raw is None:
        return None
    owners = raw["metadata"].get("ownerReferences") or ()
    return subject.key.name if any(owner.get("uid") == subject.me.uid for owner in owners) else None

"""The watches of providers' kinds; each runs while the API server serves the kind and a ScheduledMachine needs it."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import structlog

from crds import names
from service.kube.discovery import Discovery
from service.kube.errors import NotFound, Rejected, Unavailable
from service.kube.resource import Resource
from service.observe.indexes import kind_term
from service.observe.informers import InformerFactory
from service.runtime.cache import UNKNOWN_VERSION, Change, EventType
from service.runtime.informer import Informer

SYNC_SECONDS: Final = 15.0

FAILURES_THAT_LAST: Final = 3
"""After this many failed lists that the API server answered, a kind counts as broken until a person repairs it."""

SWEEP_SECONDS: Final = 300.0
"""How often the watches of providers' kinds are compared with what ScheduledMachines name; a comparison in memory."""

log = structlog.get_logger(__name__)


class NotListedError(Unavailable):
    """The API server cannot list a kind, such as without the webhook that converts it; retrying does not help."""


class ProviderWatches:
    """Watches children of providers' kinds that carry our label; `scheduled` is the cache of ScheduledMachines."""

    def __init__(self, factory: InformerFactory, discovery: Discovery, scheduled: Informer) -> None:
        self._factory = factory
        self._discovery = discovery
        self._scheduled = scheduled
        self._tasks: dict[Resource, asyncio.Task[None]] = {}
        self._unneeded: set[Resource] = set()
        """Kinds that the last sweep found unneeded."""
        self.informers: dict[Resource, Informer] = {}
        self.named_by_class: Callable[[Resource], bool] = lambda _resource: False
        """Whether a class makes objects of a kind."""

    async def kind(self, api_version: str, kind: str) -> Informer | None:
        """The cache of a provider's kind, watched from now on; None if it is not installed."""
        return await self._cache_of(await self._discovery.resolve(api_version, kind))

    async def kind_of_any_version(self, api_version: str, kind: str) -> Informer | None:
        """The cache of a kind in whatever version of its group is served; None if none is."""
        return await self._cache_of(await self._discovery.served(api_version.rpartition("/")[0], kind))

    async def resolve(self, api_version: str, kind: str) -> Resource:
        """The resource of a kind; `NotFound` if it is not served, `Rejected` if it is cluster-scoped."""
        resource = await self._discovery.resolve(api_version, kind)
        if resource is None:
            raise NotFound(f"{kind} in {api_version} is not served by this API server")
        if not resource.namespaced:
            raise Rejected(f"{kind} in {api_version} is not namespaced, so it cannot be one machine's own")
        return resource

    async def _cache_of(self, resource: Resource | None) -> Informer | None:
        if resource is None or not resource.namespaced:
            return None
        informer = self.informers.get(resource)
        if informer is None:
            informer = self._open(resource)
        if not informer.is_synced and informer.error is None:  # a watch that is known to fail is not waited for
            with suppress(Unavailable):
                await informer.listed(pause=SYNC_SECONDS)
        if informer.is_synced:
            return informer
        error = informer.error or Unavailable(f"{resource.label} cannot be listed: no answer")
        if isinstance(error, Unavailable) and error.status and informer.failures >= FAILURES_THAT_LAST:
            raise NotListedError(error.message, status=error.status) from error
        raise error

    def _open(self, resource: Resource) -> Informer:
        informer = self._factory.make(resource, self._factory.listener.child, labels=names.LABEL_OWNER)
        informer.on_restart(lambda reason: self._failed(informer, reason))
        self.informers[resource] = informer
        self._tasks[resource] = self._factory.run(informer)
        return informer

    async def run_sweeps(self) -> None:
        """Ends watches that no ScheduledMachine needs, until cancelled."""
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            self.sweep()

    def sweep(self) -> None:
        """Ends the watch of every kind that was needed neither now nor at the last sweep."""
        unneeded = {resource for resource, informer in self.informers.items() if not self._needed(resource, informer)}
        for resource in unneeded & self._unneeded:
            self._end(resource, "no ScheduledMachine names this kind")
        self._unneeded = unneeded

    def definition_deleted(self, name: str) -> None:
        """Ends the watch of the kind whose CustomResourceDefinition of that name was deleted."""
        for resource in [each for each in self.informers if each.label == name]:
            self._end(resource, "its CustomResourceDefinition was deleted")

    def _needed(self, resource: Resource, informer: Informer) -> bool:
        named = self._scheduled.count_by("kind", kind_term(resource.api_version, resource.kind))
        return named > 0 or len(informer) > 0 or self.named_by_class(resource)

    def _failed(self, informer: Informer, reason: str) -> None:
        self._factory.listener.restart(informer.resource.plural, reason)
        if reason == NotFound.__name__ and informer.failures >= FAILURES_THAT_LAST:
            self._discovery.forget(informer.resource.group)
            self._end(informer.resource, "the API server does not serve this kind any more")

    def _end(self, resource: Resource, why: str) -> None:
        """Ends a watch and drops its cache; the next pass that needs the kind opens both again."""
        informer = self.informers.pop(resource, None)
        if informer is None:
            return
        log.info("watch ended", kind=resource.label, why=why)
        self._tasks.pop(resource).cancel()
        listener = self._factory.listener
        listener.ended(resource)
        for key in informer:
            raw = informer.get(key)
            if raw is not None:
                listener.child(Change(EventType.CHANGED, key, raw, UNKNOWN_VERSION))

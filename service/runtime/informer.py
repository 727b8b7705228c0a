"""One kind of object, watched and cached, in all namespaces or in some of them."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextvars import Context
from dataclasses import replace
from typing import Any

from service.kube.client import Client
from service.kube.errors import KubeError, Unavailable
from service.kube.resource import Resource
from service.runtime.backoff import Backoff
from service.runtime.cache import Cache, Change, Index, Object, slim
from service.runtime.key import Key
from service.runtime.watch import PAGE, ListWatch, Reflector

_GONE: Object = {"kind": "Status"}


class Informer:
    """One cache and reflector per watched namespace, or one pair for the whole cluster."""

    def __init__(  # noqa: PLR0913 - what to watch, all by keyword
        self,
        client: Client,
        resource: Resource,
        *,
        namespaces: tuple[str, ...] = (),
        labels: str | None = None,
        fields: str | None = None,
        slim: Callable[[Object], Object] = slim,
        indexes: Mapping[str, Index] | None = None,
        metadata_only: bool = False,
        budget: int | None = None,
        page_size: int = PAGE,
        backoff: Backoff | None = None,
    ) -> None:
        self.resource = resource
        scopes: tuple[str | None, ...] = (None,)
        if resource.namespaced and namespaces:
            scopes = namespaces
        self._caches = {scope: Cache(slim=slim, indexes=indexes, budget=budget) for scope in scopes}
        everywhere = ListWatch(
            client, resource, labels=labels, fields=fields, metadata_only=metadata_only, page_size=page_size
        )
        self._reflectors = {
            scope: Reflector(replace(everywhere, namespace=scope), cache, backoff=backoff)
            for scope, cache in self._caches.items()
        }

    def listen(self, listener: Callable[[Change], None]) -> None:
        """Calls `listener` with every change from now on, except our own writes."""
        for cache in self._caches.values():
            cache.listen(listener)

    def on_restart(self, listener: Callable[[str], None]) -> None:
        """Calls `listener` with the reason whenever a watch breaks."""
        for reflector in self._reflectors.values():
            reflector.on_restart = listener

    def on_defect(self, listener: Callable[[str], None]) -> None:
        """Calls `listener` with what is wrong with an object that cannot be read."""
        for reflector in self._reflectors.values():
            reflector.on_defect = listener

    async def run(self) -> None:
        """Watches until cancelled."""
        async with asyncio.TaskGroup() as group:
            for reflector in self._reflectors.values():
                # It outlives the pass that started it, so its log lines must not carry the key of that pass.
                group.create_task(reflector.run(), context=Context())

    @property
    def is_synced(self) -> bool:
        """Whether all objects have been listed once."""
        return all(reflector.synced.is_set() for reflector in self._reflectors.values())

    async def synced(self, within: float | None = None) -> None:
        """Waits until all objects have been listed once; `Unavailable` after `within` seconds."""
        try:
            async with asyncio.timeout(within):
                for reflector in self._reflectors.values():
                    await reflector.synced.wait()
        except TimeoutError:
            raise Unavailable(f"{self.resource.label} cannot be listed: {self.error or 'no answer'}") from None

    async def listed(self, pause: float) -> None:
        """Likewise, however long lists are; `Unavailable` if no page comes for so many seconds, or a list fails."""
        while True:
            pages = self._pages
            try:
                await self.synced(within=pause)
            except Unavailable:
                if self._pages == pages or self.error is not None:
                    raise
            else:
                return

    @property
    def _pages(self) -> int:
        return sum(reflector.pages for reflector in self._reflectors.values())

    @property
    def error(self) -> KubeError | None:
        """Why a watch is not connected; None if all are."""
        return next((reflector.error for reflector in self._reflectors.values() if reflector.error), None)

    @property
    def failures(self) -> int:
        """How often the worst of the watches has failed in a row."""
        return max(reflector.failures for reflector in self._reflectors.values())

    @property
    def down_seconds(self) -> float:
        """For how long one of the watches has not been steady; 0 if all are."""
        return max(reflector.down_seconds() for reflector in self._reflectors.values())

    def position(self, namespace: str) -> int:
        """The cache contains all changes in a namespace up to this version; 0 before the first list."""
        reflector = self._reflectors.get(None) or self._reflectors.get(namespace)
        return reflector.position if reflector else 0

    def relist(self) -> None:
        """Lists again before watching on: the server may be another one now."""
        for reflector in self._reflectors.values():
            reflector.relist()

    def get(self, key: Key) -> Object | None:
        """A copy of the object, which the caller may change; None if there is none, or none that can be read."""
        cache = self._cache(key.namespace)
        return cache.get(key) if cache else None

    def unreadable(self, key: Key) -> str | None:
        """Why the content of the object is unknown; None if it is known."""
        cache = self._cache(key.namespace)
        return cache.unreadable(key) if cache else None

    def version(self, key: Key) -> int | None:
        """The version of the object; None if there is none, or none that can be read."""
        cache = self._cache(key.namespace)
        return cache.version(key) if cache else None

    def absorb(self, raw: dict[str, Any], *, notify: bool = False) -> bool:
        """Stores the answer to a request; `notify` if it may contain changes of others. Returns whether it was new."""
        cache = self._cache(raw["metadata"].get("namespace", ""))
        return cache is not None and cache.absorb(raw, notify=notify)

    def absorb_deletion(self, key: Key, uid: str) -> None:
        """Removes an object that was deleted."""
        cache = self._cache(key.namespace)
        if cache is not None:
            cache.absorb_deletion(key, uid, _GONE)

    def keys_by(self, index: str, value: str) -> frozenset[Key]:
        """Keys of the objects that have `value` in an index."""
        return frozenset().union(*(cache.keys_by(index, value) for cache in self._caches.values()))

    def count_by(self, index: str, value: str) -> int:
        """How many objects have `value` in an index."""
        return sum(cache.count_by(index, value) for cache in self._caches.values())

    def __iter__(self) -> Iterator[Key]:
        for cache in self._caches.values():
            yield from cache

    def __contains__(self, key: Key) -> bool:
        cache = self._cache(key.namespace)
        return cache is not None and key in cache

    def __len__(self) -> int:
        return sum(len(cache) for cache in self._caches.values())

    def _cache(self, namespace: str) -> Cache | None:
        return self._caches[None] if None in self._caches else self._caches.get(namespace)

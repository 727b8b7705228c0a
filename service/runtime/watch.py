"""Keeps a cache in step with an API server: one list, then a watch, for as long as the process runs.

A watch that breaks resumes at the last version. If the server no longer knows that version, the reflector lists again
and compares, so that it misses no deletion.
"""

import asyncio
import random
import time
import weakref
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, aclosing, nullcontext
from dataclasses import dataclass, replace
from math import inf
from typing import Protocol

import structlog

from service.kube.client import IDLE_SECONDS, Client, Page
from service.kube.decode import WatchEvent
from service.kube.errors import Expired, Forbidden, KubeError, NotFound, Unavailable, Unreadable
from service.kube.pace import Pace
from service.kube.resource import Resource
from service.runtime.backoff import Backoff
from service.runtime.cache import Cache
from service.runtime.defects import Defect, Mark
from service.runtime.identity import Object, key_of, version_of
from service.runtime.key import Key

log = structlog.get_logger()

PAGE = 250
"""A page of larger ones takes more memory for a moment than the cache does for long, and the process keeps it."""
# A list that is older than the cache comes from a lagging server; if it stays older, from a restored backup.
MAX_STALE_LISTS = 4
_STEADY_SECONDS = 5.0
_REFUSED_FACTOR = 6
"""The longest pause is this many times longer after an error that only a user can fix, such as a missing role."""


class ListerWatcher(Protocol):
    """Lists and watches objects."""

    async def list_page(self, more: str | None) -> Page:
        """Part of the list."""
        ...

    def watch(self, resource_version: str, on_open: Callable[[], None]) -> AsyncGenerator[WatchEvent, None]:
        """Changes since a version; `on_open` is called as soon as the server has accepted the watch."""
        ...


@dataclass(slots=True)
class ListWatch:
    """Lists and watches one kind, optionally in one namespace or with a selector."""

    client: Client
    resource: Resource
    namespace: str | None = None
    labels: str | None = None
    fields: str | None = None
    metadata_only: bool = False
    idle_seconds: float = IDLE_SECONDS
    page_size: int = PAGE
    _reduced_size: int | None = None
    """The page size until the end of a list, after larger pages had too many bytes."""

    def __str__(self) -> str:
        return self.resource.label

    async def list_page(self, more: str | None) -> Page:
        """Part of the list, from a consistent snapshot."""
        size = self.page_size
        if more and self._reduced_size:
            size = self._reduced_size
        page = await self.client.list_page(
            self.resource,
            namespace=self.namespace,
            labels=self.labels,
            fields=self.fields,
            limit=size,
            more=more,
            metadata_only=self.metadata_only,
        )
        self._reduced_size = page.limit
        return page

    def watch(self, resource_version: str, on_open: Callable[[], None]) -> AsyncGenerator[WatchEvent, None]:
        """A watch that the server ends after 5 to 10 minutes; the exact time is random."""
        return self.client.watch(
            self.resource,
            resource_version,
            namespace=self.namespace,
            labels=self.labels,
            fields=self.fields,
            metadata_only=self.metadata_only,
            timeout_seconds=300 + int(300 * random.random()),  # noqa: S311 - spreads load, hides nothing
            idle_seconds=self.idle_seconds,
            on_open=on_open,
        )


class Reflector:
    """Fills a cache by list and watch. `synced` is set once the cache is complete, and stays set."""

    def __init__(
        self,
        source: ListerWatcher,
        cache: Cache,
        *,
        backoff: Backoff | None = None,
        relisting: AbstractAsyncContextManager[object] | None = None,
    ) -> None:
        self.synced = asyncio.Event()
        self.pages = 0
        """How many pages of lists have come, so that a long list can be told from one that does not come."""
        self.error: KubeError | None = None
        """Why there is no connection now; None if there is one."""
        self.on_restart: Callable[[str], None] | None = None
        """Called with the reason whenever a watch breaks."""
        self.on_connected: Callable[[], None] | None = None
        """Called when the server answers for the first time, and for the first time after a failure."""
        self.on_defect: Callable[[str], None] | None = None
        """Called with what is wrong with an object that cannot be read: once, until it can be read again."""
        self.failures = 0
        """Failures in a row."""
        self._source = source
        self._cache = cache
        self._backoff = backoff or Backoff(base=1.0, cap=10.0, jitter=0.5)
        self._refused_backoff = replace(self._backoff, cap=_REFUSED_FACTOR * self._backoff.cap)
        # Reflectors that share a lock list one after the other, which limits memory and load after an outage.
        self._relisting = relisting or nullcontext()
        self._position: int | None = None
        self._stale_lists = 0
        self._expired = False
        self._watching_since = inf
        self._live_at = time.monotonic()
        self._pace = Pace()
        cache.on_defect = _weakly(self._defective)

    @property
    def position(self) -> int:
        """The cache contains all changes up to this version; 0 before the first list, and before a relist."""
        return self._position or 0

    def down_seconds(self) -> float:
        """For how long there has been no steady watch; 0 if there is one."""
        now = time.monotonic()
        if now - self._watching_since > _STEADY_SECONDS:
            return 0.0
        return now - self._live_at

    async def run(self) -> None:
        """Lists and watches until cancelled; backs off while the server fails."""
        while True:
            try:
                await self.list_and_watch()
            except KubeError as error:
                await asyncio.sleep(self.failed(error))

    async def list_and_watch(self) -> None:
        """Lists if necessary, then watches until the server ends the watch, as it does every few minutes."""
        if self._position is None:
            async with self._relisting:
                self._position = await self._relist()
            self._healthy()
        async with aclosing(self._source.watch(str(self._position), self._opened)) as events:
            async for event in events:
                if self._position is None:
                    return  # `relist` was called: this event still comes from the old server
                self._position = self._apply(event)
        if not self._was_steady():
            raise Unavailable("the watch ended as soon as it began")

    def failed(self, error: KubeError) -> float:
        """Records a failure; returns the seconds to wait before the next try."""
        if self.error is None:
            log.warning("watch lost", kind=str(self._source), reason=error.message)
        self.error = error
        self.failures = 1 if self._was_steady() else self.failures + 1
        if isinstance(error, Expired | NotFound) or _too_large(error):
            self._position = None
        if self.on_restart is not None:
            self.on_restart(type(error).__name__)
        expired_before = self._expired
        self._expired = isinstance(error, Expired)
        first_expiry = self.failures == 1 or not expired_before
        if self._expired and first_expiry:
            return 0.0  # the server works: list again at once
        backoff = self._refused_backoff if isinstance(error, Forbidden | NotFound) else self._backoff
        pause = backoff.seconds(self.failures, random.random())  # noqa: S311 - spreads load
        return max(pause, error.retry_after or 0.0)

    def relist(self) -> None:
        """Lists again before watching on: the server may be another one now, with versions of its own."""
        self._position = None
        self._cache.forget_versions()

    async def _relist(self) -> int:
        page = await self._page(None)
        version = version_of({"metadata": {"resourceVersion": page.resource_version}})
        self._check_fresh(version)
        seen: set[Key] = set()
        while True:
            for raw in page.items:
                seen.add(self._store(raw, page.too_large))
                await self._pace.spent(0)
            if page.more is None:
                break
            page = await self._page(page.more)
        self._cache.keep_only(seen, version)
        return version

    async def _page(self, more: str | None) -> Page:
        page = await self._source.list_page(more)
        self.pages += 1
        return page

    def _check_fresh(self, version: int) -> None:
        if version >= self._cache.newest:
            self._stale_lists = 0
            return
        self._stale_lists += 1
        if self._stale_lists < MAX_STALE_LISTS:
            raise Unavailable(f"the list has version {version}, older than version {self._cache.newest} seen before")
        self._stale_lists = 0
        self._cache.forget_versions()

    def _apply(self, event: WatchEvent) -> int:
        match event.type:
            case "ADDED" | "MODIFIED":
                self._store(event.object, event.too_large)
            case "DELETED":
                self._remove(event.object)
            case "BOOKMARK" if version_of(event.object) < self.position:
                raise Expired("the server went back to an older version")
        try:
            return version_of(event.object)
        except Unreadable:
            if event.type == "BOOKMARK":
                raise
            return self.position

    def _store(self, raw: Object, too_large: str) -> Key:
        """Stores an object; one that cannot be read does not affect the others."""
        if too_large:
            return self._cache.mark_unreadable(raw, Defect.TOO_LARGE, too_large)
        try:
            self._cache.upsert(raw)
            return key_of(raw)
        except Unreadable as error:
            return self._cache.mark_unreadable(raw, Defect.MALFORMED, error.message)

    def _remove(self, raw: Object) -> None:
        try:
            self._cache.remove(raw)
        except Unreadable as error:
            # A new list shows which one is missing.
            raise Expired(f"an object was deleted, but its name cannot be read: {error.message}") from error

    def _defective(self, key: Key, mark: Mark) -> None:
        done = "kept without its deepest levels" if mark.defect is Defect.TOO_DEEP else "ignored until it changes"
        fields = {"kind": str(self._source), "name": str(key), "reason": str(mark.defect), "why": mark.why}
        log.warning("an object cannot be read", done=done, **fields)
        if self.on_defect is not None:
            self.on_defect(mark.defect)

    def _was_steady(self) -> bool:
        since = self._watching_since
        self._watching_since = inf
        now = time.monotonic()
        steady = now - since > _STEADY_SECONDS
        if steady:
            self._live_at = now
        return steady

    def _opened(self) -> None:
        self._watching_since = time.monotonic()
        self._healthy()

    def _healthy(self) -> None:
        if self.error is None and self.synced.is_set():
            return
        if self.error is not None:
            log.info("watch resumed", kind=str(self._source))
        self.error = None
        self.synced.set()
        if self.on_connected is not None:
            self.on_connected()


def _weakly(method: Callable[[Key, Mark], None]) -> Callable[[Key, Mark], None]:
    """The method without a reference to its reflector, which would make a cycle that only garbage collection frees."""
    reference = weakref.WeakMethod(method)

    def call(key: Key, mark: Mark) -> None:
        bound = reference()
        if bound is not None:
            bound(key, mark)

    return call


def _too_large(error: KubeError) -> bool:
    return any(cause.reason == "ResourceVersionTooLarge" for cause in error.causes)

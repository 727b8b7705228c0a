"""Keeps a cache true to an API server: one list, then a watch, for as long as the process lives.

Lost connections are resumed where they broke; when the server no longer remembers that point, everything is listed
again and compared, so that a deletion that happened meanwhile is not missed.
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

PAGE = 500
# A list older than what we know comes from a lagging server; one that stays old, from a restored backup.
STALE_LISTS_BEFORE_BELIEVING = 4
_STEADY_SECONDS = 5.0
_REFUSED_FACTOR = 6
"""So many times longer is the longest pause after an answer that only a person changes, such as by a role."""


class Source(Protocol):
    """Where objects come from."""

    async def page(self, more: str | None) -> Page:
        """Part of the list."""
        ...

    def follow(self, resource_version: str, on_open: Callable[[], None]) -> AsyncGenerator[WatchEvent, None]:
        """Changes since a version; `on_open` is called as soon as they are on their way."""
        ...


@dataclass(slots=True)
class Objects:
    """The objects of one kind, perhaps in one namespace or with certain labels."""

    client: Client
    resource: Resource
    namespace: str | None = None
    labels: str | None = None
    fields: str | None = None
    metadata_only: bool = False
    idle_seconds: float = IDLE_SECONDS
    page_size: int = PAGE
    _fewer: int | None = None
    """How many are asked for until the end of a list, since more of them were too large."""

    def __str__(self) -> str:
        return self.resource.label

    async def page(self, more: str | None) -> Page:
        """Part of the list, from a consistent snapshot."""
        size = self._fewer if more and self._fewer else self.page_size
        page = await self.client.list_page(
            self.resource,
            namespace=self.namespace,
            labels=self.labels,
            fields=self.fields,
            limit=size,
            more=more,
            metadata_only=self.metadata_only,
        )
        self._fewer = page.limit
        return page

    def follow(self, resource_version: str, on_open: Callable[[], None]) -> AsyncGenerator[WatchEvent, None]:
        """A watch; the server ends it after 5 to 10 minutes, each one at another moment."""
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
    """Runs list and watch into a cache. `synced` is set once the cache is complete, and stays set."""

    def __init__(
        self,
        source: Source,
        cache: Cache,
        *,
        backoff: Backoff | None = None,
        relisting: AbstractAsyncContextManager[object] | None = None,
    ) -> None:
        self.synced = asyncio.Event()
        self.error: KubeError | None = None
        """Why there is no connection at the moment, if there is none."""
        self.on_restart: Callable[[str], None] | None = None
        """Told the reason whenever a watch broke."""
        self.on_connected: Callable[[], None] | None = None
        """Told whenever the server is heard after a failure, and the first time."""
        self.on_defect: Callable[[str], None] | None = None
        """Told what is wrong with an object that cannot be read: once, until it can be read again."""
        self.failures = 0
        """Failures in a row."""
        self._source = source
        self._cache = cache
        self._backoff = backoff or Backoff(base=1.0, cap=10.0, jitter=0.5)
        self._refused = replace(self._backoff, cap=_REFUSED_FACTOR * self._backoff.cap)
        # Reflectors that share a lock list one after the other, which keeps memory and load flat after an outage.
        self._relisting = relisting or nullcontext()
        self._position: int | None = None
        self._stale_lists = 0
        self._expired = False
        self._following_since = inf
        self._live_at = time.monotonic()
        self._pace = Pace()
        defective = weakref.WeakMethod(self._defective)

        def report(key: Key, mark: Mark) -> None:
            # The cache outlives its reflector; if it held it, both would wait for a search for cycles to be freed.
            told = defective()
            if told is not None:
                told(key, mark)

        cache.on_defect = report

    @property
    def position(self) -> int:
        """Everything up to this version has been taken in; 0 before the first list, and before a list that is due."""
        return self._position or 0

    def down_seconds(self) -> float:
        """For how long there has been no watch that lasted; 0 if there is one."""
        now = time.monotonic()
        return 0.0 if now - self._following_since > _STEADY_SECONDS else now - self._live_at

    async def run(self) -> None:
        """Never returns; cancel it. Failures of the server are waited out."""
        while True:
            try:
                await self.follow()
            except KubeError as error:
                await asyncio.sleep(self.failed(error))

    async def follow(self) -> None:
        """Lists if need be, then watches until the server ends the watch, as it does every few minutes."""
        if self._position is None:
            async with self._relisting:
                self._position = await self._relist()
            self._healthy()
        async with aclosing(self._source.follow(str(self._position), self._opened)) as events:
            async for event in events:
                if self._position is None:
                    return  # told to start over, and this is still from where we were
                self._position = self._take(event)
        if not self._was_steady():
            raise Unavailable("the watch ended as soon as it began")

    def failed(self, error: KubeError) -> float:
        """Takes note of a failure; the seconds to wait before following on."""
        if self.error is None:
            log.warning("watch lost", kind=str(self._source), reason=error.message)
        self.error = error
        self.failures = 1 if self._was_steady() else self.failures + 1
        if isinstance(error, Expired | NotFound) or _too_large(error):
            self._position = None
        if self.on_restart is not None:
            self.on_restart(type(error).__name__)
        expired_again, self._expired = self._expired, isinstance(error, Expired)
        if self._expired and (self.failures == 1 or not expired_again):
            return 0.0  # nothing is wrong with the server, any more: list again at once
        backoff = self._refused if isinstance(error, Forbidden | NotFound) else self._backoff
        pause = backoff.seconds(self.failures, random.random())  # noqa: S311 - spreads load
        return max(pause, error.retry_after or 0.0)

    def start_over(self) -> None:
        """The server may be another one now: its versions mean nothing here, so list again before following on."""
        self._position = None
        self._cache.forget_versions()

    async def _relist(self) -> int:
        page = await self._source.page(None)
        version = version_of({"metadata": {"resourceVersion": page.resource_version}})
        self._check_fresh(version)
        seen: set[Key] = set()
        while True:
            for raw in page.items:
                seen.add(self._store(raw, page.too_large))
                await self._pace.spent(0)
            if page.more is None:
                break
            page = await self._source.page(page.more)
        self._cache.keep_only(seen, version)
        return version

    def _check_fresh(self, version: int) -> None:
        if version >= self._cache.newest:
            self._stale_lists = 0
            return
        self._stale_lists += 1
        if self._stale_lists < STALE_LISTS_BEFORE_BELIEVING:
            raise Unavailable(f"the list is as of version {version}, older than {self._cache.newest} seen before")
        self._stale_lists = 0
        self._cache.forget_versions()

    def _take(self, event: WatchEvent) -> int:
        match event.type:
            case "ADDED" | "MODIFIED":
                self._store(event.object, event.too_large)
            case "DELETED":
                self._remove(event.object)
            case "BOOKMARK" if version_of(event.object) < self.position:
                raise Expired("the server's history went back")
        try:
            return version_of(event.object)
        except Unreadable:
            if event.type == "BOOKMARK":
                raise
            return self.position

    def _store(self, raw: Object, too_large: str) -> Key:
        """Takes in an object; what cannot be read costs nobody the others."""
        if too_large:
            return self._cache.skip(raw, Defect.TOO_LARGE, too_large)
        try:
            self._cache.upsert(raw)
            return key_of(raw)
        except Unreadable as error:
            return self._cache.skip(raw, Defect.MALFORMED, error.message)

    def _remove(self, raw: Object) -> None:
        try:
            self._cache.remove(raw)
        except Unreadable as error:
            # Which one it was is seen by what is missing.
            raise Expired(f"an object was deleted, but which one cannot be told: {error.message}") from error

    def _defective(self, key: Key, mark: Mark) -> None:
        done = "kept without its depths" if mark.defect is Defect.TOO_DEEP else "ignored until it changes"
        told = {"kind": str(self._source), "name": str(key), "reason": str(mark.defect), "why": mark.why}
        log.warning("an object cannot be read", done=done, **told)
        if self.on_defect is not None:
            self.on_defect(mark.defect)

    def _was_steady(self) -> bool:
        since, self._following_since = self._following_since, inf
        now = time.monotonic()
        steady = now - since > _STEADY_SECONDS
        if steady:
            self._live_at = now
        return steady

    def _opened(self) -> None:
        self._following_since = time.monotonic()
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


def _too_large(error: KubeError) -> bool:
    return any(cause.reason == "ResourceVersionTooLarge" for cause in error.causes)

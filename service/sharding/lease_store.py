"""The Leases of all shards as this replica sees them, and the requests that change them; used by the shard manager."""

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

from crds import names
from service.kube.client import Client
from service.kube.errors import NotFound, Unavailable
from service.kube.resource import LEASES
from service.kube.transport import Limits
from service.runtime.cache import Change, EventType
from service.runtime.informer import Informer
from service.sharding.fence import RealTime
from service.sharding.leases import DELETED, LeaseRecord, LeaseTimes
from service.sharding.shard import Shard

Raw = dict[str, Any]

WANTED_BY: Final = f"{names.GROUP}/wanted-by"
LABELS: Final = {names.LABEL_MANAGED_BY: names.MANAGED_BY, f"{names.GROUP}/lease": "shard"}
SELECTOR: Final = ",".join(f"{key}={value}" for key, value in LABELS.items())


class LeaseStore:
    """What is known of every Lease of ours. Each write is conditional on the version that was seen."""

    def __init__(self, client: Client, namespace: str, times: LeaseTimes, clock: RealTime) -> None:
        # With connections of its own: a renewal must not queue behind the writes that it allows.
        limits = Limits(calls=0, call_seconds=times.request, connect_seconds=times.request)
        self._client = Client(client.transport.endpoint, client.transport.credentials, limits=limits)
        self._namespace = namespace
        self._times = times
        self._clock = clock
        self._sights: dict[Shard, LeaseRecord] = {}
        self._watch = Informer(self._client, LEASES, namespaces=(namespace,), labels=SELECTOR)
        self._watch.listen(self._changed)
        self.on_news: Callable[[Shard], None] = lambda _shard: None

    @property
    def client(self) -> Client:
        """The connections that are kept for Leases."""
        return self._client

    async def run(self) -> None:
        """Follows the Leases until cancelled."""
        await self._watch.run()

    async def synced(self, within: float | None = None) -> None:
        """Waits until all Leases have been seen once; `Unavailable` if that takes longer than `within` seconds."""
        await self._watch.synced(within)

    async def close(self) -> None:
        """Closes the connections."""
        await self._client.close()

    def sight(self, shard: Shard) -> LeaseRecord | None:
        """The Lease of a shard as last seen; None if there is none."""
        return self._sights.get(shard)

    def __iter__(self) -> Iterator[LeaseRecord]:
        return iter(tuple(self._sights.values()))

    async def look(self) -> None:
        """Asks for all Leases: what it finds is no older than the moment of asking."""
        before = dict(self._sights)
        async with self._in_time("list leases"):
            listed = await self._client.list(LEASES, namespace=self._namespace, labels=SELECTOR)
        found = {self._answered(raw, before) for raw in listed}
        for gone in set(before) - found:
            if self._sights.get(gone) is before[gone]:  # else it was heard of after the list was made
                self._vanished(gone)

    async def read(self, shard: Shard) -> LeaseRecord | None:
        """Asks for one Lease; None if there is none."""
        before = dict(self._sights)
        async with self._in_time(f"get lease {shard.lease_name}"):
            try:
                self._answered(await self._client.get(LEASES, shard.lease_name, namespace=self._namespace), before)
            except NotFound:
                self._vanished(shard)
        return self.sight(shard)

    async def take(self, shard: Shard, holder: str) -> None:
        """Makes `holder` the holder, if the Lease is still as it was seen."""
        seen, now = self.sight(shard), _micro(datetime.now(UTC))
        spec = {
            "holderIdentity": holder,
            "leaseDurationSeconds": math.ceil(self._times.duration),
            "acquireTime": now,
            "renewTime": now,
        }
        if seen is None or seen.deleted:
            await self._create(shard, spec)
        else:
            # With its labels, as somebody may have taken them off: all replicas look for Leases by them.
            metadata = {"labels": LABELS, "annotations": {WANTED_BY: None}}
            await self._write(seen, {**spec, "leaseTransitions": seen.transitions + 1}, metadata)

    async def renew(self, seen: LeaseRecord) -> None:
        """Tells everybody that the holder is alive."""
        await self._write(seen, {"holderIdentity": seen.holder, "renewTime": _micro(datetime.now(UTC))})

    async def release(self, seen: LeaseRecord) -> None:
        """Leaves the Lease to whoever comes first."""
        await self._write(seen, {"holderIdentity": None})

    async def claim(self, seen: LeaseRecord, who: str) -> None:
        """Asks the holder, who may be looking after the shard for us, to hand it over."""
        await self._write(seen, {}, {"annotations": {WANTED_BY: who}})

    async def remove(self, seen: LeaseRecord) -> None:
        """Deletes a Lease that is nobody's."""
        if not seen.deleted:
            async with self._in_time(f"delete lease {seen.shard.lease_name}"):
                with suppress(NotFound):
                    await self._client.delete(
                        LEASES, seen.shard.lease_name, namespace=self._namespace, resource_version=str(seen.version)
                    )
        self._sights.pop(seen.shard, None)

    async def _create(self, shard: Shard, spec: Raw) -> None:
        metadata = {"name": shard.lease_name, "labels": LABELS}
        body = {**LEASES.envelope(), "metadata": metadata, "spec": {**spec, "leaseTransitions": 0}}
        async with self._in_time(f"create lease {shard.lease_name}"):
            self.note(await self._client.create(LEASES, body, namespace=self._namespace))

    async def _write(self, seen: LeaseRecord, spec: Raw, metadata: Raw | None = None) -> None:
        body = {"metadata": {**(metadata or {}), "resourceVersion": str(seen.version)}, "spec": spec}
        async with self._in_time(f"patch lease {seen.shard.lease_name}"):
            self.note(await self._client.patch(LEASES, seen.shard.lease_name, body, namespace=self._namespace))

    def _changed(self, change: Change) -> None:
        shard = Shard.of_lease(change.key.name)
        if change.type is not EventType.DELETED:
            self.note(change.object)
        elif shard is not None:
            self._vanished(shard)
        if shard is not None:
            self.on_news(shard)

    def _answered(self, raw: Raw, before: dict[Shard, LeaseRecord]) -> Shard | None:
        """Takes in what we asked for; `before` is what was known then.

        Older than that, it tells that the server's history went back (restored from a backup): its word counts, or each
        write of ours would conflict for ever. But whoever held the Lease last may not know yet, so that counts for as
        long as it would have.
        """
        shard = Shard.of_lease(raw["metadata"]["name"])
        known = before.get(shard) if shard is not None else None
        if known is not None and known.shard not in self._sights:
            return shard  # removed by us since: whoever held it would seem to live
        version = int(raw["metadata"]["resourceVersion"])
        if known is not None and version < known.version:
            if known.live(self._clock()):
                self._sights[known.shard] = replace(known, version=version)
                return shard
            self._sights.pop(known.shard, None)
        return self.note(raw)

    def note(self, raw: Raw) -> Shard | None:
        """Takes in a Lease, however it came to us; the newest wins."""
        shard = Shard.of_lease(raw["metadata"]["name"])
        if shard is None:
            return None
        known, fresh = self._sights.get(shard), _sight(shard, raw, self._clock())
        if known is None or fresh.version > known.version:
            same = known is not None and known.same_hold(fresh)
            self._sights[shard] = replace(fresh, since=known.since) if known is not None and same else fresh
        return shard

    def _vanished(self, shard: Shard) -> None:
        """Somebody deleted a Lease: whoever held it may not know yet, so it counts for as long as it would have."""
        if shard in self._sights:
            self._sights[shard] = replace(self._sights[shard], version=DELETED)

    def _in_time(self, what: str) -> AbstractAsyncContextManager[None]:
        return in_time(self._times.request, what)


@asynccontextmanager
async def in_time(seconds: float, what: str) -> AsyncIterator[None]:
    """Gives up a request that has no answer after so many seconds: `Unavailable`."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise Unavailable(f"{what}: no answer in time") from None


def _sight(shard: Shard, raw: Raw, now: float) -> LeaseRecord:
    spec, annotations = raw.get("spec") or {}, raw["metadata"].get("annotations") or {}
    return LeaseRecord(
        shard=shard,
        version=int(raw["metadata"]["resourceVersion"]),
        holder=spec.get("holderIdentity") or "",
        renewal=spec.get("renewTime") or "",
        duration=float(spec.get("leaseDurationSeconds") or 0),
        transitions=int(spec.get("leaseTransitions") or 0),
        wanted_by=annotations.get(WANTED_BY, ""),
        since=now,
    )


def _micro(at: datetime) -> str:
    """As the API server writes the times of Leases."""
    return at.isoformat(timespec="microseconds").replace("+00:00", "Z")

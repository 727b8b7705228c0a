"""The Leases of all shards as this replica last saw them, and the requests that change them; used by the elections."""

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
    """The last known record of every shard's Lease. Each write is conditional on the version of that record.

    `on_change` is called with the shard of every Lease that the watch reports as changed.
    """

    def __init__(
        self,
        client: Client,
        namespace: str,
        times: LeaseTimes,
        clock: RealTime,
        on_change: Callable[[Shard], None],
    ) -> None:
        # Own connections: a renewal must not queue behind the writes that it allows.
        limits = Limits(calls=0, call_seconds=times.request, connect_seconds=times.request)
        self._client = Client(client.transport.endpoint, client.transport.credentials, limits=limits)
        self._namespace = namespace
        self._times = times
        self._clock = clock
        self._on_change = on_change
        self._records: dict[Shard, LeaseRecord] = {}
        self._informer = Informer(self._client, LEASES, namespaces=(namespace,), labels=SELECTOR)
        self._informer.listen(self._changed)

    @property
    def client(self) -> Client:
        """The client whose connections serve only Leases."""
        return self._client

    async def run(self) -> None:
        """Watches the Leases until cancelled."""
        await self._informer.run()

    async def synced(self, within: float | None = None) -> None:
        """Waits until all Leases are listed once; `Unavailable` if that takes longer than `within` seconds."""
        await self._informer.synced(within)

    async def close(self) -> None:
        """Closes the connections."""
        await self._client.close()

    def get(self, shard: Shard) -> LeaseRecord | None:
        """The last known record of a shard's Lease; None if there is none."""
        return self._records.get(shard)

    def __iter__(self) -> Iterator[LeaseRecord]:
        return iter(tuple(self._records.values()))

    async def refresh(self) -> None:
        """Lists all Leases, so that every record is at least as new as this call."""
        before = dict(self._records)
        async with self._timeout("list leases"):
            listed = await self._client.list(LEASES, namespace=self._namespace, labels=SELECTOR)
        found = {self._observe_answer(raw, before) for raw in listed}
        for gone in set(before) - found:
            if self._records.get(gone) is before[gone]:  # else the watch reported it after the list was made
                self._mark_deleted(gone)

    async def read(self, shard: Shard) -> LeaseRecord | None:
        """Gets one Lease from the API server; None if there is none."""
        before = dict(self._records)
        async with self._timeout(f"get lease {shard.lease_name}"):
            try:
                raw = await self._client.get(LEASES, shard.lease_name, namespace=self._namespace)
                self._observe_answer(raw, before)
            except NotFound:
                self._mark_deleted(shard)
        return self.get(shard)

    async def acquire(self, shard: Shard, holder: str) -> None:
        """Makes `holder` the holder, if the Lease is still as recorded."""
        record = self.get(shard)
        now = _micro_time(datetime.now(UTC))
        spec = {
            "holderIdentity": holder,
            "leaseDurationSeconds": math.ceil(self._times.duration),
            "acquireTime": now,
            "renewTime": now,
        }
        if record is None or record.deleted:
            await self._create(shard, spec)
        else:
            # Restores the labels if a user removed them: all replicas select Leases by them.
            metadata = {"labels": LABELS, "annotations": {WANTED_BY: None}}
            await self._patch(record, {**spec, "leaseTransitions": record.transitions + 1}, metadata)

    async def renew(self, record: LeaseRecord) -> None:
        """Shows the other replicas that the holder is alive."""
        await self._patch(record, {"holderIdentity": record.holder, "renewTime": _micro_time(datetime.now(UTC))})

    async def release(self, record: LeaseRecord) -> None:
        """Removes the holder, so that any replica can acquire the Lease."""
        await self._patch(record, {"holderIdentity": None})

    async def request(self, record: LeaseRecord, identity: str) -> None:
        """Requests the shard from its holder, which hands it over unless it prefers that shard itself."""
        await self._patch(record, {}, {"annotations": {WANTED_BY: identity}})

    async def remove(self, record: LeaseRecord) -> None:
        """Deletes a Lease that no replica holds."""
        name = record.shard.lease_name
        if not record.deleted:
            async with self._timeout(f"delete lease {name}"):
                with suppress(NotFound):
                    await self._client.delete(
                        LEASES, name, namespace=self._namespace, resource_version=str(record.version)
                    )
        self._records.pop(record.shard, None)

    async def _create(self, shard: Shard, spec: Raw) -> None:
        metadata = {"name": shard.lease_name, "labels": LABELS}
        body = {**LEASES.envelope(), "metadata": metadata, "spec": {**spec, "leaseTransitions": 0}}
        async with self._timeout(f"create lease {shard.lease_name}"):
            self.observe(await self._client.create(LEASES, body, namespace=self._namespace))

    async def _patch(self, record: LeaseRecord, spec: Raw, metadata: Raw | None = None) -> None:
        name = record.shard.lease_name
        body = {"metadata": {**(metadata or {}), "resourceVersion": str(record.version)}, "spec": spec}
        async with self._timeout(f"patch lease {name}"):
            self.observe(await self._client.patch(LEASES, name, body, namespace=self._namespace))

    def _changed(self, change: Change) -> None:
        shard = Shard.of_lease(change.key.name)
        if change.type is not EventType.DELETED:
            self.observe(change.object)
        elif shard is not None:
            self._mark_deleted(shard)
        if shard is not None:
            self._on_change(shard)

    def _observe_answer(self, raw: Raw, before: dict[Shard, LeaseRecord]) -> Shard | None:
        """Records a Lease that a request returned; `before` holds the records from when the request was sent.

        An answer older than its record means that the API server was restored from a backup. Its version then counts,
        or all our writes would conflict. The last known holder may not know of the restore, so it still counts as
        holder until its Lease would have expired.
        """
        shard = Shard.of_lease(raw["metadata"]["name"])
        known = before.get(shard) if shard is not None else None
        if known is None:
            return self.observe(raw)
        if known.shard not in self._records:
            return shard  # this replica removed it meanwhile; recording it again would revive its holder
        version = int(raw["metadata"]["resourceVersion"])
        if version < known.version:
            if known.live(self._clock()):
                self._records[known.shard] = replace(known, version=version)
                return shard
            self._records.pop(known.shard, None)
        return self.observe(raw)

    def observe(self, raw: Raw) -> Shard | None:
        """Records a Lease unless a newer version is recorded already; returns its shard, None if it has none."""
        shard = Shard.of_lease(raw["metadata"]["name"])
        if shard is None:
            return None
        known = self._records.get(shard)
        fresh = _record(shard, raw, self._clock())
        if known is None:
            self._records[shard] = fresh
        elif fresh.version > known.version:
            self._records[shard] = replace(fresh, since=known.since) if known.same_renewal(fresh) else fresh
        return shard

    def _mark_deleted(self, shard: Shard) -> None:
        """Keeps the record of a deleted Lease until it would have expired: its holder may not know of the deletion."""
        if shard in self._records:
            self._records[shard] = replace(self._records[shard], version=DELETED)

    def _timeout(self, what: str) -> AbstractAsyncContextManager[None]:
        return request_timeout(self._times.request, what)


@asynccontextmanager
async def request_timeout(seconds: float, what: str) -> AsyncIterator[None]:
    """Abandons a request that has no answer after so many seconds: `Unavailable`."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise Unavailable(f"{what}: no answer within {seconds:g} seconds") from None


def _record(shard: Shard, raw: Raw, now: float) -> LeaseRecord:
    spec = raw.get("spec") or {}
    annotations = raw["metadata"].get("annotations") or {}
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


def _micro_time(at: datetime) -> str:
    """The format of MicroTime, in which Leases store times."""
    return at.isoformat(timespec="microseconds").replace("+00:00", "Z")

"""Announces this release to other releases and watches theirs: two that watch the same namespaces must not both act.

Every release keeps one Lease of a fixed name in its own namespace, with an annotation for each replica that acts. All
releases watch the Leases of that name. Used by the shard manager, which acquires no shard while another release acts.
"""

import math
from collections.abc import Iterable, Iterator
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from typing import Any, Final

import structlog

from crds import names
from service import metrics
from service.kube.client import Client
from service.kube.errors import AlreadyExists, Forbidden, KubeError, NotFound
from service.kube.resource import LEASES
from service.runtime.cache import Change, EventType
from service.runtime.informer import Informer
from service.sharding.announcement import Announcement, ObservedAnnouncement, observe
from service.sharding.fence import RealTime
from service.sharding.lease_store import request_timeout
from service.sharding.leases import LeaseTimes

Raw = dict[str, Any]

LEASE_NAME: Final = "5spot-release"
FIELDS: Final = f"metadata.name={LEASE_NAME}"
LABELS: Final = {names.LABEL_MANAGED_BY: names.MANAGED_BY, f"{names.GROUP}/lease": "release"}
PREFIX: Final = f"{names.GROUP}/replica-"
TIMES_FACTOR: Final = 4
"""Announcements are renewed, and expire, this many times more slowly than the Leases of shards."""

log = structlog.get_logger(__name__)


class ReleaseRegistry:
    """The announcements of all releases. `watches` are the namespaces that this one watches; none means all."""

    def __init__(
        self, client: Client, namespace: str, watches: tuple[str, ...], times: LeaseTimes, clock: RealTime, replica: str
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._watches = watches
        self._clock = clock
        self._times = LeaseTimes(
            TIMES_FACTOR * times.duration, TIMES_FACTOR * times.deadline, TIMES_FACTOR * times.retry
        )
        self._request_seconds = times.request
        self._annotation = PREFIX + replica.rpartition("_")[2]
        self._holder = replica
        self._announced_at = -math.inf
        self._versions: dict[str, int] = {}
        self._observed: dict[str, dict[str, ObservedAnnouncement]] = {}
        self._logged: frozenset[str] = frozenset()
        self._may_list = True
        self._informer = Informer(client, LEASES, fields=FIELDS)
        self._informer.listen(self._changed)
        metrics.FOREIGN_RELEASES.set_function(lambda: len(self._acting()))

    async def run(self) -> None:
        """Watches the announcements of all releases until cancelled."""
        await self._informer.run()

    @property
    def until(self) -> float:
        """This replica stops acting at this moment unless it renews its announcement."""
        return self._announced_at + self._times.deadline

    @property
    def others_from(self) -> float:
        """Other releases may act from this moment on, unless this replica renews its announcement."""
        return self._announced_at + self._times.duration

    def blocked_for(self) -> float:
        """Seconds until the announcements of other releases for our namespaces have expired; 0 if there are none."""
        acting = self._acting()
        self._log_changes(acting)
        return max(acting.values(), default=0.0)

    async def announce(self) -> None:
        """Announces that this replica acts, unless its last announcement is recent."""
        sent = self._clock()
        if sent < self._announced_at + self._times.retry:
            return
        async with self._timeout("patch"):
            await self._write()
        self._announced_at = sent

    async def renew(self) -> None:
        """Renews the announcement; after a failure the next call tries again, until `until` has passed."""
        try:
            await self.announce()
        except KubeError as error:
            log.warning("cannot renew the announcement of this release", lease=LEASE_NAME, error=error.message)

    async def withdraw(self) -> None:
        """Removes the announcement: this replica no longer acts."""
        if self._announced_at == -math.inf:
            return
        self._announced_at = -math.inf
        try:
            async with self._timeout("patch"):
                await self._patch({self._annotation: None}, {})
        except KubeError as error:
            log.info("cannot withdraw the announcement; it expires by itself", lease=LEASE_NAME, error=error.message)

    async def refresh(self) -> None:
        """Lists all announcements, so that what is known is at least as new as this call."""
        try:
            async with self._timeout("list"):
                for raw in await self._client.list(LEASES, fields=FIELDS):
                    self._observe(raw, listed=True)
        except Forbidden as error:
            if self._may_list:
                log.warning("cannot see other releases: the operator may not list Leases", error=error.message)
            self._may_list = False

    def _timeout(self, verb: str) -> AbstractAsyncContextManager[None]:
        return request_timeout(self._request_seconds, f"{verb} lease {LEASE_NAME}")

    async def _write(self) -> None:
        now = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        mine = Announcement(self._watches, self._times.duration, now).to_json()
        spec = {
            "holderIdentity": self._holder,
            "leaseDurationSeconds": math.ceil(self._times.duration),
            "renewTime": now,
        }
        try:
            await self._patch({**dict.fromkeys(self._expired()), self._annotation: mine}, spec)
        except NotFound:
            await self._create({self._annotation: mine}, spec)

    async def _create(self, annotations: Raw, spec: Raw) -> None:
        metadata = {"name": LEASE_NAME, "labels": LABELS, "annotations": annotations}
        body = {**LEASES.envelope(), "metadata": metadata, "spec": spec}
        try:
            self._observe(await self._client.create(LEASES, body, namespace=self._namespace))
        except AlreadyExists:
            await self._patch(annotations, spec)

    async def _patch(self, annotations: Raw, spec: Raw) -> None:
        body = {"metadata": {"labels": LABELS, "annotations": annotations}, "spec": spec}
        self._observe(await self._client.patch(LEASES, LEASE_NAME, body, namespace=self._namespace))

    def _expired(self) -> Iterator[str]:
        """Annotations of replicas of this release that ended without withdrawing their announcement."""
        now = self._clock()
        for annotation, each in self._observed.get(self._namespace, {}).items():
            if each.seconds_left(now) == 0.0:
                yield annotation

    def _acting(self) -> dict[str, float]:
        """Other releases that act in a namespace that we watch, by namespace, with the seconds until they expire."""
        found: dict[str, float] = {}
        for namespace, replicas in self._observed.items():
            left = self._seconds_left(replicas.values())
            if left and namespace != self._namespace:
                found[namespace] = left
        return found

    def _seconds_left(self, replicas: Iterable[ObservedAnnouncement]) -> float:
        now = self._clock()
        overlapping = (each for each in replicas if each.announcement.overlaps(self._watches))
        return max((each.seconds_left(now) for each in overlapping), default=0.0)

    def _log_changes(self, acting: dict[str, float]) -> None:
        releases = frozenset(acting)
        for release in sorted(releases - self._logged):
            log.warning("standing back: another release acts in namespaces that this one watches", release=release)
        for release in sorted(self._logged - releases):
            log.info("the other release no longer acts", release=release)
        self._logged = releases

    def _changed(self, change: Change) -> None:
        # The announcements in a deleted Lease count until they expire: its replicas may not know of the deletion.
        if change.type is not EventType.DELETED:
            self._observe(change.object)

    def _observe(self, raw: Raw, *, listed: bool = False) -> None:
        """Records the announcements in a Lease; a list older than what is known means that the server was restored."""
        metadata = raw["metadata"]
        namespace = metadata["namespace"]
        version = int(metadata["resourceVersion"])
        restored = version < self._versions.get(namespace, 0)
        if restored and not listed:
            return
        texts = {key: text for key, text in (metadata.get("annotations") or {}).items() if key.startswith(PREFIX)}
        before = self._observed.get(namespace, {})
        found = observe(texts, before, self._clock())
        self._observed[namespace] = before | found if restored else found
        self._versions[namespace] = version

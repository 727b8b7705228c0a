"""Announces this release to other releases of the operator, and sees theirs: two that watch the same must not both act.

Every release keeps one Lease of a fixed name in its own namespace, with an annotation for each replica that acts; all
releases watch the Leases of that name. Used by the shard
manager, which takes no shard while another release acts.
"""

import math
from collections.abc import Iterator
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
from service.sharding.announcement import Announcement, Heard, heard
from service.sharding.fence import RealTime
from service.sharding.lease_store import in_time
from service.sharding.leases import LeaseTimes

Raw = dict[str, Any]

LEASE_NAME: Final = "5spot-release"
FIELDS: Final = f"metadata.name={LEASE_NAME}"
LABELS: Final = {names.LABEL_MANAGED_BY: names.MANAGED_BY, f"{names.GROUP}/lease": "release"}
PREFIX: Final = f"{names.GROUP}/replica-"
SLOWER: Final = 4
"""Announcements are renewed, and run out, so many times more slowly than the Leases of shards."""

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
        self._times = LeaseTimes(SLOWER * times.duration, SLOWER * times.deadline, SLOWER * times.retry)
        self._patience = times.request
        self._annotation = PREFIX + replica.rpartition("_")[2]
        self._holder = replica
        self._sent = -math.inf
        self._versions: dict[str, int] = {}
        self._heard: dict[str, dict[str, Heard]] = {}
        self._told: frozenset[str] = frozenset()
        self._may_look = True
        self._watch = Informer(client, LEASES, fields=FIELDS)
        self._watch.listen(self._changed)
        metrics.FOREIGN_RELEASES.set_function(lambda: len(self._acting()))

    async def run(self) -> None:
        """Follows the announcements of all releases until cancelled."""
        await self._watch.run()

    @property
    def until(self) -> float:
        """This replica stops acting at this moment unless it renews its announcement."""
        return self._sent + self._times.deadline

    @property
    def others(self) -> float:
        """Other releases may act from this moment on."""
        return self._sent + self._times.duration

    def blocked_for(self) -> float:
        """Seconds until no other release can be acting in a namespace that we watch, as far as seen; 0 if none is."""
        acting = self._acting()
        self._tell(acting)
        return max(acting.values(), default=0.0)

    async def announce(self) -> None:
        """Announces that this replica acts, unless it did a moment ago."""
        sent = self._clock()
        if sent < self._sent + self._times.retry:
            return
        async with self._in_time("patch"):
            await self._write()
        self._sent = sent

    async def keep(self) -> None:
        """Renews the announcement; a failure is left to the next time, as `until` says how long it is good for."""
        try:
            await self.announce()
        except KubeError as error:
            log.warning("announcement not renewed", lease=LEASE_NAME, error=error.message)

    async def withdraw(self) -> None:
        """Tells the other releases that this replica does not act any more."""
        if self._sent == -math.inf:
            return
        self._sent = -math.inf
        try:
            async with self._in_time("patch"):
                await self._patch({self._annotation: None}, {})
        except KubeError as error:
            log.info("announcement left to run out", lease=LEASE_NAME, error=error.message)

    async def look(self) -> None:
        """Asks for all announcements: what it finds is no older than the moment of asking."""
        try:
            async with self._in_time("list"):
                for raw in await self._client.list(LEASES, fields=FIELDS):
                    self._note(raw, asked=True)
        except Forbidden as error:
            if self._may_look:
                log.warning("other releases are not seen: the operator may not list Leases", error=error.message)
            self._may_look = False

    def _in_time(self, verb: str) -> AbstractAsyncContextManager[None]:
        return in_time(self._patience, f"{verb} lease {LEASE_NAME}")

    async def _write(self) -> None:
        now = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        mine = Announcement(self._watches, self._times.duration, now).packed()
        spec = {
            "holderIdentity": self._holder,
            "leaseDurationSeconds": math.ceil(self._times.duration),
            "renewTime": now,
        }
        try:
            await self._patch({**dict.fromkeys(self._dead()), self._annotation: mine}, spec)
        except NotFound:
            await self._create({self._annotation: mine}, spec)

    async def _create(self, annotations: Raw, spec: Raw) -> None:
        metadata = {"name": LEASE_NAME, "labels": LABELS, "annotations": annotations}
        body = {**LEASES.envelope(), "metadata": metadata, "spec": spec}
        try:
            self._note(await self._client.create(LEASES, body, namespace=self._namespace))
        except AlreadyExists:
            await self._patch(annotations, spec)

    async def _patch(self, annotations: Raw, spec: Raw) -> None:
        body = {"metadata": {"labels": LABELS, "annotations": annotations}, "spec": spec}
        self._note(await self._client.patch(LEASES, LEASE_NAME, body, namespace=self._namespace))

    def _dead(self) -> Iterator[str]:
        """Announcements of replicas of our own release that ended without withdrawing them."""
        now = self._clock()
        for annotation, each in self._heard.get(self._namespace, {}).items():
            if each.seconds_left(now) == 0.0:
                yield annotation

    def _acting(self) -> dict[str, float]:
        """Other releases that act in a namespace that we watch, and for how many seconds they may go on unseen."""
        now = self._clock()
        found: dict[str, float] = {}
        for namespace, replicas in self._heard.items():
            overlapping = [each for each in replicas.values() if each.announcement.overlaps(self._watches)]
            left = max((each.seconds_left(now) for each in overlapping), default=0.0)
            if left and namespace != self._namespace:
                found[namespace] = left
        return found

    def _tell(self, acting: dict[str, float]) -> None:
        releases = frozenset(acting)
        for release in sorted(releases - self._told):
            log.warning("standing back: another release acts in namespaces that this one watches", release=release)
        for release in sorted(self._told - releases):
            log.info("the other release does not act any more", release=release)
        self._told = releases

    def _changed(self, change: Change) -> None:
        # A Lease that was deleted counts for as long as it would have: its replicas may not know yet.
        if change.type is not EventType.DELETED:
            self._note(change.object)

    def _note(self, raw: Raw, *, asked: bool = False) -> None:
        """Takes in a Lease; an answer that is older than what is known means that the server was restored."""
        metadata = raw["metadata"]
        namespace, version = metadata["namespace"], int(metadata["resourceVersion"])
        restored = version < self._versions.get(namespace, 0)
        if restored and not asked:
            return
        texts = {key: text for key, text in (metadata.get("annotations") or {}).items() if key.startswith(PREFIX)}
        before = self._heard.get(namespace, {})
        found = heard(texts, before, self._clock())
        self._heard[namespace] = before | found if restored else found
        self._versions[namespace] = version

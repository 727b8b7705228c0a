"""Continuous churn on a fast clock with random kills, and what must hold all the while.

Windows open and close, users edit, delete and create, replicas are killed and started again, and a stand-in for
Cluster API holds Machines for a moment and deletes their hosts with them. `bench_soak` and a test run it.
"""

import asyncio
import random
import secrets
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from typing import Any

from bench import _herd as herd
from bench._replica import SHORT_LEASES, Crew
from bench._soak_churn import CHILDREN, FOREIGN, Churn
from bench._soak_fleet import Fleet
from bench._soak_result import Result, Settings
from crds import names
from crds.providers import DEFAULT_POLICY
from local.cluster import LocalCluster
from local.processes import Keeper
from service.clock import SimulatedClock
from service.decide.intent import Sources, read_intent
from service.decide.lifecycle import RELEASE_AFTER
from service.fleet.overrides import ListedOverrides
from service.kube.client import Client
from service.kube.errors import KubeError, NotFound
from service.kube.resource import LEASES, NAMESPACES, SCHEDULE_OVERRIDES, SCHEDULED_MACHINES, Resource
from service.runtime.cache import Change, EventType
from service.runtime.informer import Informer
from service.runtime.key import Key
from service.sharding.lease_store import SELECTOR

Raw = dict[str, Any]
__all__ = ["Result", "Settings", "Soak", "soaking"]
START = datetime(2026, 3, 2, 6, 0, tzinfo=UTC)
SPEED = 60.0
"""A minute in a second: a window of half an hour is half a minute."""
FOREIGNERS = 5
LOOK_EVERY = 0.5
SETTLE_SECONDS = 90.0
START_SECONDS = 120.0


class Soak:
    """One run in a namespace of its own."""

    def __init__(self, client: Client, crew: Crew, settings: Settings) -> None:
        self.client = client
        self.crew = crew
        self.settings = settings
        self.result = Result()
        self.churn = Churn(client, crew.tenants, self.result.happened, crew.clock)
        self.fleet = Fleet(crew, settings.replicas, self.result)
        self._wrong: dict[tuple[Key, str], float] = {}
        self._reported: set[tuple[Key, str]] = set()
        self._machines: dict[str, str] = {}
        self._foreign: dict[tuple[str, str], str] = {}
        self._checks: set[asyncio.Task[None]] = set()
        self._scheduled = self._informer(SCHEDULED_MACHINES, self._scheduled_changed)
        self._overrides = self._informer(SCHEDULE_OVERRIDES, lambda _change: None)
        self._children = {end: self._informer(kind, self._child_changed) for end, kind in CHILDREN.items()}

    def _informer(self, resource: Resource, listener: Callable[[Change], None]) -> Informer:
        made = Informer(self.client, resource, namespaces=(self.crew.tenants,))
        made.listen(listener)
        return made

    async def run(self) -> Result:
        """The whole of it, from the first object to the last that goes."""
        await self._prepare()
        async with asyncio.TaskGroup() as group:
            informers = (self._scheduled, self._overrides, *self._children.values())
            watching = [group.create_task(one.run()) for one in informers]
            playing = [group.create_task(self.churn.play_cluster_api()) for _ in range(4)]
            with suppress(TimeoutError):
                async with asyncio.timeout(self.settings.seconds):
                    await self._churn_and_kill()
            await self._settled()
            await self._clear_away()
            for task in (*watching, *playing):
                task.cancel()
        await self._check_foreign()
        await asyncio.gather(*self._checks)
        return self.result

    async def _churn_and_kill(self) -> None:
        settings = self.settings
        async with asyncio.TaskGroup() as group:
            group.create_task(self.churn.go_on(self._scheduled, settings, self._overrides))
            group.create_task(self.fleet.kill_now_and_then(settings.kill_every))
            group.create_task(self.fleet.weigh())
            group.create_task(self._look())

    async def _prepare(self) -> None:
        for _ in range(self.settings.objects):
            await self.churn.create()
        for number in range(FOREIGNERS):
            self._foreign |= await self.churn.create_foreign(number)
        self.fleet.start()
        async with asyncio.timeout(START_SECONDS):
            while not await self._all_served():  # noqa: ASYNC110
                await asyncio.sleep(LOOK_EVERY)

    async def _all_served(self) -> bool:
        """Whether a replica acts for every shard: from here on, no object may be forgotten."""
        leases = await self.client.list(LEASES, namespace=self.crew.own, labels=SELECTOR)
        return sum(bool(lease["spec"].get("holderIdentity")) for lease in leases) == self.crew.count

    # What must hold

    def _scheduled_changed(self, change: Change) -> None:
        if change.type is EventType.DELETED:
            metadata = change.object["metadata"]
            if _waited(metadata) * SPEED >= RELEASE_AFTER.total_seconds():
                # The operator holds a namespace no longer than this: what is left then is left on purpose.
                self.result.happened["objects let go because their time was up"] += 1
                return
            task = asyncio.get_running_loop().create_task(self._check_left_nothing(change.key.name, metadata["uid"]))
            self._checks.add(task)
            task.add_done_callback(self._checks.discard)

    async def _check_left_nothing(self, name: str, uid: str) -> None:
        for end, resource in CHILDREN.items():
            with suppress(KubeError):
                raw = await self.client.get(resource, f"{name}-{end}", namespace=self.crew.tenants)
                if owner_of(raw) == uid and "deletionTimestamp" not in raw["metadata"]:
                    self.result.violations.append(f"{name} is gone, its {end} is not")

    def _child_changed(self, change: Change) -> None:
        if not change.key.name.endswith(names.MACHINE_SUFFIX):
            return
        meta, owner = change.object["metadata"], owner_of(change.object)
        if change.type is EventType.DELETED:
            self._machines.pop(meta["uid"], None)
            self.result.happened["Machines gone"] += 1
            return
        if change.type is EventType.ADDED and owner:
            self.result.happened["Machines made"] += 1
            if owner in self._machines.values():
                self.result.violations.append(f"a second Machine for the owner of {change.key.name}")
            self._machines[meta["uid"]] = owner
        if owner:
            self.churn.held.put_nowait(change.object)

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(LOOK_EVERY)
            self._look_once()
            if random.random() < 0.1:
                await self._check_foreign()

    def _look_once(self) -> None:
        """Notes the objects that are in the wrong state."""
        now, shown, wrong = time.monotonic(), self.crew.clock.now(), set()
        if not self.fleet.any_up():
            # All replicas dead or still starting: the time counts from when one can act.
            self.result.happened["half seconds with no replica up"] += 1
            self._wrong = dict.fromkeys(self._wrong, now)
        overrides = self._listed_overrides(shown)
        for key in self._scheduled:
            raw = self._scheduled.get(key)
            fault = self._fault(raw, overrides, shown) if raw else None
            if fault:
                wrong.add((key, fault))
                self._still_wrong((key, fault), now)
        for entry in self._wrong.keys() - wrong:
            since = self._wrong.pop(entry)
            self.result.late.append(now - max(since, self.fleet.lost_at(entry[0])))

    def _still_wrong(self, entry: tuple[Key, str], now: float) -> None:
        since = self._wrong.setdefault(entry, now)
        if now - since > self.settings.forgotten_after and entry not in self._reported:
            self._reported.add(entry)
            self.result.violations.append(f"{entry[0]} {entry[1]} for {now - since:.0f} s")

    def _listed_overrides(self, shown: datetime) -> ListedOverrides:
        """Those that the operator has accepted: an override counts from then on."""
        found = (self._overrides.get(key) for key in self._overrides)
        return ListedOverrides.read((raw for raw in found if raw and raw.get("status")), shown)

    def _fault(self, raw: Raw, overrides: ListedOverrides, shown: datetime) -> str | None:
        """What is not as the schedule and its overrides say at the moment."""
        whole = {**SCHEDULED_MACHINES.envelope(), **raw}
        meta, intent = raw["metadata"], read_intent(whole, DEFAULT_POLICY, Sources(overrides=overrides))
        if meta["name"].startswith(FOREIGN):
            return None
        machine = self._children["machine"].get(Key(meta["namespace"], f"{meta['name']}-machine"))
        there = machine is not None and "deletionTimestamp" not in machine["metadata"]
        if "deletionTimestamp" in meta:
            return "is not let go"
        if not intent.enabled and not intent.kill_switch:
            return None
        wanted = not intent.kill_switch and intent.effective.wanted(shown)
        if wanted == there:
            return None
        return "has no Machine" if wanted else "has a Machine"

    async def _check_foreign(self) -> None:
        for (end, name), version in self._foreign.items():
            with suppress(KubeError):
                found = await self.client.get(CHILDREN[end], name, namespace=self.crew.tenants)
                if found["metadata"]["resourceVersion"] != version:
                    self.result.violations.append(f"{name} of another owner was touched")
                    self._foreign[end, name] = found["metadata"]["resourceVersion"]

    # The end

    async def _settled(self) -> None:
        """Edits and kills have stopped: after a lease every object must be in the right state."""
        before = set[tuple[Key, str]]()
        for _ in range(int(SETTLE_SECONDS / LOOK_EVERY)):
            await asyncio.sleep(LOOK_EVERY)
            self.fleet.revive()
            self._look_once()
            before = before & self._wrong.keys() if before else set(self._wrong)
            if not before:
                return
        self.result.violations.append(f"not settled: {sorted(map(str, before))[:5]}")

    async def _clear_away(self) -> None:
        """All are deleted: every child must go, and every finalizer of ours."""
        for key in self._scheduled:
            with suppress(NotFound):
                await self.client.delete(SCHEDULED_MACHINES, key.name, namespace=key.namespace)
        deadline = time.monotonic() + SETTLE_SECONDS
        while time.monotonic() < deadline:
            await asyncio.sleep(LOOK_EVERY)
            self.fleet.revive()
            orphans = [key.name for one in self._children.values() for key in one if not key.name.startswith(FOREIGN)]
            if not len(self._scheduled) and not orphans:
                return
        self.result.violations.append(f"left over: {len(self._scheduled)} objects, {orphans[:5]}")


def _waited(metadata: Raw) -> float:
    """Real seconds since an object's deletion was requested."""
    asked = metadata.get("deletionTimestamp")
    return (datetime.now(UTC) - datetime.fromisoformat(asked)).total_seconds() if asked else 0.0


def owner_of(raw: Raw) -> str | None:
    """The uid of the ScheduledMachine that owns an object."""
    owners = raw["metadata"].get("ownerReferences") or ()
    return next((owner["uid"] for owner in owners if owner["kind"] == names.KIND), None)


@asynccontextmanager
async def soaking(cluster: LocalCluster, keeper: Keeper, settings: Settings) -> AsyncIterator[Soak]:
    """A run, ready to start; its replicas are killed at the end."""
    mark = secrets.token_hex(3)
    async with cluster.client() as client:
        clock = SimulatedClock.starting(START, SPEED)
        crew = Crew(cluster, keeper, f"soak-{mark}", f"own-{mark}", clock, settings.shards, SHORT_LEASES)
        await herd.home(client, crew.tenants)
        await client.create(NAMESPACES, {**NAMESPACES.envelope(), "metadata": {"name": crew.own}})
        made = Soak(client, crew, settings)
        try:
            yield made
        finally:
            for replica in made.fleet.replicas:
                await asyncio.to_thread(replica.kill)

"""Continuous churn on a fast clock with random kills: what happens, and what must hold all the while.

Windows open and close, users edit, delete and create, replicas are killed and started again, and somebody plays Cluster
API: it holds Machines for a moment and takes their hosts along. `bench_soak` and a test run it.
"""

import asyncio
import random
import secrets
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from bench import _herd as herd
from bench import _proc
from bench._bars import quantile
from bench._replica import SHORT_LEASES, Crew
from crds import names
from crds.providers import DEFAULT_POLICY
from local.cluster import Cluster
from local.processes import Keeper, Server
from local.provider.kinds import BOOTSTRAPS, HOSTS, MACHINES
from service.alarm import EXIT_CODE
from service.clock import SimulatedClock
from service.decide.intent import read_intent
from service.decide.lifecycle import RELEASE_AFTER
from service.kube.client import Client
from service.kube.errors import Conflict, KubeError, NotFound
from service.kube.resource import LEASES, NAMESPACES, SCHEDULED_MACHINES, Resource
from service.runtime.cache import Change, Happening
from service.runtime.informer import Informer
from service.runtime.key import Key

Raw = dict[str, Any]
START = datetime(2026, 3, 2, 6, 0, tzinfo=UTC)
SPEED = 60.0
"""A minute in a second: a window of half an hour is half a minute."""
HOLD = "bench.example/cluster-api"
CHILDREN = {"machine": MACHINES, "infra": HOSTS, "bootstrap": BOOTSTRAPS}
FOREIGN = 5
LOOK_EVERY = 0.5
SAMPLE_EVERY = 5.0
WARM_UP = 30.0
SETTLE_SECONDS = 90.0
START_SECONDS = 120.0
STARTED = "controller started"
"""What a replica logs when it can serve."""


@dataclass(frozen=True)
class Settings:
    """How much of everything."""

    seconds: float
    objects: int = 60
    replicas: int = 3
    shards: int = 2
    kill_every: float = 15.0
    edits_per_second: float = 2.0
    forgotten_after: float = 25.0
    """Nobody may be in the wrong state for longer: a lease, five seconds, and what a busy machine adds."""


@dataclass
class Result:
    """What happened, and what should not have."""

    violations: list[str] = field(default_factory=list)
    happened: Counter[str] = field(default_factory=Counter)
    late: list[float] = field(default_factory=list)
    memory: list[tuple[float, float]] = field(default_factory=list)
    """Seconds since the start, and MB of the replica that is never killed."""

    @property
    def slope(self) -> float | None:
        """MB an hour by least squares, after the first half minute; None if there is too little to tell."""
        points = [(at, size) for at, size in self.memory if at >= WARM_UP]
        if len(points) < 6:
            return None
        mean_at, mean = sum(at for at, _ in points) / len(points), sum(size for _, size in points) / len(points)
        spread = sum((at - mean_at) ** 2 for at, _ in points)
        return 3600 * sum((at - mean_at) * (size - mean) for at, size in points) / spread

    def described(self) -> str:
        told = ", ".join(f"{count} {what}" for what, count in sorted(self.happened.items()))
        if not self.late:
            return told
        half, most = quantile(self.late, 0.5), quantile(self.late, 0.99)
        late = f"{half:.1f} s p50, {most:.1f} s p99, {max(self.late):.1f} s at most"
        return f"{told}\nin the wrong state after a boundary, an edit or a kill: {late}"


class Soak:
    """One run in a namespace of its own."""

    def __init__(self, client: Client, crew: Crew, settings: Settings) -> None:
        self.client = client
        self.crew = crew
        self.settings = settings
        self.result = Result()
        self.replicas: list[Server] = []
        self._started = time.monotonic()
        self._serial = 0
        self._wrong: dict[tuple[Key, str], float] = {}
        self._told: set[tuple[Key, str]] = set()
        self._up: set[str] = set()
        self._machines: dict[str, str] = {}
        self._foreign: dict[tuple[str, str], str] = {}
        self._held = asyncio.Queue[Raw]()
        self._checks: set[asyncio.Task[None]] = set()
        self._scheduled = self._informer(SCHEDULED_MACHINES, self._scheduled_changed)
        self._children = {end: self._informer(kind, self._child_changed) for end, kind in CHILDREN.items()}

    def _informer(self, resource: Resource, listener: Callable[[Change], None]) -> Informer:
        made = Informer(self.client, resource, namespaces=(self.crew.tenants,))
        made.listen(listener)
        return made

    async def run(self) -> Result:
        """The whole of it, from the first object to the last that goes."""
        await self._prepare()
        async with asyncio.TaskGroup() as group:
            watching = [group.create_task(one.run()) for one in (self._scheduled, *self._children.values())]
            playing = [group.create_task(self._play_cluster_api()) for _ in range(4)]
            with suppress(TimeoutError):
                async with asyncio.timeout(self.settings.seconds):
                    await self._churn_and_kill()
            await self._settled()
            await self._clear_away()
            for task in (*watching, *playing):
                task.cancel()
        await self._check_foreign()
        return self.result

    async def _churn_and_kill(self) -> None:
        loops: tuple[Callable[[], Coroutine[Any, Any, None]], ...] = (self._churn, self._kill, self._look, self._weigh)
        async with asyncio.TaskGroup() as group:
            for loop in loops:
                group.create_task(loop())

    async def _prepare(self) -> None:
        for number in range(self.settings.objects):
            await self._create(number)
        for number in range(FOREIGN):
            await self._create_foreign(f"foreign-{number}")
        self.replicas = [self.crew.replica(number) for number in range(self.settings.replicas)]
        for replica in self.replicas:
            replica.start()
        async with asyncio.timeout(START_SECONDS):
            while not await self._all_served():  # noqa: ASYNC110
                await asyncio.sleep(LOOK_EVERY)
        self._started = time.monotonic()

    async def _all_served(self) -> bool:
        """Whether somebody acts for every shard: from here on, nobody may be forgotten."""
        leases = await self.client.list(LEASES, namespace=self.crew.own)
        return sum(bool(lease["spec"].get("holderIdentity")) for lease in leases) == self.crew.count

    # What happens

    async def _create(self, number: int) -> None:
        raw = herd.scheduled_machine(number, opens_every_hour(random.randrange(60)))
        await self.client.create(SCHEDULED_MACHINES, raw, namespace=self.crew.tenants)
        self._serial = max(self._serial, number + 1)
        self.result.happened["objects created"] += 1

    async def _create_foreign(self, name: str) -> None:
        """Children of somebody else, and a ScheduledMachine that would like to have these names."""
        for end, resource in CHILDREN.items():
            body = {
                **resource.envelope(),
                "metadata": {"name": f"{name}-{end}"},
                "spec": MACHINE_SPEC if end == "machine" else {},
            }
            stored = await self.client.create(resource, body, namespace=self.crew.tenants)
            self._foreign[end, f"{name}-{end}"] = stored["metadata"]["resourceVersion"]
        raw = herd.scheduled_machine(60_000 + len(self._foreign), opens_every_hour(0))
        raw["metadata"]["name"] = name
        await self.client.create(SCHEDULED_MACHINES, raw, namespace=self.crew.tenants)

    async def _churn(self) -> None:
        while True:
            await asyncio.sleep(random.expovariate(self.settings.edits_per_second))
            with suppress(KubeError):
                await self._edit()

    async def _edit(self) -> None:
        mine = [key for key in self._scheduled if not key.name.startswith("foreign")]
        if len(mine) < self.settings.objects:
            return await self._create(self._serial)
        name = random.choice(mine).name
        what, body = random.choice(EDITS)()
        if body is None:
            await self.client.delete(SCHEDULED_MACHINES, name, namespace=self.crew.tenants)
        else:
            await self.client.patch(SCHEDULED_MACHINES, name, body, namespace=self.crew.tenants)
        self.result.happened[what] += 1
        return None

    async def _kill(self) -> None:
        """The first replica is spared, so that its memory can be followed; it takes over from all others."""
        while True:
            await asyncio.sleep(self.settings.kill_every * (0.5 + random.random()))
            number = random.randrange(1, len(self.replicas))
            victim, self.replicas[number] = self.replicas[number], self.crew.replica(number)
            await asyncio.to_thread(victim.kill)
            self.result.happened["replicas killed"] += 1
            self.replicas[number].start()

    async def _play_cluster_api(self) -> None:
        while True:
            raw = await self._held.get()
            try:
                await self._as_cluster_api(raw)
            except (NotFound, Conflict):
                continue
            except KubeError:
                self._held.put_nowait(raw)

    async def _as_cluster_api(self, raw: Raw) -> None:
        meta, where = raw["metadata"], self.crew.tenants
        held = HOLD in meta.get("finalizers", ())
        if not held and "deletionTimestamp" not in meta:
            await self.client.patch(MACHINES, meta["name"], _finalizers(meta, [HOLD]), namespace=where)
        elif held and "deletionTimestamp" in meta:
            await asyncio.sleep(random.random())
            base = meta["name"].removesuffix(names.MACHINE_SUFFIX)
            for end in ("infra", "bootstrap"):
                with suppress(NotFound):
                    await self.client.delete(CHILDREN[end], f"{base}-{end}", namespace=where)
            await self.client.patch(MACHINES, meta["name"], _finalizers(meta, []), namespace=where)

    # What must hold

    def _scheduled_changed(self, change: Change) -> None:
        if change.happening is Happening.DELETED:
            metadata = change.object["metadata"]
            if _waited(metadata) * SPEED >= RELEASE_AFTER.total_seconds():
                # Nobody holds a namespace for longer: what is left then is left to others, on purpose.
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
        if change.happening is Happening.DELETED:
            self._machines.pop(meta["uid"], None)
            self.result.happened["Machines gone"] += 1
            return
        if change.happening is Happening.ADDED and owner:
            self.result.happened["Machines made"] += 1
            if owner in self._machines.values():
                self.result.violations.append(f"a second Machine for the owner of {change.key.name}")
            self._machines[meta["uid"]] = owner
        if owner:
            self._held.put_nowait(change.object)

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(LOOK_EVERY)
            self._look_once()
            if random.random() < 0.1:
                await self._check_foreign()

    def _look_once(self) -> None:
        """Takes down who is in a state that he should not be in."""
        now, shown, wrong = time.monotonic(), self.crew.clock.now(), set()
        if not any(map(self._is_up, self.replicas)):
            # All dead or still starting at the same time: what nobody can do counts from when somebody can.
            self.result.happened["half seconds with no replica up"] += 1
            self._wrong = dict.fromkeys(self._wrong, now)
        for key in self._scheduled:
            raw = self._scheduled.get(key)
            fault = self._fault(raw, shown) if raw else None
            if fault:
                wrong.add((key, fault))
                self._still_wrong((key, fault), now)
        for entry in self._wrong.keys() - wrong:
            self.result.late.append(now - self._wrong.pop(entry))

    def _is_up(self, replica: Server) -> bool:
        if replica.pid is None:
            return False
        if replica.name not in self._up and STARTED in replica.log.read_text(errors="replace"):
            self._up.add(replica.name)
        return replica.name in self._up

    def _still_wrong(self, entry: tuple[Key, str], now: float) -> None:
        since = self._wrong.setdefault(entry, now)
        if now - since > self.settings.forgotten_after and entry not in self._told:
            self._told.add(entry)
            self.result.violations.append(f"{entry[0]} {entry[1]} for {now - since:.0f} s")

    def _fault(self, raw: Raw, shown: datetime) -> str | None:
        """What is not as the schedule says at the moment."""
        meta, intent = raw["metadata"], read_intent({**SCHEDULED_MACHINES.envelope(), **raw}, DEFAULT_POLICY)
        if meta["name"].startswith("foreign"):
            return None
        machine = self._children["machine"].get(Key(meta["namespace"], f"{meta['name']}-machine"))
        there = machine is not None and "deletionTimestamp" not in machine["metadata"]
        if "deletionTimestamp" in meta:
            return "is not let go"
        if not intent.enabled and not intent.kill_switch:
            return None
        wanted = not intent.kill_switch and intent.covers(shown)
        return None if wanted == there else "has no Machine" if wanted else "has a Machine"

    async def _check_foreign(self) -> None:
        for (end, name), version in self._foreign.items():
            with suppress(KubeError):
                found = await self.client.get(CHILDREN[end], name, namespace=self.crew.tenants)
                if found["metadata"]["resourceVersion"] != version:
                    self.result.violations.append(f"{name} of somebody else was touched")
                    self._foreign[end, name] = found["metadata"]["resourceVersion"]

    async def _weigh(self) -> None:
        while True:
            self._revive()
            pid = self.replicas[0].pid
            if pid is not None:
                self.result.memory.append((time.monotonic() - self._started, _proc.resident(pid)))
            await asyncio.sleep(SAMPLE_EVERY)

    def _revive(self) -> None:
        """Does as Kubernetes does for a replica that ended itself, as it must if it was held up in mid-write."""
        for number, replica in enumerate(self.replicas):
            if replica.exit_code is None:
                continue
            if replica.exit_code == EXIT_CODE:
                self.result.happened["replicas ended by their own alarm"] += 1
            else:
                said = "\n".join(replica.last_lines(5))
                self.result.violations.append(f"a replica ended with {replica.exit_code}:\n{said}")
            self.replicas[number] = self.crew.replica(number)
            self.replicas[number].start()

    # The end

    async def _settled(self) -> None:
        """Nothing is edited and nobody killed any more: whatever went wrong before must be right after a lease."""
        before = set[tuple[Key, str]]()
        for _ in range(int(SETTLE_SECONDS / LOOK_EVERY)):
            await asyncio.sleep(LOOK_EVERY)
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
            orphans = [key.name for one in self._children.values() for key in one if not key.name.startswith("foreign")]
            if not len(self._scheduled) and not orphans:
                return
        self.result.violations.append(f"left over: {len(self._scheduled)} objects, {orphans[:5]}")


MACHINE_SPEC = {
    "clusterName": "other",
    "bootstrap": {"dataSecretName": "none"},
    "infrastructureRef": {"apiGroup": HOSTS.group, "kind": HOSTS.kind, "name": "none"},
}


def opens_every_hour(minute: int) -> Raw:
    """Half of every hour, from some minute on."""
    return {"cron": f"{minute} * * * *", "duration": "30m", "timezone": "UTC", "enabled": True}


def _finalizers(meta: Raw, wanted: list[str]) -> Raw:
    return {"metadata": {"uid": meta["uid"], "finalizers": wanted}}


def _waited(metadata: Raw) -> float:
    """Real seconds since somebody asked for an object's deletion."""
    asked = metadata.get("deletionTimestamp")
    return (datetime.now(UTC) - datetime.fromisoformat(asked)).total_seconds() if asked else 0.0


def owner_of(raw: Raw) -> str | None:
    """The uid of the ScheduledMachine that owns an object."""
    owners = raw["metadata"].get("ownerReferences") or ()
    return next((owner["uid"] for owner in owners if owner["kind"] == names.KIND), None)


EDITS: tuple[Callable[[], tuple[str, Raw | None]], ...] = (
    lambda: ("schedules edited", {"spec": {"schedule": {"cron": f"{random.randrange(60)} * * * *"}}}),
    lambda: ("schedules switched on or off", {"spec": {"schedule": {"enabled": random.random() < 0.7}}}),
    lambda: ("kill switches", {"spec": {"killSwitch": random.random() < 0.4}}),
    lambda: ("other edits", {"spec": {"priority": random.randrange(256)}}),
    lambda: ("objects deleted", None),
)


@asynccontextmanager
async def soaking(cluster: Cluster, keeper: Keeper, settings: Settings) -> AsyncIterator[Soak]:
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
            for replica in made.replicas:
                await asyncio.to_thread(replica.kill)

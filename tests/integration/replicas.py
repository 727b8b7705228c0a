"""Two replicas of `5spot run` on an API server that keeps an audit log, and objects that keep them busy."""

import json
import os
import secrets
import signal
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from crds.definitions import all_definitions
from local import access, capi
from local.binaries import Assets
from local.cluster import Audit, LocalCluster, Options
from local.processes import Keeper
from local.provider import kinds
from local.provider.kinds import CLUSTERS
from service.clock import SimulatedClock
from service.kube.client import Client
from service.kube.resource import LEASES, NAMESPACES, SCHEDULED_MACHINES
from tests.e2e.manifests import machine
from tests.service.process import Process, started
from tests.waiting import until

Raw = dict[str, Any]
USERS = (access.OPERATOR, access.CAPI)
"""Each replica is a user of its own, so that the audit log distinguishes them."""

CAPI_KINDS = ("Cluster", "Machine")
IN_A_ROW = 10
LAST_LINES = 25
LONGEST_LINE = 64 * 1024
SHORT_LEASES = ("--lease-seconds=6", "--lease-renew-seconds=4.5", "--lease-retry-seconds=0.5")
SPEED = 2400.0
"""The replicas' clocks run so fast: an hour takes a second and a half."""
NOT_FENCED = {"leases", "events"}
"""What says who holds a shard, and what was done: not what is done."""


@dataclass(frozen=True)
class Write:
    """One line of the audit log: a request that was accepted."""

    user: str
    what: str
    name: str
    at: str


class AuditLog:
    """Reads what was written since it was last asked."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._offset = _end_of_last_line(log)
        self.writes: list[Write] = []

    def read(self) -> list[Write]:
        """Everything so far."""
        with self._log.open("rb") as log:
            log.seek(self._offset)
            for line in log:
                if not line.endswith(b"\n"):
                    break
                self._offset += len(line)
                self.writes += _accepted(json.loads(line))
        return self.writes

    def by(self, user: str) -> list[Write]:
        """What one of them wrote."""
        return [write for write in self.read() if write.user == user]

    def busiest(self) -> str | None:
        """Who has just written a few times in a row."""
        users = [write.user for write in self.read()[-IN_A_ROW:]]
        return users[0] if len(users) == IN_A_ROW and len(set(users)) == 1 and users[0] in USERS else None


def _end_of_last_line(log: Path) -> int:
    """Where the log ends, but for a line that is just being written: a file grows in steps."""
    with log.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        start = file.seek(max(0, size - LONGEST_LINE))
        return start + file.read(size - start).rfind(b"\n") + 1


def _accepted(entry: Raw) -> Iterator[Write]:
    target = entry.get("objectRef") or {}
    if entry["responseStatus"]["code"] < 300 and target.get("resource") not in NOT_FENCED:
        what = f"{entry['verb']} {target.get('resource')} {target.get('subresource', '')}"
        yield Write(entry["user"]["username"], what, target.get("name", ""), entry["requestReceivedTimestamp"])


@dataclass
class Replica:
    """A process, and what it is called in the audit log and in its lease."""

    user: str
    process: Process

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.process.child.pid, number)

    @property
    def alive(self) -> bool:
        return self.process.child.returncode is None

    @property
    def state(self) -> str:
        """As the kernel sees it: T is stopped."""
        return Path(f"/proc/{self.process.child.pid}/stat").read_text().rpartition(")")[2].split()[0]

    @property
    def is_up(self) -> bool:
        return any(entry.get("event") == "controller started" for entry in self.process.events)

    def lost_since(self, count: int) -> bool:
        """Whether it has logged, after so many other lines, that it lost the shard."""
        return any(entry.get("event") == "shard lost" for entry in self.process.events[count:])

    def acquired_since(self, moment: datetime) -> datetime | None:
        """When it first got the shard after that moment, by its own log."""
        found = (entry["timestamp"] for entry in self.process.events if entry.get("event") == "shard acquired")
        return min((at for at in map(datetime.fromisoformat, found) if at > moment), default=None)


@dataclass
class Arena:
    """The API server, its audit log and the replicas."""

    cluster: LocalCluster
    client: Client
    flags: tuple[str, ...]
    tenants: str
    own: str
    other: str = ""
    """The namespace of a second release, for tests that have one."""
    clock: SimulatedClock = field(default_factory=lambda: SimulatedClock.starting(datetime.now(UTC), SPEED))
    stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    replicas: dict[str, Replica] = field(default_factory=dict)

    def audit(self) -> AuditLog:
        return AuditLog(self.cluster.audit_log)

    async def described(self) -> str:
        """Who holds what, and what the replicas logged last."""
        leases = await self.client.list(LEASES, namespace=self.own)
        lines = [str(lease["spec"]) for lease in leases]
        for replica in self.replicas.values():
            state = replica.state if replica.alive else f"ended with {replica.process.child.returncode}"
            lines += [f"{replica.user} {state}", *map(str, replica.process.events[-LAST_LINES:])]
        return "\n".join(lines)

    async def store(self, objects: Iterable[Raw]) -> None:
        """Submits ScheduledMachines."""
        for each in objects:
            await self.client.create(SCHEDULED_MACHINES, each, namespace=self.tenants)

    async def start(self, user: str) -> Replica:
        """Starts a replica, or starts it again after its end."""
        words = [
            f"--kubeconfig={self.cluster.kubeconfig_of(user)}",
            f"--namespace={self.own}",
            f"--namespaces={self.tenants}",
            "--no-webhooks",
            "--bind-address=127.0.0.1",
            "--health-port=0",
            "--metrics-port=0",
            "--drain-seconds=0",
            # Whenever it starts, its clock shows about what the others' clocks show.
            f"--at={self.clock.now().isoformat()}",
            f"--speed={self.clock.speed}",
            *self.flags,
        ]
        process = await self.stack.enter_async_context(started(words))
        self.replicas[user] = Replica(user, process)
        await until(lambda: self.replicas[user].is_up, within=120)
        return self.replicas[user]


@asynccontextmanager
async def arena(cluster: LocalCluster, *, flags: tuple[str, ...] = ()) -> AsyncIterator[Arena]:
    """Two namespaces, one of them with a Cluster; no objects and no replicas yet."""
    mark = secrets.token_hex(3)
    async with cluster.client() as client:
        found = Arena(cluster, client, flags, f"tenants-{mark}", f"own-{mark}")
        for name in (found.tenants, found.own):
            await client.create(NAMESPACES, {**NAMESPACES.envelope(), "metadata": {"name": name}})
        body = {**CLUSTERS.envelope(), "metadata": {"name": "demo"}, "spec": {"paused": False}}
        await client.create(CLUSTERS, body, namespace=found.tenants)
        async with found.stack:
            yield found


def restless(objects: int) -> Iterator[Raw]:
    """Objects whose windows open and close every hour, half of them in turn with the others."""
    for number in range(objects):
        hours = [str(hour) for hour in range(number % 2, 24, 2)]
        schedule = {"daysOfWeek": ["mon-sun"], "hoursOfDay": hours}
        yield machine(f"m{number}", infrastructure={"address": f"host-{number}"}, schedule=schedule)


@contextmanager
def audited_cluster(assets: Assets, keeper: Keeper) -> Iterator[LocalCluster]:
    """An API server with all CRDs that logs every write, and no controllers but Kubernetes' own."""
    served = [crd for crd in capi.load_definitions(assets.capi_crds) if crd["spec"]["names"]["kind"] in CAPI_KINDS]
    definitions = (*kinds.definitions(), *served, *all_definitions())
    with LocalCluster("audited", assets, keeper, Options(definitions=definitions, audit=Audit.WRITES)) as cluster:
        yield cluster

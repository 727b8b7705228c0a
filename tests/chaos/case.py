"""One case: prepare the objects, inject the fault, restart the operator if it died, and check what is left."""

import asyncio
import itertools
import secrets
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from crds import names
from local.cluster import LocalCluster
from service.kube.client import Client
from service.kube.errors import AlreadyExists
from service.kube.resource import NAMESPACES
from service.kube.transport import Limits
from service.runtime.backoff import Backoff
from service.runtime.key import Key
from service.workload import connection
from tests.chaos import invariants
from tests.chaos.actor import Actor
from tests.chaos.faults import Fault, Moment, Strike
from tests.chaos.invariants import brief, conclusion
from tests.chaos.operators import CALL_SECONDS, InProcess, Operator, RealProcess
from tests.chaos.proxy import RETRY_AFTER, Proxy, Upstream, proxy
from tests.chaos.rest import RestlessError
from tests.chaos.scenarios import BY_NAME, Scenario, in_service, neighbour_in_service, reach, waiting
from tests.chaos.stage import NEIGHBOUR, PREFIX, Stage
from tests.e2e.operator import MovableClock
from tests.waiting import until

PATIENCE = 150.0
QUIET_SECONDS = 0.6
"""How long to wait for late writes; the operator itself says whether it has more to do."""
SETTLE_SECONDS = 90.0


@dataclass
class Result:
    """The result of a case; without a strike it is the clean pass."""

    scenario: Scenario
    strike: Strike | None
    breaches: list[str] = field(default_factory=list)
    struck: str = ""
    """The write that met the fault; empty if there was none."""
    moments: list[Moment] = field(default_factory=list)
    conclusion: invariants.Conclusion | None = None
    seconds: float = 0.0

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Result":
        strike = Strike(Fault(data["fault"]), Moment(data["label"], data["nth"])) if "fault" in data else None
        return cls(BY_NAME[data["scenario"]], strike, data["breaches"], data["struck"], seconds=data["seconds"])

    def to_json(self) -> dict[str, Any]:
        """The result as one part of a run passes it to the others."""
        data: dict[str, Any] = {"scenario": self.scenario.name, "breaches": self.breaches, "struck": self.struck}
        data["seconds"] = self.seconds
        if self.strike is None:
            return data
        moment = self.strike.moment
        return {**data, "fault": self.strike.fault, "label": moment.label, "nth": moment.nth}

    @property
    def met(self) -> bool:
        return self.strike is None or bool(self.struck)

    @property
    def survived(self) -> bool:
        return self.met and not self.breaches

    @property
    def verdict(self) -> str:
        if self.breaches:
            return "FAILED"
        return "survived" if self.met else "its write did not happen"

    def __str__(self) -> str:
        what = f"{self.strike.fault} at {self.strike.moment} ({self.struck or 'not met'})" if self.strike else "clean"
        data = "".join(f"\n    {breach}" for breach in self.breaches)
        return f"{self.scenario.name}: {what}: {self.verdict}{data}"


class Arena:
    """The API server, the actor and the proxies' way there, shared by all cases."""

    def __init__(self, cluster: LocalCluster, client: Client, actor: Actor, upstream: Upstream) -> None:
        self.cluster = cluster
        self.client = client
        self.actor = actor
        self.upstream = upstream
        self._mark = secrets.token_hex(2)
        self._numbers = itertools.count(1)

    def new_namespace(self) -> str:
        return f"{PREFIX}{self._mark}n{next(self._numbers)}"


@contextmanager
def impatient() -> Iterator[None]:
    """Real behaviour towards workload clusters, with pauses that a test can wait for."""
    patience, limits = connection.RECONNECT_BACKOFF, connection.LIMITS
    connection.RECONNECT_BACKOFF = Backoff(base=0.2, cap=1.0, jitter=0.5)
    connection.LIMITS = Limits(calls=8, call_seconds=CALL_SECONDS, connect_seconds=CALL_SECONDS)
    try:
        yield
    finally:
        connection.RECONNECT_BACKOFF, connection.LIMITS = patience, limits


@asynccontextmanager
async def arena(cluster: LocalCluster) -> AsyncIterator[Arena]:
    """An arena that runs until the block ends."""
    async with cluster.client() as client:
        with suppress(AlreadyExists):
            body = {**NAMESPACES.envelope(), "metadata": {"name": names.RECLAIM_NAMESPACE}}
            await client.create(NAMESPACES, body)
        actor, upstream = Actor(client), Upstream(cluster, cluster.directory)
        playing = asyncio.create_task(actor.run())
        await actor.ready.wait()
        try:
            with impatient():
                yield Arena(cluster, client, actor, upstream)
        finally:
            playing.cancel()
            with suppress(asyncio.CancelledError):
                await playing
            await upstream.close()


async def play(arena: Arena, scenario: Scenario, strike: Strike | None, wanted: Result | None = None) -> Result:
    """Plays a case; `wanted` is the clean pass, whose end this one must reach too."""
    began, result = time.monotonic(), Result(scenario, strike)
    async with proxy(arena.upstream, arena.new_namespace()) as way:
        stage = Stage(arena.cluster, arena.client, arena.actor, way, MovableClock(scenario.starts_at))
        if scenario.leaves_children:
            arena.actor.leaves_children.add(stage.namespace)
        try:
            await _play(stage, scenario, strike, result)
        finally:
            await stage.clear()
    if wanted is not None and result.conclusion != wanted.conclusion:
        result.breaches.append(f"status converges: {_difference(result.conclusion, wanted.conclusion)}")
    result.seconds = time.monotonic() - began
    return result


async def _play(stage: Stage, scenario: Scenario, strike: Strike | None, result: Result) -> None:
    real = strike is not None and strike.fault.is_real
    operator: Operator = await _prepared(stage, scenario, fenced=real)
    neighbours, since = invariants.uids(await stage.children(NEIGHBOUR)), len(stage.proxy.writes)
    stage.proxy.arm(strike)
    steps = list(scenario.steps)
    if real:
        await operator.stop()
        await steps[0].act(stage)
        operator = RealProcess(stage)
        await operator.start()
    kubelet = asyncio.create_task(_restart(stage.proxy, operator))
    try:
        for number, step in enumerate(steps):
            if number or not real:
                await step.act(stage)
            if not await reach(stage, step.goal, PATIENCE):
                result.breaches.append(
                    f"status converges: the goal was not reached in step {number + 1}: {brief(await stage.machine())}"
                )
                break
        await _settle(stage, result)
        while stage.proxy.died.is_set() and not kubelet.done():
            await asyncio.wait((kubelet,), timeout=PATIENCE)
            await _settle(stage, result)
        await _rest(stage, operator, result)
        result.struck = str(stage.proxy.struck or "")
        result.moments = stage.proxy.counted()
        if kubelet.done():
            kubelet.result()
    finally:
        kubelet.cancel()
        with suppress(asyncio.CancelledError):
            await kubelet
        await operator.stop()
    if not result.breaches and not await reach(stage, steps[-1].goal, 1):
        result.breaches.append(f"status converges: it did not stay so: {brief(await stage.machine())}")
    result.conclusion = conclusion(await stage.machine())
    result.breaches += await invariants.breaches(stage, scenario, neighbours, since)
    result.breaches += await _nothing_left_to_do(stage, fenced=real)


async def _prepared(stage: Stage, scenario: Scenario, *, fenced: bool) -> InProcess:
    await stage.furnish()
    operator = InProcess(stage, fenced=fenced)
    await operator.start()
    await scenario.furnish(stage)
    await stage.apply(**scenario.spec)
    await stage.apply(NEIGHBOUR, schedule={"daysOfWeek": ["mon-sun"]})
    ready = (in_service if scenario.begins_in_service else waiting, neighbour_in_service)
    for goal in ready:
        if not await reach(stage, goal, PATIENCE):
            raise RuntimeError(f"the case cannot be prepared: {await stage.machine()}")
    await stage.occupy("at-home", name=NEIGHBOUR)
    await scenario.prepare(stage)
    await _quiet(stage.proxy, operator)
    return operator


async def _restart(way: Proxy, operator: Operator) -> None:
    """What a kubelet does."""
    await way.died.wait()
    await operator.bury()
    way.revive()
    await operator.start()


async def _quiet(way: Proxy, operator: InProcess) -> None:
    await operator.at_rest()
    count = -1
    while len(way.writes) != count:
        count = len(way.writes)
        await asyncio.sleep(0.1)
        await operator.at_rest()


async def _settle(stage: Stage, result: Result) -> None:
    """Waits until nothing is written for a while; a write that never ends is a fault of its own."""
    way, began = stage.proxy, time.monotonic()
    count, since = -1, began
    asked = RETRY_AFTER if way.struck and way.strike and way.strike.fault is Fault.THROTTLED else 0
    while time.monotonic() - since < QUIET_SECONDS + asked or way.down:
        if len(way.writes) != count:
            count, since = len(way.writes), time.monotonic()
        if time.monotonic() - began > SETTLE_SECONDS:
            last = "; ".join(map(str, way.writes[-5:]))
            result.breaches.append(f"then nothing is written any more: still writing, at last {last}")
            return
        await asyncio.sleep(0.05)


async def _rest(stage: Stage, operator: Operator, result: Result) -> None:
    """Waits until the operator has nothing left to do, and writes nothing in a second check."""
    count = -1
    try:
        while count != len(stage.proxy.writes) and not result.breaches:
            count = len(stage.proxy.writes)
            await operator.at_rest()
            await _settle(stage, result)
            await operator.at_rest()
    except RestlessError as error:
        result.breaches.append(f"then nothing is written any more: the operator does not come to rest {error}")


async def _nothing_left_to_do(stage: Stage, *, fenced: bool) -> list[str]:
    """A new operator observes everything, and has nothing to write."""
    stage.proxy.arm(None)
    before = len(stage.proxy.writes)
    operator = InProcess(stage, fenced=fenced)
    await operator.start()
    try:
        async with asyncio.timeout(2 * PATIENCE):
            await _observed_all(operator, stage.namespace)
    finally:
        await operator.stop()
    return [f"then nothing is written any more: a new operator wrote {write}" for write in stage.proxy.writes[before:]]


async def _observed_all(operator: InProcess, namespace: str) -> None:
    controller = operator.controller
    await until(lambda: all(map(controller.fence.holds, controller.fence.shards)), within=PATIENCE)
    await asyncio.sleep(0.1)
    await operator.at_rest()
    workload = controller.workloads.get(Key(namespace, "demo"))
    if workload is not None:
        await workload.settled.wait()
    await asyncio.sleep(0.1)
    await operator.at_rest()


def _difference(found: invariants.Conclusion | None, wanted: invariants.Conclusion | None) -> str:
    phase, conditions = found or ("", {})
    other, others = wanted or ("", {})
    names_ = sorted(conditions.keys() | others.keys())
    lines = [
        f"{name} is {conditions.get(name)}, not {others.get(name)}"
        for name in names_
        if conditions.get(name) != others.get(name)
    ]
    return "; ".join([*([f"phase is {phase}, not {other}"] if phase != other else []), *lines])

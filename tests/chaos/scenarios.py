"""What an operator has to bring about, step by step; the clock is moved by hand and only in a first step."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from crds import names
from service.kube.resource import CONFIG_MAPS, NODES, PODS, SCHEDULED_MACHINES
from tests.chaos.stage import NAME, NEIGHBOUR, Stage, pod
from tests.e2e.manifests import EIGHT, HOLD, NINE, SIX, says
from tests.e2e.reclaims import REQUEST, config_name, is_labelled, is_over

Raw = dict[str, Any]
Act = Callable[[Stage], Awaitable[None]]
Goal = Callable[[Stage], Awaitable[bool]]
LOOK_EVERY = 0.1


async def nothing(_: Stage) -> None:
    """No more is needed."""


@dataclass(frozen=True)
class Step:
    """Something happens; what the operator must make of it."""

    act: Act
    goal: Goal


@dataclass(frozen=True)
class Scenario:
    """A machine, what befalls it, and what must be left of it."""

    name: str
    about: str
    steps: tuple[Step, ...]
    starts_at: datetime = NINE
    spec: Raw = field(default_factory=dict)
    prepare: Act = nothing
    """When it is in service, or was seen outside its window."""
    runs: bool = False
    """Whether the machine is there in the end."""
    exists: bool = True
    """Whether the ScheduledMachine is there in the end."""
    may_evict: bool = True
    """Whether pods may be taken from the machine's own Node."""
    equipped: bool = False
    """Whether the reclaim agent's settings are there in the end."""
    careless: bool = False
    """Whether bootstrap and infrastructure stay behind when the Machine goes, for the operator to clear up."""

    @property
    def begins_in_service(self) -> bool:
        return self.starts_at != EIGHT


# What is waited for


async def in_service(stage: Stage, name: str = NAME) -> bool:
    raw = await stage.machine(name)
    return raw is not None and says(raw.get("status") or {}, "Ready", "True")


async def neighbour_in_service(stage: Stage) -> bool:
    return await in_service(stage, NEIGHBOUR)


def phase(wanted: str, reason: str | None = None) -> Goal:
    """The phase is reached, and nothing of the machine is left."""

    async def reached(stage: Stage) -> bool:
        status = ((await stage.machine()) or {}).get("status") or {}
        right = status.get("phase") == wanted and (reason is None or says(status, "Ready", "False", reason))
        return right and not await stage.children()

    return reached


async def waiting(stage: Stage) -> bool:
    return (((await stage.machine()) or {}).get("status") or {}).get("phase") == "Inactive"


async def all_gone(stage: Stage) -> bool:
    return await stage.machine() is None and not await stage.children()


def tainted(*keys: str) -> Goal:
    async def reached(stage: Stage) -> bool:
        node, raw = await stage.find(NODES, stage.node), await stage.machine()
        found = {one["key"] for one in (node or {"spec": {}})["spec"].get("taints") or ()}
        noted = {one["key"] for one in ((raw or {}).get("status") or {}).get("appliedNodeTaints") or ()}
        return found == {*keys, THEIRS} and noted == set(keys)

    return reached


async def reclaimed(stage: Stage) -> bool:
    raw = await stage.machine()
    return raw is not None and is_over(raw.get("status") or {}) and not await stage.children()


async def drain_under_way(stage: Stage) -> bool:
    held, node = await stage.find(PODS, "held"), await stage.find(NODES, stage.node)
    going = held is not None and "deletionTimestamp" in held["metadata"]
    return going and bool(node and node["spec"].get("unschedulable"))


async def back_in_service(stage: Stage) -> bool:
    node = await stage.find(NODES, stage.node)
    return bool(node and not node["spec"].get("unschedulable")) and await in_service(stage)


async def is_equipped(stage: Stage) -> bool:
    node = await stage.find(NODES, stage.node)
    return bool(node and is_labelled(node)) and await _config(stage) is not None


async def is_stripped(stage: Stage) -> bool:
    node = await stage.find(NODES, stage.node)
    return bool(node and not is_labelled(node)) and await _config(stage) is None


async def _config(stage: Stage) -> Raw | None:
    listed = await stage.client.list(
        CONFIG_MAPS, namespace=names.RECLAIM_NAMESPACE, fields=f"metadata.name={config_name(stage.node)}"
    )
    return listed[0] if listed else None


async def reach(stage: Stage, goal: Goal, within: float) -> bool:
    """Whether it came to that."""
    ends = time.monotonic() + within
    while not await goal(stage):
        if time.monotonic() > ends:
            return False
        await asyncio.sleep(LOOK_EVERY)
    return True


# What happens

THEIRS = "tests.example/theirs"


def clock_to(at: datetime) -> Act:
    async def act(stage: Stage) -> None:
        stage.clock.move_to(at)

    return act


def edit(**spec: Any) -> Act:
    async def act(stage: Stage) -> None:
        await stage.edit({"spec": spec})

    return act


async def delete(stage: Stage) -> None:
    await stage.client.delete(SCHEDULED_MACHINES, NAME, namespace=stage.namespace)


async def ask_back(stage: Stage) -> None:
    body = {"metadata": {"annotations": REQUEST}}
    await stage.client.patch(NODES, stage.node, body, field_manager=names.AGENT_FIELD_MANAGER)


async def two_tenants(stage: Stage) -> None:
    await stage.occupy("one", "two")


async def a_tenant_who_stays(stage: Stage) -> None:
    body = pod("held", stage.node)
    body["metadata"]["finalizers"] = [HOLD]
    await stage.create(PODS, body)


async def their_taint(stage: Stage) -> None:
    await stage.occupy("one")
    body = {"spec": {"taints": [{"key": THEIRS, "effect": "PreferNoSchedule"}]}}
    await stage.client.patch(NODES, stage.node, body, field_manager="somebody")


async def two_tenants_and_an_agent(stage: Stage) -> None:
    await two_tenants(stage)
    await reach(stage, is_equipped, 30)


def _taint(key: str) -> Raw:
    return {"key": key, "effect": "NoSchedule", "value": "yes"}


FIRST, SECOND = "tests.example/first", "tests.example/second"
COMMANDS = {"killIfCommands": ["idea"]}

SCENARIOS = (
    Scenario(
        "activation",
        "a window opens",
        (Step(clock_to(NINE), in_service),),
        starts_at=EIGHT,
        runs=True,
        may_evict=False,
    ),
    Scenario(
        "shutdown",
        "a window closes on a Node with two pods",
        (Step(clock_to(SIX), phase("Inactive")),),
        prepare=two_tenants,
    ),
    Scenario(
        "kill-switch",
        "the kill switch is set; nobody else clears up",
        (Step(edit(killSwitch=True), phase("Terminated", "KillSwitch")),),
        prepare=two_tenants,
        may_evict=False,
        careless=True,
    ),
    Scenario(
        "deletion",
        "the ScheduledMachine is deleted while it serves two pods",
        (Step(delete, all_gone),),
        prepare=two_tenants,
        exists=False,
    ),
    Scenario(
        "taints",
        "two taints are asked for, then one of them no more",
        (
            Step(edit(nodeTaints=[_taint(FIRST), _taint(SECOND)]), tainted(FIRST, SECOND)),
            Step(edit(nodeTaints=[_taint(SECOND)]), tainted(SECOND)),
        ),
        prepare=their_taint,
        runs=True,
        may_evict=False,
    ),
    Scenario(
        "reclaim",
        "the owner asks for the host back",
        (Step(ask_back, reclaimed),),
        spec=COMMANDS,
        prepare=two_tenants_and_an_agent,
    ),
    Scenario(
        "cancelled",
        "a window closes, and is prolonged in the middle of the drain",
        (
            Step(clock_to(SIX), drain_under_way),
            Step(edit(schedule={"daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-20"]}), back_in_service),
        ),
        prepare=a_tenant_who_stays,
        runs=True,
    ),
    Scenario(
        "equipment",
        "commands to look for are given, and taken back",
        (Step(edit(**COMMANDS), is_equipped), Step(edit(killIfCommands=None), is_stripped)),
        runs=True,
        may_evict=False,
    ),
)
BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}

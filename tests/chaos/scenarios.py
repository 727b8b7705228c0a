"""What an operator must achieve, step by step; a test moves the clock, and only in a first step."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from crds import names
from service.kube.resource import CONFIG_MAPS, NODES, PODS, SCHEDULE_OVERRIDES, SCHEDULED_MACHINES
from tests.chaos import calendars
from tests.chaos.stage import NAME, NEIGHBOUR, Stage, pod
from tests.e2e.manifests import EIGHT, HOLD, NINE, SIX, says
from tests.e2e.reclaims import REQUEST, config_name, is_labelled, is_over

Raw = dict[str, Any]
Act = Callable[[Stage], Awaitable[None]]
Goal = Callable[[Stage], Awaitable[bool]]
LOOK_EVERY = 0.1


async def nothing(_: Stage) -> None:
    """For a scenario without preparation."""


@dataclass(frozen=True)
class Step:
    """An event, and the state that the operator must reach after it."""

    act: Act
    goal: Goal


@dataclass(frozen=True)
class Scenario:
    """A machine, the events that concern it, and what must exist in the end."""

    name: str
    about: str
    steps: tuple[Step, ...]
    starts_at: datetime = NINE
    spec: Raw = field(default_factory=dict)
    furnish: Act = nothing
    """Called before the ScheduledMachine is created."""
    prepare: Act = nothing
    """Called when the machine is in service, or the operator has observed it outside its window."""
    runs: bool = False
    """Whether the machine exists in the end."""
    exists: bool = True
    """Whether the ScheduledMachine exists in the end."""
    may_evict: bool = True
    """Whether the operator may evict pods from the machine's own Node."""
    has_agent: bool = False
    """Whether the reclaim agent's ConfigMap exists in the end."""
    leaves_children: bool = False
    """Whether Cluster API leaves bootstrap and infrastructure behind, so that the operator must delete them."""

    @property
    def begins_in_service(self) -> bool:
        return self.starts_at != EIGHT


# Goals


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


async def has_agent(stage: Stage) -> bool:
    node = await stage.find(NODES, stage.node)
    return bool(node and is_labelled(node)) and await _config(stage) is not None


async def has_no_agent(stage: Stage) -> bool:
    node = await stage.find(NODES, stage.node)
    return bool(node and not is_labelled(node)) and await _config(stage) is None


async def _config(stage: Stage) -> Raw | None:
    listed = await stage.client.list(
        CONFIG_MAPS, namespace=names.RECLAIM_NAMESPACE, fields=f"metadata.name={config_name(stage.node)}"
    )
    return listed[0] if listed else None


def override_says(name: str, value: str, reason: str | None = None) -> Goal:
    """The override itself reports whether it is in force."""

    async def reached(stage: Stage) -> bool:
        raw = await stage.find(SCHEDULE_OVERRIDES, name)
        return says((raw or {}).get("status") or {}, "InForce", value, reason)

    return reached


async def no_override(stage: Stage) -> bool:
    return await stage.find(SCHEDULE_OVERRIDES, TONIGHT) is None


def both(first: Goal, second: Goal) -> Goal:
    async def reached(stage: Stage) -> bool:
        return await first(stage) and await second(stage)

    return reached


async def reach(stage: Stage, goal: Goal, within: float) -> bool:
    """Whether the goal is reached in time."""
    ends = time.monotonic() + within
    while not await goal(stage):
        if time.monotonic() > ends:
            return False
        await asyncio.sleep(LOOK_EVERY)
    return True


# Events

THEIRS = "tests.example/theirs"
TONIGHT, NEWER = "a-tonight", "b-newer"
"""Of two overrides of one second, the last by name is the newer."""
TEN = NINE + timedelta(hours=1)
SEVEN = SIX + timedelta(hours=1)
A_DAY_LATER = SEVEN + timedelta(days=1)


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


async def request_reclaim(stage: Stage) -> None:
    body = {"metadata": {"annotations": REQUEST}}
    await stage.client.patch(NODES, stage.node, body, field_manager=names.AGENT_FIELD_MANAGER)


def override(state: str, until: datetime, name: str = TONIGHT) -> Act:
    async def act(stage: Stage) -> None:
        await stage.override(name, state, until)

    return act


async def in_force_and_two_pods(stage: Stage) -> None:
    await two_pods(stage)
    await stage.override(TONIGHT, "Open", SEVEN)
    await reach(stage, override_says(TONIGHT, "True"), 30)


async def closes_in_an_hour(stage: Stage) -> None:
    await two_pods(stage)
    await stage.override(TONIGHT, "Closed", SIX, begins=TEN)
    await reach(stage, override_says(TONIGHT, "False", "NotYet"), 30)


async def closed_and_draining(stage: Stage) -> None:
    await a_pod_that_stays(stage)
    await stage.override(TONIGHT, "Closed", TEN)
    await reach(stage, both(drain_under_way, override_says(TONIGHT, "True")), 30)


async def two_pods(stage: Stage) -> None:
    await stage.occupy("one", "two")


async def a_pod_that_stays(stage: Stage) -> None:
    body = pod("held", stage.node)
    body["metadata"]["finalizers"] = [HOLD]
    await stage.create(PODS, body)


async def their_taint(stage: Stage) -> None:
    await stage.occupy("one")
    body = {"spec": {"taints": [{"key": THEIRS, "effect": "PreferNoSchedule"}]}}
    await stage.client.patch(NODES, stage.node, body, field_manager="another-controller")


async def two_pods_and_an_agent(stage: Stage) -> None:
    await two_pods(stage)
    await reach(stage, has_agent, 30)


async def two_pods_and_no_calendar(stage: Stage) -> None:
    await two_pods(stage)
    await calendars.delete_calendar(stage)
    await reach(stage, calendars.held("CalendarNotFound"), 30)


async def close_and_restore_the_calendar(stage: Stage) -> None:
    stage.clock.move_to(SIX)
    await calendars.store(stage)


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
        "early",
        "a machine is requested before its window opens, as long as the controller learnt that it takes",
        (Step(clock_to(NINE - timedelta(minutes=5)), in_service),),
        spec={"schedule": {"daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-17"], "startEarly": "Auto"}},
        starts_at=EIGHT,
        runs=True,
        may_evict=False,
    ),
    Scenario(
        "shutdown",
        "a window closes on a Node with two pods",
        (Step(clock_to(SIX), phase("Inactive")),),
        prepare=two_pods,
    ),
    Scenario(
        "kill-switch",
        "the user sets the kill switch; only the operator deletes bootstrap and infrastructure",
        (Step(edit(killSwitch=True), phase("Terminated", "KillSwitch")),),
        prepare=two_pods,
        may_evict=False,
        leaves_children=True,
    ),
    Scenario(
        "deletion",
        "the user deletes the ScheduledMachine while two pods run on its Node",
        (Step(delete, all_gone),),
        prepare=two_pods,
        exists=False,
    ),
    Scenario(
        "taints",
        "the user adds two taints, then removes one of them",
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
        "the agent on the Node requests an emergency reclaim",
        (Step(request_reclaim, reclaimed),),
        spec=COMMANDS,
        prepare=two_pods_and_an_agent,
    ),
    Scenario(
        "cancelled",
        "a window closes, and the user extends it in the middle of the drain",
        (
            Step(clock_to(SIX), drain_under_way),
            Step(edit(schedule={"daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-20"]}), back_in_service),
        ),
        prepare=a_pod_that_stays,
        runs=True,
    ),
    Scenario(
        "agent",
        "the user adds commands for the reclaim agent, then removes them",
        (Step(edit(**COMMANDS), has_agent), Step(edit(killIfCommands=None), has_no_agent)),
        runs=True,
        may_evict=False,
    ),
    Scenario(
        "calendar-edited",
        "the user adds today to the calendar that closes the machine, while two pods run on its Node",
        (Step(calendars.add_today, phase("Inactive")),),
        spec=calendars.CLOSED_BY_CALENDAR,
        furnish=calendars.store_for_another_day,
        prepare=two_pods,
    ),
    Scenario(
        "calendar-broken",
        "the user deletes the machine's calendar in mid-window, creates a broken one in its place, and mends it",
        (
            Step(calendars.delete_calendar, calendars.held("CalendarNotFound")),
            Step(calendars.store_broken, calendars.both(calendars.held("CalendarInvalid"), calendars.says("False"))),
            Step(calendars.mend, calendars.both(in_service, calendars.says("True"))),
        ),
        spec=calendars.CLOSED_BY_CALENDAR,
        furnish=calendars.store_for_another_day,
        runs=True,
        may_evict=False,
    ),
    Scenario(
        "override-opens",
        "a user overrides the schedule an hour before the window opens",
        (Step(override("Open", SIX), both(in_service, override_says(TONIGHT, "True"))),),
        starts_at=EIGHT,
        runs=True,
        may_evict=False,
    ),
    Scenario(
        "calendar-restored",
        "a window closes while the machine's calendar is missing, and the user creates it again",
        (Step(close_and_restore_the_calendar, phase("Inactive")),),
        spec=calendars.CLOSED_BY_CALENDAR,
        furnish=calendars.store_for_another_day,
        prepare=two_pods_and_no_calendar,
    ),
    Scenario(
        "override-closes",
        "a user closes a machine with two pods in the middle of its window",
        (Step(override("Closed", SIX), both(phase("Inactive"), override_says(TONIGHT, "True"))),),
        prepare=two_pods,
    ),
    Scenario(
        "override-ends",
        "an override ends that kept a machine with two pods beyond its window",
        (Step(clock_to(SEVEN), both(phase("Inactive"), override_says(TONIGHT, "False", "Over"))),),
        prepare=in_force_and_two_pods,
    ),
    Scenario(
        "override-overlaps",
        "a user closes a machine, and in the middle of the drain a newer override opens it",
        (
            Step(override("Closed", SIX), drain_under_way),
            Step(override("Open", SEVEN, NEWER), both(back_in_service, override_says(NEWER, "True"))),
        ),
        prepare=a_pod_that_stays,
        runs=True,
    ),
    Scenario(
        "override-begins",
        "an override begins an hour after it was stored, and closes a machine with two pods",
        (Step(clock_to(TEN), both(phase("Inactive"), override_says(TONIGHT, "True"))),),
        prepare=closes_in_an_hour,
    ),
    Scenario(
        "override-ends-early",
        "an override that closed a machine ends in the middle of the drain",
        (Step(clock_to(TEN), both(back_in_service, override_says(TONIGHT, "False", "Over"))),),
        prepare=closed_and_draining,
        runs=True,
    ),
    Scenario(
        "override-expires",
        "an override is over for a day, and the controller deletes it",
        (Step(clock_to(A_DAY_LATER), both(phase("Inactive"), no_override)),),
        prepare=in_force_and_two_pods,
    ),
)
BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}

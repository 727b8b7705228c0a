"""ScheduledMachines at rest: some whose window never closes, others whose window is months away."""

from datetime import datetime, timedelta
from typing import Any

from bench import _herd as herd
from crds.base import rfc3339
from crds.history import HISTORY_MAX
from local.provider.kinds import MACHINES
from service.kube.client import Client
from service.kube.resource import SCHEDULE_OVERRIDES, SCHEDULED_MACHINES

NAMESPACE = "fleet"
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Tokyo")
FAR = timedelta(days=180)
LASTS = timedelta(days=20)
Raw = dict[str, Any]


def open_always(number: int) -> Raw:
    return {"daysOfWeek": ["mon-sun"], "hoursOfDay": ["0-23"], "timezone": ZONES[number % 4], "enabled": True}


def opens_at(moment: datetime, zone: str = "UTC") -> Raw:
    """Open for a week from some minute on, once a year."""
    cron = f"{moment.minute} {moment.hour} {moment.day} {moment.month} *"
    return {"cron": cron, "duration": "168h", "timezone": zone, "enabled": True}


def far_away(number: int, now: datetime) -> Raw:
    """Nothing for months; no two of a few thousand alike."""
    return opens_at(now + FAR + timedelta(minutes=number % 10_000), ZONES[number % 4])


async def settle_in(client: Client, numbers: range, now: datetime, *, active_of_5: int = 1) -> int:
    """Stores ScheduledMachines of which so many of five are Active; how many that makes."""
    given = {n: open_always(n) if n % 5 < active_of_5 else far_away(n, now) for n in numbers}
    await herd.store(client, NAMESPACE, [herd.scheduled_machine(n, schedule) for n, schedule in given.items()])
    return sum("cron" not in schedule for schedule in given.values())


async def override(client: Client, numbers: range, now: datetime) -> None:
    """Stores an override for each of these ScheduledMachines; half of them begin in days, none changes what runs."""
    await herd.store(client, NAMESPACE, [_override(number, now) for number in numbers], SCHEDULE_OVERRIDES)


def _override(number: int, now: datetime) -> Raw:
    machine = herd.scheduled_machine(number)["metadata"]["name"]
    spec = {"machines": [machine], "state": "Closed" if number % 5 else "Open", "until": rfc3339(now + LASTS)}
    if number % 2:
        spec["from"] = rfc3339(now + LASTS / 2)
    return {**SCHEDULE_OVERRIDES.envelope(), "metadata": {"name": f"override-{machine}"}, "spec": spec}


async def remember(client: Client, now: datetime) -> None:
    """Gives every ScheduledMachine as long a history as a status keeps."""
    history = [_service(now - timedelta(days=HISTORY_MAX - number)) for number in range(HISTORY_MAX)]

    async def one(name: str) -> None:
        body = {"status": {"history": history}}
        await client.patch(SCHEDULED_MACHINES, name, body, namespace=NAMESPACE, subresource="status")

    stored = await client.list(SCHEDULED_MACHINES, namespace=NAMESPACE)
    without = [raw for raw in stored if len(raw.get("status", {}).get("history", ())) < HISTORY_MAX]
    await herd.gently([raw["metadata"]["name"] for raw in without], one)


def _service(opened: datetime) -> Raw:
    closed = opened + timedelta(hours=9)
    times = {"opened": opened, "requested": opened, "ready": opened + timedelta(minutes=3), "shutdown": closed}
    times |= {"closed": closed, "gone": closed + timedelta(minutes=4)}
    return {name: rfc3339(at.replace(microsecond=0)) for name, at in times.items()} | {"reason": "WindowClosed"}


async def provision(client: Client) -> None:
    """Gives every Machine a status such as Cluster API writes while a host is being set up."""

    async def one(name: str) -> None:
        body = {"status": MACHINE_STATUS}
        await client.patch(MACHINES, name, body, namespace=NAMESPACE, subresource="status")

    machines = await client.list(MACHINES, namespace=NAMESPACE)
    await herd.gently([raw["metadata"]["name"] for raw in machines if not raw.get("status")], one)


def _condition(kind: str) -> Raw:
    return {
        "type": kind,
        "status": "False",
        "reason": "NotReady",
        "message": f"{kind}: waiting for the host to report that it is provisioned, as hosts sometimes do for long",
        "lastTransitionTime": "2026-03-06T09:00:00Z",
        "observedGeneration": 1,
    }


CONDITIONS = ("Available", "Ready", "UpToDate", "BootstrapConfigReady", "InfrastructureReady", "NodeReady", "Deleting")
MACHINE_STATUS = {
    "phase": "Provisioning",
    "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}, {"type": "Hostname", "address": "host-1"}],
    "conditions": [_condition(kind) for kind in CONDITIONS],
    "observedGeneration": 1,
}

"""A fleet to look at: machines in every state, with histories, calendars and overrides, without an operator."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from crds.base import rfc3339
from service.kube.client import Client
from service.kube.resource import (
    SCHEDULE_CALENDARS,
    SCHEDULE_OVERRIDES,
    SCHEDULED_MACHINES,
    Resource,
)
from tests.corpus import base

Raw = dict[str, Any]
NOW = datetime(2026, 11, 18, 14, 20, tzinfo=UTC)
"""A Wednesday afternoon."""
DAY = timedelta(days=1)
HOUR = timedelta(hours=1)
OFFICE = {"windows": [{"days": ["mon-fri"], "from": "08:00", "to": "18:00"}], "timezone": "Europe/London"}
NIGHT = {"windows": [{"days": ["mon-sun"], "from": "19:00", "to": "06:30"}], "timezone": "Europe/London"}
BATCH = {"cron": "0 */6 * * *", "duration": "2h", "timezone": "UTC"}
SHIFT = {"windows": [{"days": ["mon-sat"], "from": "13:00", "to": "22:30"}], "timezone": "Europe/Berlin"}
HOLIDAY = {"exceptions": [{"calendarRef": {"name": "uk-holidays"}, "state": "Closed"}]}
FOUNDERS_DAY = "\r\n".join(
    [
        "BEGIN:VCALENDAR",
        "VERSION:2.0",
        "PRODID:-//Example//EN",
        "BEGIN:VEVENT",
        "UID:founders@example.com",
        "DTSTAMP:20260101T000000Z",
        "DTSTART;VALUE=DATE:20261119",
        "SUMMARY:Founders' day",
        "END:VEVENT",
        "END:VCALENDAR",
    ]
)
SCHEDULES = (OFFICE | HOLIDAY, NIGHT, OFFICE, SHIFT, BATCH)
NAMES = ("desk", "render", "lab", "line", "batch")


def condition(kind: str, status: str, reason: str, message: str, since: datetime) -> Raw:
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": rfc3339(since),
    }


def history(schedule: int, number: int) -> Iterator[Raw]:
    """What the machine did in the last days."""
    opens = {0: 8, 1: 19, 2: 8, 3: 12, 4: 12}[schedule]
    length = {0: 10, 1: 11, 2: 10, 3: 9, 4: 2}[schedule]
    first = NOW.replace(hour=opens, minute=0)
    times = (
        [first - n * 6 * HOUR for n in range(9, -1, -1)]
        if schedule == 4
        else [first - n * DAY for n in range(6, 0, -1)]
    )
    for days, opened in enumerate(times):
        if schedule in (0, 2) and opened.weekday() > 4:
            continue
        requested = opened - timedelta(seconds=150)
        ready = requested + timedelta(seconds=70 + (number * 37 + days * 11) % 140)
        closed = opened + length * HOUR
        yield {
            "opened": rfc3339(opened),
            "requested": rfc3339(requested),
            "ready": rfc3339(ready),
            "shutdown": rfc3339(closed),
            "closed": rfc3339(closed),
            "gone": rfc3339(closed + timedelta(minutes=3 + number % 9)),
            "reason": "WindowClosed",
        }


def in_service(number: int, schedule: int) -> Raw:
    opened = NOW.replace(hour={0: 8, 2: 8, 3: 12}[schedule], minute=0)
    ready = opened + timedelta(seconds=75 + number * 13 % 90)
    closes = opened + {0: 10, 2: 10, 3: 9.5}[schedule] * HOUR
    under_way = {"opened": rfc3339(opened), "requested": rfc3339(opened), "ready": rfc3339(ready)}
    return {
        "phase": "Active",
        "message": "The Node is Ready.",
        "inSchedule": True,
        "machinePhase": "Running",
        "machineRef": {
            "apiVersion": "cluster.x-k8s.io/v1beta1",
            "kind": "Machine",
            "name": f"m-{number}",
            "namespace": "x",
        },
        "nodeRef": {"name": f"node-{number}"},
        "nextCleanup": rfc3339(closes),
        "conditions": [condition("Ready", "True", "MachineRunning", "The Node is Ready.", ready)],
        "history": [*history(schedule, number), under_way],
    }


def waiting(number: int, schedule: int) -> Raw:
    opens = NOW.replace(hour={1: 19, 4: 18}.get(schedule, 8), minute=0) + (DAY if schedule in (0, 2, 3) else 0 * DAY)
    return {
        "phase": "Inactive",
        "message": "Waiting for the next window.",
        "inSchedule": False,
        "nextActivation": rfc3339(opens),
        "conditions": [
            condition("Ready", "False", "OutsideSchedule", "No window is open.", NOW - 8 * HOUR),
        ],
        "history": list(history(schedule, number)),
    }


def leaving(number: int) -> Raw:
    said = "2 pods have not left the Node: build/compile-7, web/frontend-59f."
    shutdown = NOW - timedelta(minutes=4)
    under_way = {
        "requested": rfc3339(NOW - 6 * HOUR),
        "ready": rfc3339(NOW - 6 * HOUR + timedelta(seconds=95)),
        "shutdown": rfc3339(shutdown),
    }
    until = rfc3339(NOW.replace(hour=20, minute=0))
    return in_service(number, 2) | {
        "phase": "ShuttingDown",
        "override": {"name": "new-disk", "state": "Closed", "until": until, "by": "bob", "reason": "new disk"},
        "message": said,
        "shutdownStartedAt": rfc3339(shutdown),
        "nextCleanup": rfc3339(NOW + timedelta(minutes=11)),
        "history": [*history(2, number), under_way],
        "conditions": [
            condition("Ready", "False", "Draining", said, shutdown),
            condition("Drained", "False", "Draining", said, shutdown),
        ],
    }


def joining(number: int) -> Raw:
    requested = NOW - timedelta(seconds=50)
    said = "Waiting for the Node to join."
    return in_service(number, 2) | {
        "message": said,
        "machinePhase": "Provisioning",
        "nodeRef": None,
        "conditions": [condition("Ready", "False", "WaitingForNode", said, requested)],
        "history": [*history(2, number), {"opened": rfc3339(requested), "requested": rfc3339(requested)}],
    }


def broken(number: int) -> Raw:
    said = "Cluster studio does not exist; create it, or correct spec.clusterName."
    return waiting(number, 2) | {
        "phase": "Error",
        "message": said,
        "conditions": [condition("Ready", "False", "ClusterNotFound", said, NOW - 3 * HOUR)],
    }


def status(number: int, schedule: int) -> Raw:
    if number % 41 == 7:
        return broken(number)
    if number % 29 == 10:
        return leaving(number)
    if number % 23 == 5:
        return joining(number)
    if number % 31 == 13:
        return waiting(number, schedule) | {"phase": "Disabled", "message": "The schedule is disabled."}
    found = in_service(number, schedule) if schedule in (0, 2, 3) else waiting(number, schedule)
    if number == 2:
        until = rfc3339(NOW.replace(hour=22, minute=0))
        found["override"] = {
            "name": "release-night",
            "state": "Open",
            "until": until,
            "by": "alice",
            "reason": "release night",
        }
    return {key: value for key, value in found.items() if value is not None}


def machine(number: int, namespace: str) -> Raw:
    schedule = number % len(SCHEDULES)
    body = base()
    body["metadata"] = {
        "name": f"{NAMES[schedule]}-{number}",
        "namespace": namespace,
        "labels": {"room": str(number % 9)},
    }
    body["spec"]["schedule"] = SCHEDULES[schedule]
    body["spec"]["clusterName"] = ("studio", "plant")[schedule == 3]
    return body


async def store(client: Client, resource: Resource, body: Raw, namespace: str | None, reported: Raw | None) -> None:
    """Creates an object with a status."""
    made = await client.create(resource, {**resource.envelope(), **body}, namespace=namespace)
    if reported is not None:
        whole = {**resource.envelope(), **made, "status": reported}
        await client.replace(resource, body["metadata"]["name"], whole, namespace=namespace, subresource="status")


async def fleet(client: Client, namespace: str, count: int) -> None:
    """That many machines, some at a time."""
    turns = asyncio.Semaphore(24)

    async def one(number: int) -> None:
        async with turns:
            reported = status(number, number % len(SCHEDULES))
            await store(client, SCHEDULED_MACHINES, machine(number, namespace), namespace, reported)

    async with asyncio.TaskGroup() as group:
        for number in range(count):
            group.create_task(one(number))


async def calendars(client: Client, namespace: str) -> None:
    dates = [{"date": "2026-11-19", "name": "Founders' day"}, {"date": "2026-12-25", "name": "Christmas Day"}]
    ready = {"conditions": [condition("Ready", "True", "Readable", "", NOW - 9 * DAY)], "nextDates": dates}
    spec = {"holidays": {"country": "GB", "subdivision": "ENG"}, "ics": {"inline": FOUNDERS_DAY}}
    await store(
        client,
        SCHEDULE_CALENDARS,
        {"metadata": {"name": "uk-holidays", "namespace": namespace}, "spec": spec},
        namespace,
        ready,
    )


async def overrides(client: Client, namespace: str) -> None:
    accepted = [condition(kind, "True", kind, "", NOW - HOUR) for kind in ("Accepted", "InForce")]
    reported = {"acceptedAt": rfc3339(NOW - HOUR), "conditions": accepted}
    for name, spec in {
        "release-night": {
            "machines": ["lab-2", "lab-12"],
            "state": "Open",
            "from": rfc3339(NOW - HOUR),
            "until": rfc3339(NOW.replace(hour=22, minute=0)),
            "reason": "release night",
            "requestedBy": "alice",
        },
        "new-disk": {
            "machines": ["desk-10"],
            "state": "Closed",
            "from": rfc3339(NOW - timedelta(minutes=4)),
            "until": rfc3339(NOW.replace(hour=20, minute=0)),
            "reason": "new disk",
            "requestedBy": "bob",
        },
        "fire-drill": {
            "machines": ["desk-0", "desk-15"],
            "state": "Closed",
            "from": rfc3339(NOW + 20 * HOUR),
            "until": rfc3339(NOW + 26 * HOUR),
            "reason": "fire drill",
            "requestedBy": "bob",
        },
    }.items():
        await store(client, SCHEDULE_OVERRIDES, {"metadata": {"name": name}, "spec": spec}, namespace, reported)

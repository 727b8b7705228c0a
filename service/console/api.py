"""The routes that pages read from and act through; each needs a session."""

import asyncio
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Path, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

import service
from crds.calendars import CalendarKind, CalendarReference
from crds.partial import read_partial
from crds.schedule import EVER
from crds.schedulecalendar import CalendarStatus
from crds.status import ScheduledMachineStatus
from service.console import actions, answers, details, rights
from service.console.actions import KillSwitch, NewOverride, RequestedAction
from service.console.feed import RESUMED, Feed, clock_data
from service.console.viewer import Viewer
from service.fleet import requests
from service.fleet.report import Report
from service.fleet.timeline import TimelinePeriod
from service.fleet.usage import created_at
from service.kube.resource import CLUSTER_SCHEDULE_CALENDARS
from service.runtime.key import Key

LINES_MAX: Final = 500
LONGEST: Final = timedelta(days=62)
AT_ONCE: Final = 100
"""Histories read before others get their turn."""
STREAM_HEADERS: Final = {**answers.NO_STORE, "X-Accel-Buffering": "no"}


class NoSession(Exception):
    """The browser was not let in, or no longer is."""


async def viewer_of(request: Request) -> Viewer:
    """What the browser that sends the request may see."""
    found: Viewer | None = await request.app.state.entrance.viewer(request)
    if found is None:
        raise NoSession
    return found


Seen = Annotated[Viewer, Depends(viewer_of)]
InPath = Annotated[str, Path(pattern=actions.NAME)]
ShelfPlace = tuple[str, CalendarReference]
router = APIRouter(prefix="/api")


class Lines(BaseModel):
    """Which machines' lines a page shows, and for which time, in milliseconds since 1970."""

    model_config = ConfigDict(extra="forbid")

    begins: int = Field(alias="from", ge=0, le=10**14)
    ends: int = Field(alias="to", ge=0, le=10**14)
    keys: list[str] = Field(max_length=LINES_MAX)


class ReportDays(BaseModel):
    """The midnights between which a report counts, in milliseconds since 1970."""

    model_config = ConfigDict(extra="forbid")

    edges: list[Annotated[int, Field(ge=0, le=10**14)]] = Field(min_length=2, max_length=64)


@router.get("/session")
async def session(viewer: Seen, request: Request) -> Response:
    """Who the user is, what time it is, and what is not shown."""
    return answers.data(
        {
            **clock_data(viewer.clock),
            "user": viewer.user,
            "namespace": viewer.namespace or "",
            "version": service.__version__,
            "unread": viewer.unread,
            "problem": viewer.problem,
            **request.app.state.entrance.about(request),
        }
    )


@router.get("/machines")
async def machines(viewer: Seen) -> Response:
    """A row for each machine."""
    return answers.packed(b"[" + b",".join(viewer.machines.shown.values()) + b"]")


@router.get("/feed")
async def feed(viewer: Seen, request: Request) -> Response:
    """What changes, from now on."""
    messages = Feed(viewer, resumed=RESUMED in request.headers).messages()
    return StreamingResponse(messages, media_type="text/event-stream", headers=STREAM_HEADERS)


@router.post("/lines")
async def lines(viewer: Seen, asked: Lines) -> Response:
    """What is planned for machines, what people changed, and what happened."""
    begins = datetime.fromtimestamp(asked.begins / 1000, UTC)
    ends = min(datetime.fromtimestamp(asked.ends / 1000, UTC), begins + LONGEST)
    return answers.data(viewer.timelines((_key(each) for each in asked.keys), TimelinePeriod(begins, ends)))


@router.get("/machines/{namespace}/{name}")
async def machine(viewer: Seen, namespace: InPath, name: InPath) -> Response:
    """One machine at length."""
    return answers.data(await details.read(viewer, Key(namespace, name)))


@router.post("/machines/{namespace}/{name}/actions")
async def act(viewer: Seen, namespace: InPath, name: InPath, wish: RequestedAction) -> Response:
    """Extends, suspends, skips or resumes."""
    return answers.data({"said": await actions.perform(viewer, Key(namespace, name), wish)})


@router.post("/machines/{namespace}/{name}/kill-switch")
async def kill_switch(viewer: Seen, namespace: InPath, name: InPath, given: KillSwitch) -> Response:
    """Turns the kill switch on or off; the body repeats the name."""
    if given.name != name:
        return answers.refused(400, "The name does not match: nothing was changed.")
    await actions.set_kill_switch(viewer, Key(namespace, name), on=given.on)
    return answers.data({"said": [f"The kill switch of {name} is {'on' if given.on else 'off'}."]})


@router.get("/overrides")
async def overrides(viewer: Seen) -> Response:
    """All overrides, and whether the user may make and end them."""
    now = viewer.clock.now()
    found = [each.to_json(now) | {"target": each.target} for each in viewer.listed_overrides().found]
    return answers.data({"overrides": found, "rights": await rights.on_overrides(viewer.client, viewer.namespace)})


@router.post("/overrides")
async def make_override(viewer: Seen, given: NewOverride) -> Response:
    """Makes an override."""
    return answers.data({"said": [f"Made override {await actions.make_override(viewer, given)}."]}, 201)


@router.delete("/overrides/{namespace}/{name}")
async def end_override(viewer: Seen, namespace: InPath, name: InPath) -> Response:
    """Ends an override."""
    await requests.delete(viewer.client, namespace, name)
    return answers.data({"said": [f"Ended override {name}."]})


@router.get("/calendars")
async def calendars(viewer: Seen) -> Response:
    """All calendars with their next dates, and how many machines use each."""
    used = await _used(viewer)
    found = [
        _calendar(raw, resource is CLUSTER_SCHEDULE_CALENDARS, used)
        for resource, view in viewer.calendars.items()
        for raw in view.shown.values()
    ]
    return answers.data(sorted(found, key=lambda each: (each["namespace"], each["name"])))


@router.post("/report")
async def report(viewer: Seen, asked: ReportDays) -> Response:
    """Hours in service, punctuality and time to Ready, by day."""
    found = Report([datetime.fromtimestamp(each / 1000, UTC) for each in sorted(asked.edges)], viewer.clock.now())
    for number, raw in enumerate(viewer.machines.objects()):
        found.add(ScheduledMachineStatus.read(raw.get("status")).history.records, created_at(raw) or EVER)
        if number % AT_ONCE == AT_ONCE - 1:
            await asyncio.sleep(0)
    return answers.data(found.to_json())


async def _used(viewer: Viewer) -> Counter[ShelfPlace]:
    """How many machines name each calendar."""
    found = Counter[ShelfPlace]()
    for number, raw in enumerate(viewer.machines.objects()):
        schedule = read_partial(raw).schedule
        for each in set(schedule.calendars if schedule else ()):
            found["" if each.kind is CalendarKind.CLUSTER else raw["metadata"]["namespace"], each] += 1
        if number % AT_ONCE == AT_ONCE - 1:
            await asyncio.sleep(0)
    return found


def _calendar(
    raw: dict[str, Any],
    everywhere: bool,  # noqa: FBT001 - private
    used: Counter[ShelfPlace],
) -> dict[str, Any]:
    status = CalendarStatus.read(raw.get("status")).to_json()
    metadata = raw["metadata"]
    namespace = "" if everywhere else metadata["namespace"]
    kind = CalendarKind.CLUSTER if everywhere else CalendarKind.NAMESPACED
    return {
        "namespace": namespace,
        "machines": used[namespace, CalendarReference(kind, metadata["name"])],
        "name": metadata["name"],
        "spec": {key: value for key, value in (raw.get("spec") or {}).items() if key != "ics"},
        "ics": bool((raw.get("spec") or {}).get("ics")),
        "status": status,
    }


def _key(text: str) -> Key:
    namespace, _, name = text.partition("/")
    return Key(namespace, name)

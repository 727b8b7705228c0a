"""What a user does with a machine from a page: overrides and the kill switch, with the user's own rights."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Final, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from crds.overrides import OverrideState
from service.console.viewer import Viewer
from service.fleet import forecast, requests
from service.fleet.overriding import Draft, Ending, OverridableMachine, extension, resumption, skip, suspension
from service.kube.resource import SCHEDULE_OVERRIDES, SCHEDULED_MACHINES
from service.runtime.key import Key

FIELD_MANAGER: Final = "5spot-console"
NAME: Final = r"^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$"
_Name = Annotated[str, Field(pattern=NAME)]
_Time = Annotated[AwareDatetime, Field(ge=datetime(1970, 1, 1, tzinfo=UTC), lt=datetime(9000, 1, 1, tzinfo=UTC))]
"""Far from the ends of the calendar, so that it exists in every time zone."""


class _Given(BaseModel):
    model_config = ConfigDict(extra="forbid")

    reason: str = Field(default="", max_length=256)


class RequestedAction(_Given):
    """What to do with one machine; `minutes` or `until` say for how long, if the action takes time."""

    action: Literal["extend", "suspend", "skip", "resume"]
    minutes: int | None = Field(default=None, ge=1, le=31 * 24 * 60)
    until: _Time | None = None

    @property
    def ending(self) -> Ending:
        """When it ends."""
        return self.until or timedelta(minutes=self.minutes or 60)


class KillSwitch(BaseModel):
    """The kill switch; `name` repeats the machine's name as the confirmation."""

    model_config = ConfigDict(extra="forbid")

    on: bool
    name: _Name


class NewOverride(_Given):
    """An override for machines by name."""

    namespace: _Name
    machines: list[_Name] = Field(min_length=1, max_length=64)
    state: OverrideState
    until: _Time
    begins: _Time | None = Field(default=None, alias="from")


async def perform(viewer: Viewer, key: Key, wish: RequestedAction) -> list[str]:
    """Performs the action; returns what will happen, in sentences.

    Raises:
        PointlessError: if it would change nothing.
        RefusedError: if the API server refuses it.
    """
    machine, now = await overridable(viewer, key), viewer.clock.now()
    if wish.action == "resume":
        found = resumption(machine, now, wish.reason)
        if found.is_empty:
            return [forecast.unchanged(machine, now)]
        warnings = await requests.resume(viewer.client, machine, found, now)
        return [*forecast.after_resumption(machine, found, now), *warnings]
    draft = drafted(machine, wish, now)
    created = await requests.create(viewer.client, draft, now)
    return [line for line in (*forecast.after_draft(machine, draft, now), *created.warnings) if line]


def drafted(machine: OverridableMachine, wish: RequestedAction, now: datetime) -> Draft:
    """The override that the action makes."""
    if wish.action == "extend":
        return extension(machine, wish.ending, now, wish.reason)
    if wish.action == "suspend":
        return suspension(machine, wish.ending, now, wish.reason)
    return skip(machine, now, wish.reason)


async def overridable(viewer: Viewer, key: Key) -> OverridableMachine:
    """The machine as it is stored now, with what decides about it."""
    raw = await viewer.client.get(SCHEDULED_MACHINES, key.name, namespace=key.namespace)
    await viewer.shelf.settle()
    return await requests.read_machine(viewer.client, raw, viewer.shelf.shelf, viewer.clock.now())


async def make_override(viewer: Viewer, given: NewOverride) -> str:
    """Creates an override for several machines; returns its name."""
    now = viewer.clock.now()
    draft = Draft(given.namespace, given.machines[0], given.state, given.until, given.begins, given.reason)
    body = draft.body(viewer.user, now)
    body["spec"]["machines"] = given.machines
    stored = await viewer.client.create(
        SCHEDULE_OVERRIDES, body, namespace=given.namespace, field_manager=FIELD_MANAGER
    )
    return str(stored["metadata"]["name"])


async def set_kill_switch(viewer: Viewer, key: Key, *, on: bool) -> None:
    """Turns the kill switch on or off."""
    body = {"spec": {"killSwitch": on}}
    await viewer.client.patch(SCHEDULED_MACHINES, key.name, body, namespace=key.namespace, field_manager=FIELD_MANAGER)

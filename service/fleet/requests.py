"""Reads a machine with its overrides, and creates and deletes overrides, with the rights of the user.

The command line and the console call it. It writes ScheduleOverrides, and takes an annotation off a ScheduledMachine to
acknowledge a reclaim; it never writes a spec.
"""

import re
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any, Final, NamedTuple

from crds import names
from crds.calendars import CalendarShelf
from crds.partial import read_partial
from crds.providers import ProviderPolicy
from crds.schedulespec import DEFAULT_TIMEZONE
from crds.status import ScheduledMachineStatus
from crds.text import one_line
from service.decide.intent import Intent, Sources, read_intent
from service.decide.reasons import Reason
from service.fleet.overrides import ListedOverrides
from service.fleet.overriding import Draft, OverridableMachine, Resumption
from service.fleet.snapshot import ShelvedCalendars, list_overrides
from service.kube.client import Client
from service.kube.errors import Denied, Forbidden, KubeError, NotFound
from service.kube.resource import SCHEDULE_OVERRIDES, SCHEDULED_MACHINES, SELF_SUBJECT_REVIEWS, Resource

Raw = dict[str, Any]
FIELD_MANAGER: Final = "5spot-cli"
WARNING_MAX: Final = 1024
_DENIED: Final = re.compile(r".*?denied (?:the )?request: ")

_REPORTED: Final = {
    Reason.CLUSTER_NOT_FOUND: "Its Cluster does not exist",
    Reason.CLUSTER_DELETING: "Its Cluster is being deleted",
    Reason.INVALID_SPEC: "Its spec is invalid",
}
"""What only the controller can tell."""


class RefusedError(Exception):
    """The API server did not do what the user asked for; the message says which right is missing."""


async def read_machine(client: Client, raw: Raw, shelf: CalendarShelf, now: datetime) -> OverridableMachine:
    """A ScheduledMachine as stored, with its overrides; `shelf` holds the calendars that it names."""
    namespace = raw["metadata"]["namespace"]
    try:
        return overridable(raw, await list_overrides(client, namespace, now), shelf)
    except Forbidden:
        note = f"You may not list ScheduleOverrides in namespace {namespace}: there may be others than this one."
        return replace(overridable(raw, ListedOverrides(), shelf), notes=(note,))


def overridable(raw: Raw, listed: ListedOverrides, shelf: CalendarShelf) -> OverridableMachine:
    """A ScheduledMachine, from objects as stored."""
    whole = {**SCHEDULED_MACHINES.envelope(), **raw}
    intent = read_intent(whole, ProviderPolicy(), Sources(ShelvedCalendars(shelf), listed))
    partial = read_partial(whole)
    labels = raw["metadata"].get("labels") or {}
    namespace, name = raw["metadata"]["namespace"], raw["metadata"]["name"]
    undecidable = intent.undecidable.message if intent.undecidable else "; ".join(intent.problems)
    return OverridableMachine(
        namespace=namespace,
        name=name,
        zone=partial.schedule.timezone if partial.schedule else DEFAULT_TIMEZONE,
        # Not only for a valid spec: the operator may allow other providers than the user's command knows.
        effective=replace(intent.effective, overrides=intent.overrides),
        overrides=listed.concerning(namespace, name, labels),
        unreadable="" if intent.schedule else undecidable,
        outranked=tuple(_outranked(raw, intent)),
        unacknowledged=intent.unacknowledged,
    )


def _outranked(raw: Raw, intent: Intent) -> Iterable[str]:
    metadata, status = raw["metadata"], ScheduledMachineStatus.read(raw.get("status"))
    reported = {one.reason for one in status.conditions}
    if metadata.get("deletionTimestamp"):
        yield "It is being deleted, which outranks every override."
    if names.ANNOTATION_PAUSED in (metadata.get("annotations") or {}):
        yield "It is paused: nothing happens until the annotation cluster.x-k8s.io/paused is removed."
    elif Reason.PAUSED in reported:
        yield "Its Cluster is paused: nothing happens until that is over."
    if intent.kill_switch:
        yield "Its kill switch is on, which outranks every override."
    if status.reclaim is not None:
        yield "Its owner is claiming it back, which outranks every override."
    if intent.unacknowledged is not None:
        yield f"Its owner claimed it back, and no user has acknowledged that yet: run 5spot resume {metadata['name']}."
    elif not intent.enabled:
        yield "Its schedule is disabled, which outranks every override: nothing happens until it is enabled."
    yield from (f"{each}, which outranks every override." for reason, each in _REPORTED.items() if reason in reported)


async def requester(client: Client) -> str:
    """Who the API server takes the user for."""
    answer = await client.create(SELF_SUBJECT_REVIEWS, SELF_SUBJECT_REVIEWS.envelope())
    return str(answer["status"]["userInfo"]["username"])


class Created(NamedTuple):
    """An override as it was stored, and what the operator warns of, such as an end that it does not accept."""

    name: str
    warnings: Sequence[str]


async def create(client: Client, draft: Draft, now: datetime) -> Created:
    """Creates the override.

    Raises:
        RefusedError: if the user may not.
    """
    warnings: list[str] = []
    async with _explained(f"override {draft.machine}", draft.namespace, "create"):
        body = draft.body(await requester(client), now)
        stored = await client.create(
            SCHEDULE_OVERRIDES,
            body,
            namespace=draft.namespace,
            field_manager=FIELD_MANAGER,
            on_warning=warnings.append,
        )
    return Created(stored["metadata"]["name"], [f"Warning: {one_line(each, WARNING_MAX)}" for each in warnings])


async def resume(client: Client, machine: OverridableMachine, found: Resumption, now: datetime) -> Sequence[str]:
    """Acknowledges a reclaim, creates an override and deletes others, in this order: it never leaves a gap.

    Returns what the operator warns of.

    Raises:
        RefusedError: if the user may not.
    """
    if found.acknowledge:
        await acknowledge(client, machine.namespace, machine.name)
    created = await create(client, found.draft, now) if found.draft is not None else None
    for each in found.delete:
        await delete(client, each.namespace, each.name, each.uid)
    return created.warnings if created else ()


async def acknowledge(client: Client, namespace: str, name: str) -> None:
    """Acknowledges a reclaim: the machine may return to service.

    Raises:
        RefusedError: if the user may not.
    """
    body = {"metadata": {"annotations": {names.ANNOTATION_RECLAIM_UNACKNOWLEDGED: None}}}
    async with _explained(f"acknowledge the reclaim of {name}", namespace, "patch", SCHEDULED_MACHINES):
        await client.patch(SCHEDULED_MACHINES, name, body, namespace=namespace, field_manager=FIELD_MANAGER)


async def delete(client: Client, namespace: str, name: str, uid: str | None = None) -> None:
    """Deletes an override; does nothing if it is gone already.

    Raises:
        RefusedError: if the user may not.
    """
    async with _explained(f"delete ScheduleOverride {name}", namespace, "delete"):
        try:
            await client.delete(SCHEDULE_OVERRIDES, name, namespace=namespace, uid=uid or None)
        except NotFound:
            return


@asynccontextmanager
async def _explained(
    what: str, namespace: str, verb: str, resource: Resource = SCHEDULE_OVERRIDES
) -> AsyncIterator[None]:
    """Turns a refusal of the API server into a sentence that says which right is missing."""
    try:
        yield
    except Denied as error:
        raise RefusedError(f"cannot {what} in namespace {namespace}: {_reason(error)}") from None
    except Forbidden as error:
        needed = f"the verb {verb} on {resource.label} in namespace {namespace}"
        raise RefusedError(f"cannot {what}: you need {needed}; {error.message}") from None
    except NotFound as error:
        absent = f"the cluster does not serve {resource.kind}s; is the operator's chart installed, and current?"
        raise RefusedError(f"cannot {what}: {absent if error.missing_kind else error.message}") from None
    except KubeError as error:
        raise RefusedError(f"cannot {what} in namespace {namespace}: {error.message}") from None


def _reason(error: KubeError) -> str:
    """What the webhook or the policy says, without what the API server puts before it."""
    return _DENIED.sub("", error.message, count=1)

"""Admission of calendars: whether one may be stored, and warnings where one is missing or one in use is deleted.

Pure but for the lookups, which answer from memory; what they do not know is passed over.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from crds.calendars import CalendarKind, CalendarReference
from crds.schedulespec import ScheduleSpec
from crds.violations import printable
from webhooks.review import Review

CalendarLookup = Callable[[str, CalendarReference], bool | None]
"""Whether a calendar exists, by the namespace of who names it; None if that is not known."""
CalendarUsers = Callable[[str, CalendarReference], Sequence[str] | None]
"""The ScheduledMachines that name a calendar of a namespace, as `namespace/name`; None if that is not known."""

NAMED_MAX: Final = 3


def existence_unknown(_namespace: str, _reference: CalendarReference) -> bool | None:
    """The lookup of a service that watches no calendars."""
    return None


def users_unknown(_namespace: str, _reference: CalendarReference) -> Sequence[str] | None:
    """Likewise."""
    return None


def missing(schedule: ScheduleSpec, namespace: str, exists: CalendarLookup) -> Iterator[str]:
    """A warning for each calendar that a schedule names and that is not there; GitOps may bring it next."""
    for reference in schedule.calendars:
        if exists(namespace, reference) is False:
            where = f" in namespace {printable(namespace, 63)}" if reference.kind is CalendarKind.NAMESPACED else ""
            yield (
                f"spec.schedule.exceptions: there is no {reference.kind} {printable(reference.name, 63)}{where} yet; "
                "until there is one, no machine is created or removed by this schedule"
            )


def in_use(review: Review, users: CalendarUsers) -> Iterator[str]:
    """A warning for a calendar that is to be deleted while schedules name it."""
    reference = CalendarReference(CalendarKind(review.kind), review.name)
    found = users(review.namespace, reference)
    if not found:
        return
    named = ", ".join(printable(each, 127) for each in sorted(found)[:NAMED_MAX])
    more = f" and {len(found) - NAMED_MAX} more" if len(found) > NAMED_MAX else ""
    yield (
        f"{review.kind} {printable(review.name, 63)} is used by {named}{more}; "
        "until it is there again, no machine is created or removed by these schedules"
    )

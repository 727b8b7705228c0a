"""The reasons of the conditions of overrides and calendars: an API that people and programs depend on.

docs/reference/conditions.md is generated from here; the reasons of ScheduledMachines are in `service.decide.reasons`.
"""

from enum import StrEnum
from typing import Final, Self

ACCEPTED: Final = "Accepted"
IN_FORCE: Final = "InForce"
READY: Final = "Ready"


class ConditionReason(StrEnum):
    """One word that programs compare, with the condition and the status that it comes with."""

    condition: str
    status: str
    meaning: str
    remedy: str
    """What the user can do; empty if nothing needs to be done."""

    def __new__(cls, text: str, condition: str, status: str, meaning: str, remedy: str = "") -> Self:
        """A member from the parts that its line lists."""
        member = str.__new__(cls, text)
        member._value_ = text
        member.condition = condition
        member.status = status
        member.meaning = meaning
        member.remedy = remedy
        return member


class OverrideConditionReason(ConditionReason):
    """Whether a ScheduleOverride counts, and whether it decides now."""

    IS_ACCEPTED = "Accepted", ACCEPTED, "True", "The override counts."
    TOO_LONG = (
        "TooLong",
        ACCEPTED,
        "False",
        "`spec.until` is too far away, so the override does not count; the message says how far it may be.",
        "Set `spec.until` to the time that the message names, or earlier.",
    )
    INVALID = (
        "Invalid",
        ACCEPTED,
        "False",
        "The controller cannot read the override, so it does not count; the message says why.",
        "Delete the override and create another; only its `until` can be edited.",
    )
    IS_IN_FORCE = "InForce", IN_FORCE, "True", "The override has begun and not ended."
    NOT_YET = "NotYet", IN_FORCE, "False", "The override has not begun; the message says when it does."
    OVER = (
        "Over",
        IN_FORCE,
        "False",
        "The override has ended. The controller deletes it a day later unless it is kept.",
    )
    NOT_ACCEPTED = "NotAccepted", IN_FORCE, "False", "The override does not count: see the condition Accepted."


class CalendarConditionReason(ConditionReason):
    """Whether the controller can read a calendar."""

    READ = "CalendarRead", READY, "True", "The controller has read the calendar; the status lists its next dates."
    INVALID = (
        "CalendarInvalid",
        READY,
        "False",
        "The controller cannot read the calendar; the message says what is wrong. It neither creates nor removes "
        "machines because of schedules that name the calendar.",
        "Correct what the message names.",
    )

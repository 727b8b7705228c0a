"""Leads: how long before a window opens its machine is requested, and before it closes its shutdown begins."""

from datetime import timedelta
from enum import StrEnum
from typing import Any, Final

from crds.invalid import InvalidValue
from crds.values import format_duration, parse_duration

MAX_LEAD: Final = timedelta(hours=1)


class Auto(StrEnum):
    """A lead that the controller learns from the services before."""

    AUTO = "Auto"


Lead = timedelta | Auto
OR_AUTO: Final = "or write Auto, to let the controller learn it"


def parse_lead(given: Any) -> Lead:
    """Read a duration of at most an hour, or Auto.

    Raises:
        InvalidValue: if it is neither.
    """
    if given == Auto.AUTO:
        return Auto.AUTO
    try:
        return parse_duration(given, MAX_LEAD)
    except InvalidValue as error:
        raise InvalidValue(f"{error.message}; {OR_AUTO}") from None


def format_lead(lead: Lead) -> str:
    """The text that `parse_lead` reads back."""
    return lead.value if isinstance(lead, Auto) else format_duration(lead)

"""Public holidays from the `holidays` package. Only the worker imports this: the package takes 20 MB."""

from datetime import date
from typing import Any, Final

import holidays

_EPOCH: Final = date(1970, 1, 1).toordinal()


def holidays_of(country: str, subdivision: str | None, first: date, last: date) -> list[list[Any]]:
    """First day, last day and name of each public holiday of the period, observed days included."""
    years = range(first.year, last.year + 1)
    found = holidays.country_holidays(country, subdiv=subdivision, years=years, observed=True, language="en_US")
    inside = ((day, name) for day, name in sorted(found.items()) if first <= day <= last)
    return [[day.toordinal() - _EPOCH, day.toordinal() - _EPOCH, name] for day, name in inside]


def known_until(country: str, last: date) -> date:
    """The last date of the period of which the holidays are known: some countries announce theirs year by year."""
    end_year: int = holidays.country_holidays(country).end_year
    return min(last, date(min(end_year, date.max.year), 12, 31))

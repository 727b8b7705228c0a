"""Public holidays from the `holidays` package. Only the worker imports this: the package takes 20 MB."""

import warnings
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


def known_until(country: str, first: date, last: date) -> date:
    """The last date of the period of which the holidays are known: some countries announce theirs year by year."""
    end_year: int = holidays.country_holidays(country).end_year
    year = min(end_year, last.year)
    while year > first.year and not _knows_all(country, year):
        year -= 1
    return min(last, date(year, 12, 31))


def _knows_all(country: str, year: int) -> bool:
    """The library warns of a year of which it knows only some, such as those without the lunar ones."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        try:
            holidays.country_holidays(country, years=year)
        except UserWarning:
            return False
    return True

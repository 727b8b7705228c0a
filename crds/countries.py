"""The countries and subdivisions with known public holidays, as a table: admission need not load the library.

The table is made from the `holidays` package by `python -m crds.generate`; a test compares the two.
"""

import json
import pkgutil
from functools import lru_cache
from typing import Any, Final

FILE: Final = "countries.json"


@lru_cache(maxsize=1)
def known() -> dict[str, tuple[str, ...]]:
    """The subdivisions of each country, by its ISO 3166-1 code of two letters."""
    data = pkgutil.get_data("crds", FILE)
    if data is None:
        raise RuntimeError(f"the crds package cannot be read: {FILE} is missing; install it again")
    return {country: tuple(subdivisions) for country, subdivisions in json.loads(data).items()}


def supported() -> dict[str, list[str]]:
    """What the `holidays` package knows today; loads all of it."""
    import holidays  # noqa: PLC0415 - 20 MB, needed only to make the table

    found: dict[str, Any] = holidays.list_supported_countries(include_aliases=False)
    return {country: sorted(found[country]) for country in sorted(found) if len(country) == 2}


def refusal_of_country(country: str) -> str | None:
    """Why a country cannot be used, if so."""
    if country in known():
        return None
    return "is not a country whose holidays are known; write its ISO 3166-1 code of two letters, such as GB"


def refusal_of_subdivision(country: str, subdivision: str) -> str | None:
    """Why a subdivision of a known country cannot be used, if so."""
    listed = known().get(country, ())
    if subdivision in listed:
        return None
    if not listed:
        return f"{country} has no subdivisions with holidays of their own; leave it out"
    return f"is not a subdivision of {country}; known are {', '.join(listed)}"

"""Which machines of a long list are shown, and in which order."""

from typing import Any

import pytest

from service.fleet.filters import Filter, Sort
from service.fleet.summary import Summary
from tests.crds.machines import machine


def named(name: str, **status: Any) -> Summary:
    raw = machine(status=status)
    raw["metadata"]["name"] = name
    return Summary.read(raw)


FINE = named("desk-a", phase="Inactive", nextActivation="2026-03-09T09:00:00Z")
SOON = named("desk-b", phase="Inactive", nextActivation="2026-03-07T09:00:00Z")
BROKEN = named("desk-c", phase="Error", message="No host is free.")
ALL = [FINE, SOON, BROKEN]


@pytest.mark.parametrize(
    ("sort", "names"),
    [(Sort.ATTENTION, "c a b"), (Sort.NAME, "a b c"), (Sort.NEXT, "b a c")],
)
def test_the_order_is_as_asked(sort: Sort, names: str) -> None:
    assert [each.name for each in Filter(sort=sort).chosen(ALL)] == [f"desk-{each}" for each in names.split()]


@pytest.mark.parametrize(
    ("chosen", "found"),
    [
        (Filter(), ALL),
        (Filter(attention=True), [BROKEN]),
        (Filter(phases=("inactive",)), [FINE, SOON]),
        (Filter(text="HOST desk"), [BROKEN]),
        (Filter(text="desk nowhere"), []),
        (Filter(cluster=FINE.cluster), ALL),
        (Filter(cluster="another"), []),
    ],
)
def test_a_filter_leaves_out_what_does_not_match(chosen: Filter, found: list[Summary]) -> None:
    assert sorted(chosen.chosen(ALL), key=lambda each: each.name) == found

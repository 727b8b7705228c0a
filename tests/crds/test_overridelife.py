"""The life of an override: accepted, in force, over, deleted; exact to the second, on clocks that step."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from crds.overridelife import KEPT, OverrideOutlook, StoredOverride, outlook
from crds.overrides import OverrideState
from crds.scheduleoverride import OverrideSpec, OverrideStatus

EIGHT, TEN = datetime(2026, 11, 20, 20, tzinfo=UTC), datetime(2026, 11, 20, 22, tzinfo=UTC)
SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)
LONGEST = timedelta(days=31)


def stored(*, until: datetime = TEN, begins: datetime | None = None, **fields: Any) -> StoredOverride:
    spec = OverrideSpec(machines=("desk-7",), state=OverrideState.OPEN, begins=begins, until=until)
    return StoredOverride(**{"name": "tonight", "created": EIGHT, "generation": 1, "spec": spec, **fields})


def accepted(at: datetime = EIGHT) -> OverrideStatus:
    return OverrideStatus(accepted_at=at)


def seen(override: StoredOverride, now: datetime, before: OverrideStatus | None = None) -> OverrideOutlook:
    return outlook(override, accepted() if before is None else before, now, LONGEST)


def says(found: OverrideOutlook) -> dict[str, str]:
    return {one.type: one.reason for one in found.status.conditions}


def test_an_override_counts_once_its_acceptance_is_stored():
    first = seen(stored(), EIGHT, OverrideStatus())
    assert (first.counts, first.status.accepted_at, says(first)["Accepted"]) == (None, EIGHT, "Accepted")
    assert seen(stored(), EIGHT + SECOND, first.status).counts is not None


@pytest.mark.parametrize(
    ("now", "reason"),
    [
        (EIGHT + HOUR - SECOND, "NotYet"),
        (EIGHT + HOUR, "InForce"),
        (TEN - SECOND, "InForce"),
        (TEN, "Over"),
    ],
)
def test_it_is_in_force_from_its_begin_until_its_end_to_the_second(now: datetime, reason: str):
    found = seen(stored(begins=EIGHT + HOUR), now)
    assert says(found) == {"Accepted": "Accepted", "InForce": reason}
    assert found.counts is not None
    assert found.counts.in_force(now) is (reason == "InForce")


def test_the_controller_looks_at_it_again_exactly_when_something_changes():
    override, now, visited = stored(begins=EIGHT + HOUR), EIGHT, []
    while (found := seen(override, now)).changes_at is not None:
        visited.append(now)
        now = found.changes_at
    assert [*visited, now] == [EIGHT, EIGHT + HOUR, TEN, TEN + KEPT]
    for since, until in pairwise([*visited, now]):
        first, last = seen(override, since), seen(override, until - SECOND)
        assert (says(first), first.delete, first.counts) == (says(last), last.delete, last.counts)


def test_a_status_is_not_written_again_while_nothing_changes():
    first = seen(stored(), EIGHT).status
    assert seen(stored(), TEN - SECOND, first).status == first


def test_without_a_begin_the_clock_that_is_behind_counts():
    for clock in (EIGHT - MINUTE, EIGHT + MINUTE):
        found = seen(stored(), clock, accepted(clock))
        assert found.counts is not None
        assert found.counts.in_force(clock), "of API server and operator, either may be ahead"


def test_the_limit_counts_from_the_acceptance_and_not_from_an_edit():
    late = stored(until=EIGHT + LONGEST)
    assert says(seen(late, EIGHT + 20 * HOUR))["Accepted"] == "Accepted"
    later = seen(stored(until=EIGHT + LONGEST + SECOND), EIGHT + 20 * HOUR)
    assert (says(later), later.counts) == ({"Accepted": "TooLong", "InForce": "NotAccepted"}, None)
    [message] = [one.message for one in later.status.conditions if one.type == "Accepted"]
    assert "at most 31 days after status.acceptedAt, 2026-12-21T20:00:00Z" in message


def test_one_that_is_too_long_counts_as_soon_as_its_end_is_moved():
    refused = seen(stored(until=EIGHT + 2 * LONGEST), EIGHT, OverrideStatus()).status
    found = seen(stored(generation=2), EIGHT + HOUR, refused)
    assert (says(found)["Accepted"], found.status.accepted_at) == ("Accepted", EIGHT)
    assert found.counts is not None


def test_a_shorter_limit_refuses_what_was_accepted():
    found = outlook(stored(), accepted(), EIGHT, HOUR)
    assert (says(found)["Accepted"], found.counts) == ("TooLong", None)


def test_one_that_cannot_be_read_says_why_decides_nothing_and_stays():
    found = seen(stored(spec=None, problem="spec.state: must be Open"), EIGHT + 99 * HOUR)
    assert says(found) == {"Accepted": "Invalid", "InForce": "NotAccepted"}
    assert (found.counts, found.changes_at, found.delete) == (None, None, False)


@pytest.mark.parametrize(
    ("fields", "deleted"),
    [({}, True), ({"keep": True}, False), ({"deleting": True}, False)],
    ids=["plain", "kept", "being deleted"],
)
def test_it_is_deleted_a_day_after_its_end_unless_it_is_to_be_kept(fields: dict[str, Any], deleted: bool):
    assert not seen(stored(**fields), TEN + KEPT - SECOND).delete
    after = seen(stored(**fields), TEN + KEPT)
    assert (after.delete, after.counts) == (deleted, None)


def test_one_that_was_over_when_it_came_stays_for_a_day_and_decides_nothing():
    late = TEN + 3 * KEPT
    found = seen(stored(), late, OverrideStatus())
    assert (found.delete, found.counts, found.changes_at) == (False, None, late + KEPT)
    assert says(found)["InForce"] == "Over"
    later = seen(stored(), late + KEPT, found.status)
    assert (later.delete, later.counts) == (True, None)


def test_one_that_is_being_deleted_decides_no_more():
    assert seen(stored(deleting=True), EIGHT).counts is None


def test_a_clock_that_is_set_back_over_its_end_puts_it_in_force_again():
    over = seen(stored(), TEN).status
    again = seen(stored(), TEN - MINUTE, over)
    assert (says(again)["InForce"], again.changes_at) == ("InForce", TEN)


def test_an_end_that_moves_back_into_force_keeps_the_acceptance():
    over = seen(stored(), TEN + HOUR).status
    moved = seen(stored(until=TEN + 2 * HOUR, generation=2), TEN + HOUR, over)
    assert (says(moved)["InForce"], moved.status.accepted_at) == ("InForce", EIGHT)
    assert {one.observed_generation for one in moved.status.conditions} == {2}


def test_a_transition_is_dated_when_the_status_of_a_condition_flips_and_not_before():
    begun = seen(stored(begins=EIGHT + HOUR), EIGHT + HOUR, seen(stored(begins=EIGHT + HOUR), EIGHT).status).status
    dates = {one.type: one.last_transition_time for one in begun.conditions}
    assert dates == {"Accepted": EIGHT, "InForce": EIGHT + HOUR}


def test_a_fraction_of_a_second_is_cut_off():
    found = seen(stored(), TEN - timedelta(milliseconds=1), OverrideStatus())
    assert (found.status.accepted_at, says(found)["InForce"]) == (TEN - SECOND, "InForce")

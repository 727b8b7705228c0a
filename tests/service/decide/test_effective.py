"""The effective state against a walk over every minute, and in the cases that the documentation names."""

from datetime import UTC, datetime, timedelta
from functools import cache, partial

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crds.overrides import Override, OverrideState
from crds.schedule import FOREVER, Schedule, Window
from crds.values import DaySet, HourSet
from service.decide.effective import Effective, Leads
from tests.service.decide.effective_walk import walk

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)
OPEN, CLOSED, SCHEDULED = OverrideState.OPEN, OverrideState.CLOSED, OverrideState.SCHEDULED
WORKDAYS = Schedule.weekly(DaySet.parse(["mon-fri"]), HourSet.parse(["9-17"]))
SEARCH = settings(
    max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow], database=None
)


def override(
    state: OverrideState, begins: datetime, ends: datetime, *, name: str = "tonight", age: int = 0
) -> Override:
    return Override(name, state, begins, ends, created=NOON - age * MINUTE)


def at(hour: int, minute: int = 0, day: int = 2) -> datetime:
    return datetime(2026, 3, day, hour, minute, tzinfo=UTC)


def minutes(start: int = 0, stop: int = 0) -> Leads:
    return Leads(start * MINUTE, stop * MINUTE)


# Against a walk

schedules = st.sampled_from(
    [
        WORKDAYS,
        Schedule.weekly(DaySet.parse(["mon-fri"]), HourSet.parse(["0-8,10-11,13,22-23"])),
        Schedule.from_cron("*/30 * * * *", 10 * MINUTE),
        Schedule.from_cron("0,45 6-18 * * *", 5 * MINUTE),
        Schedule.from_cron("17 3 * * *", 26 * HOUR),
        Schedule.weekly(DaySet.EVERY, HourSet.EVERY),
    ]
)
lead = st.integers(0, 60) | st.sampled_from([0, 1, 5, 10, 20, 30, 45, 60])
moments = st.integers(-12 * 60, 24 * 60).map(lambda minute: NOON + minute * MINUTE)


@st.composite
def override_lists(draw: st.DrawFn) -> tuple[Override, ...]:
    found = []
    for number in range(draw(st.integers(0, 4))):
        begins = draw(moments)
        length = draw(st.integers(1, 12 * 60))
        state = draw(st.sampled_from(OverrideState))
        age = draw(st.integers(0, 2))
        found.append(override(state, begins, begins + length * MINUTE, name=f"o{number}", age=age))
    return tuple(found)


@SEARCH
@given(schedules, override_lists(), lead, lead, st.lists(moments, min_size=1, max_size=6))
def test_it_agrees_with_a_walk_over_every_minute(schedule, overrides, start, stop, asked):
    effective = Effective(schedule, overrides, minutes(start, stop))
    oracle = walk(partial(_covers, schedule), overrides, (start, stop), NOON - DAY, NOON + 3 * DAY)
    for moment in asked:
        assert effective.wanted(moment) == oracle.wanted[oracle.at(moment)]
        assert _within(effective.next_change(moment)) == _within(oracle.flips_after(moment))
        assert _within(effective.next_start(moment)) == _within(oracle.starts_after(moment))


@cache
def _covers(schedule: Schedule, minute: datetime) -> bool:
    return schedule.covers(minute)


def _within(moment: datetime | None) -> datetime | None:
    """The walk knows nothing of what its end cuts."""
    return moment if moment is not None and moment < NOON + 2 * DAY else None


@SEARCH
@given(schedules, override_lists(), lead, lead, moments)
def test_nothing_that_is_reported_changes_before_it_is_looked_at_again(schedule, overrides, start, stop, moment):
    effective = Effective(schedule, overrides, minutes(start, stop))
    until = effective.look_again(moment) or moment + DAY
    assert until > moment
    for later in {moment + (until - moment) * part / 4 for part in range(1, 4)} | {until - MINUTE / 60}:
        assert _reported(effective, later) == _reported(effective, moment)


def _reported(effective: Effective, moment: datetime) -> tuple[object, ...]:
    return (
        effective.wanted(moment),
        effective.next_change(moment),
        effective.window(moment),
        effective.closes(moment),
        effective.override(moment),
        effective.schedule is not None and effective.schedule.covers(moment),
    )


@SEARCH
@given(schedules, moments)
def test_without_overrides_and_leads_it_is_the_schedule(schedule, moment):
    plain = Effective(schedule)
    assert plain.wanted(moment) == schedule.covers(moment)
    assert plain.next_change(moment) == plain.look_again(moment) == schedule.next_boundary(moment)
    assert plain.next_start(moment) == schedule.next_opening(moment)


# Leads


def test_a_machine_is_requested_before_its_window_opens():
    early = Effective(WORKDAYS, leads=minutes(start=10))
    assert [early.wanted(at(8, 49)), early.wanted(at(8, 50)), early.wanted(at(17, 59))] == [False, True, True]
    assert early.next_change(at(7)) == at(8, 50)
    assert early.window(at(8, 55)) == Window(at(9), at(18))


def test_a_shutdown_begins_before_the_window_closes():
    early = Effective(WORKDAYS, leads=minutes(stop=10))
    assert [early.wanted(at(17, 49)), early.wanted(at(17, 50))] == [True, False]
    assert (early.closes(at(17)), early.next_start(at(17))) == (at(18), at(9, day=3))


@pytest.mark.parametrize(("start", "bridged"), [(59, False), (60, True)])
def test_a_gap_is_bridged_if_the_next_machine_would_be_requested_at_the_close_or_before(start, bridged):
    lunch = Schedule.weekly(DaySet.EVERY, HourSet.parse(["9-11,13-17"]))
    assert Effective(lunch, leads=minutes(start=start)).wanted(at(12)) is bridged
    assert Effective(lunch, leads=minutes(start=start)).wanted(at(11, 55))


def test_nothing_is_shut_down_for_a_gap_that_is_bridged():
    lunch = Schedule.weekly(DaySet.EVERY, HourSet.parse(["9-11,13-17"]))
    early = Effective(lunch, leads=minutes(start=60, stop=30))
    assert early.next_change(at(11, 45)) == at(17, 30)
    assert early.closes(at(11, 45)) == at(18)
    assert early.window(at(11, 45)) == Window(at(9), at(12))


def test_a_window_of_which_stop_early_leaves_nothing_is_skipped():
    brief = Schedule.from_cron("0 9 * * mon", 20 * MINUTE)
    early = Effective(brief, leads=minutes(start=5, stop=20))
    assert not any(early.wanted(at(8, 50) + minute * MINUTE) for minute in range(40))
    assert [early.skips(at(8, 59)), early.skips(at(9)), early.skips(at(9, 20))] == [False, True, False]


def test_a_schedule_whose_windows_are_all_skipped_or_all_joined_is_looked_at_again_and_again():
    often = Schedule.from_cron("*/10 * * * *", 5 * MINUTE)
    skipped = Effective(often, leads=minutes(stop=5))
    joined = Effective(often, leads=minutes(start=5))
    assert (skipped.wanted(NOON), skipped.next_change(NOON), skipped.look_again(NOON)) == (
        False,
        None,
        NOON + 5 * MINUTE,
    )
    assert (joined.wanted(NOON), joined.next_change(NOON), joined.closes(NOON)) == (True, None, None)
    assert joined.look_again(NOON) == NOON + 5 * MINUTE


def test_a_machine_that_exists_before_its_window_stays_though_its_lead_was_shortened():
    early = Effective(WORKDAYS, leads=minutes(start=10))
    assert not early.wanted(at(8, 35))
    assert early.already_requested(at(9), at(8, 35)).wanted(at(8, 35))


@pytest.mark.parametrize("opens", [None, at(9, day=1), at(9, day=3)])
def test_a_machine_of_another_day_does_not_lengthen_the_lead(opens):
    early = Effective(WORKDAYS, leads=minutes(start=10))
    assert early.already_requested(opens, at(8, 35)) == early


# Overrides


def test_an_open_override_keeps_the_machine_until_it_ends():
    late = Effective(WORKDAYS, (override(OPEN, at(17), at(22)),))
    assert [late.wanted(at(18)), late.wanted(at(21, 59)), late.wanted(at(22))] == [True, True, False]
    assert late.window(at(19)) == Window(at(9), at(22))
    assert late.next_change(at(16)) == at(22)


def test_a_closed_override_takes_the_machine_out_and_gives_it_back():
    off = Effective(WORKDAYS, (override(CLOSED, at(12), at(14)),))
    assert [off.wanted(at(hour)) for hour in (11, 12, 13, 14)] == [True, False, False, True]
    assert off.window(at(13)) == Window(at(14), at(18))


def test_the_newest_override_decides():
    older, newer = override(CLOSED, at(9), at(18), name="b", age=5), override(OPEN, at(12), at(13), name="a", age=1)
    both = Effective(WORKDAYS, (older, newer))
    assert [both.wanted(at(11)), both.wanted(at(12)), both.wanted(at(13))] == [False, True, False]
    assert both.override(at(12)) == newer


def test_of_overrides_of_one_second_the_last_by_name_decides():
    both = Effective(WORKDAYS, (override(OPEN, at(12), at(13), name="b"), override(CLOSED, at(12), at(13), name="a")))
    assert both.wanted(at(12))


def test_a_scheduled_override_sets_an_older_one_aside():
    older, newer = override(CLOSED, at(9), at(18), age=5), override(SCHEDULED, at(12), at(18))
    assert Effective(WORKDAYS, (older, newer)).wanted(at(12))


def test_leads_count_at_the_ends_of_an_override_too():
    evening = Effective(WORKDAYS, (override(OPEN, at(20), at(22)),), minutes(10, 10))
    assert [evening.wanted(at(19, 49)), evening.wanted(at(19, 50))] == [False, True]
    assert [evening.wanted(at(21, 49)), evening.wanted(at(21, 50))] == [True, False]


def test_a_shutdown_ends_before_a_closed_override_begins():
    off = Effective(WORKDAYS, (override(CLOSED, at(12), at(14)),), minutes(10, 10))
    assert [off.wanted(at(11, 49)), off.wanted(at(11, 50))] == [True, False]


def test_no_lead_reaches_into_a_closed_override():
    off = Effective(WORKDAYS, (override(CLOSED, at(8), at(8, 55)), override(CLOSED, at(12), at(12, 5))), minutes(10))
    assert [off.wanted(at(8, 54)), off.wanted(at(8, 55))] == [False, True]
    assert not off.wanted(at(12, 4))


def test_without_a_schedule_only_an_override_in_force_decides():
    lost = Effective(None, (override(OPEN, at(20), at(22)), override(SCHEDULED, at(23), at(23, 30))), minutes(10, 10))
    assert [lost.is_known(at(hour)) for hour in (19, 20, 22, 23)] == [False, True, False, False]
    assert [lost.wanted(at(19, 55)), lost.wanted(at(20)), lost.wanted(at(21, 55))] == [False, True, True]
    assert lost.look_again(at(19)) == at(20)


def test_a_window_that_never_closes_has_no_end_with_leads_either():
    always = Effective(Schedule.weekly(DaySet.EVERY, HourSet.EVERY), leads=minutes(10, 10))
    assert (always.wanted(NOON), always.next_change(NOON), always.closes(NOON)) == (True, None, None)
    window = always.window(NOON)
    assert window is not None
    assert window.closes == FOREVER


def test_a_thousand_overrides_of_one_machine_are_laid_out_quickly():
    many = tuple(override(OPEN, at(0) + n * MINUTE, at(23) + n * MINUTE, name=f"o{n}", age=n) for n in range(1000))
    assert Effective(WORKDAYS, many).next_change(at(12)) == at(18, day=3)

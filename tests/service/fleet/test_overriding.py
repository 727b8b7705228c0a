"""What an override for one machine has to say."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from crds.calendars import CalendarShelf
from crds.overriderules import check_override
from crds.overrides import OverrideState
from crds.values import Zone
from service.fleet.forecast import after_resumption
from service.fleet.overrides import ListedOverrides
from service.fleet.overriding import Draft, PointlessError, extension, resumption, skip, suspension
from service.fleet.requests import overridable
from tests.service.fleet.fleet_overrides import NOON, at, desk, desk_as_stored, punctual_desk, stored

TWO_HOURS = timedelta(hours=2)


def test_an_extension_for_a_time_counts_from_the_close() -> None:
    draft = extension(desk(), TWO_HOURS, NOON)
    assert (draft.state, draft.begins, draft.until) == (OverrideState.OPEN, None, at(19))


def test_an_extension_of_an_extension_counts_from_the_later_close() -> None:
    assert extension(desk(stored("a", "Open", at(20))), TWO_HOURS, NOON).until == at(22)


def test_an_extension_outside_a_window_counts_from_now() -> None:
    assert extension(desk(), TWO_HOURS, at(20, 30)).until == at(22, 30)


def test_an_extension_after_the_shutdown_began_early_still_counts_from_the_close() -> None:
    assert extension(punctual_desk(), TWO_HOURS, at(16, 40)).until == at(19)


@pytest.mark.parametrize(("now", "until"), [(at(20), at(20, 30)), (at(16, 40), at(16, 50)), (at(16, 40), at(17, 10))])
def test_an_extension_that_stop_early_would_end_at_once_is_pointless(now: datetime, until: datetime) -> None:
    with pytest.raises(PointlessError, match="desk-7 would leave at once: stopEarly begins its shutdown 30m before"):
        extension(punctual_desk(), until, now)


def test_an_extension_ends_at_the_moment_asked_for() -> None:
    assert extension(desk(), at(22), NOON).until == at(22)


def test_an_extension_to_before_the_close_is_pointless_and_says_when_that_is() -> None:
    with pytest.raises(PointlessError, match="in service until 17:00 UTC"):
        extension(desk(), at(16), NOON)


@pytest.mark.parametrize("asked", [extension, suspension])
@pytest.mark.parametrize("now", [NOON, at(20)], ids=["in service", "out of service"])
@pytest.mark.parametrize(
    ("until", "why"),
    [
        (at(11), "the end, 2026-03-06T11:00:00Z, is in the past"),
        (datetime(1, 1, 1, tzinfo=UTC), "the end, 0001-01-01T00:00:00Z, is in the past"),
        (datetime(9999, 12, 31, 23, tzinfo=UTC), "the end, 9999-12-31T23:00:00Z, is more than 366 days ahead"),
    ],
    ids=["passed", "first year", "last year"],
)
@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Tokyo"])
def test_an_end_in_the_past_or_further_than_any_operator_accepts_is_refused(asked, now, until, why, zone) -> None:
    with pytest.raises(PointlessError, match=why):
        asked(replace(desk(), zone=Zone.parse(zone)), until, now)


def test_what_an_override_already_does_is_not_said_to_be_without_one() -> None:
    late, out = desk(stored("late", "Open", at(22))), desk(stored("out", "Closed", at(15)))
    with pytest.raises(PointlessError, match="in service until 22:00 UTC without another override"):
        extension(late, at(21), NOON)
    with pytest.raises(PointlessError, match="out of service until 15:00 UTC without another override"):
        suspension(out, at(14), NOON)
    skipped = desk(stored("skip", "Closed", at(17, day=9), **{"from": "2026-03-09T09:00:00Z"}))
    with pytest.raises(PointlessError, match="out of service until Tue 09:00 UTC without another override"):
        suspension(skipped, at(17, day=9), at(20))


def test_an_override_that_is_over_makes_no_difference_to_the_words() -> None:
    with pytest.raises(PointlessError, match="in service until 17:00 UTC without an override"):
        extension(desk(stored("early", "Open", at(9))), at(16), NOON)


def test_a_suspension_counts_from_now() -> None:
    draft = suspension(desk(), TWO_HOURS, NOON)
    assert (draft.state, draft.begins, draft.until) == (OverrideState.CLOSED, None, at(14))


def test_a_suspension_that_ends_before_the_next_window_is_pointless() -> None:
    with pytest.raises(PointlessError, match="out of service until Mon 09:00 UTC"):
        suspension(desk(), TWO_HOURS, at(20))


def test_a_suspension_of_an_extension_is_none() -> None:
    machine = desk(stored("late", "Open", at(23)))
    assert suspension(machine, TWO_HOURS, at(20)).until == at(22)


def test_the_next_window_is_skipped_and_not_the_current_one() -> None:
    draft = skip(desk(), NOON)
    assert (draft.state, draft.begins, draft.until) == (OverrideState.CLOSED, at(9, day=9), at(17, day=9))


def test_a_second_skip_skips_the_window_after() -> None:
    first = stored("skip", "Closed", at(17, day=9), **{"from": "2026-03-09T09:00:00Z"})
    assert skip(desk(first), NOON).begins == at(9, day=10)


def test_resuming_deletes_the_overrides_in_force_that_name_only_this_machine() -> None:
    mine = stored("mine", "Open", at(22))
    coming = stored("coming", "Closed", at(17, day=9), **{"from": "2026-03-09T09:00:00Z"})
    found = resumption(desk(mine, coming), NOON)
    assert [each.name for each in found.delete] == ["mine"]
    assert found.draft is None


@pytest.mark.parametrize(
    "others",
    [{"machines": ["desk-7", "desk-8"]}, {"selector": {"matchLabels": {"room": "1"}}}],
    ids=["names", "labels"],
)
def test_resuming_in_spite_of_an_override_for_others_too_takes_a_newer_one(others: dict) -> None:
    mine, theirs = stored("mine", "Open", at(22)), stored("theirs", "Closed", at(15), **others)
    found = resumption(desk(mine, theirs), NOON)
    assert [each.name for each in found.delete] == ["mine"]
    assert found.draft == Draft("team-a", "desk-7", OverrideState.SCHEDULED, at(15))
    assert found.applied_to(desk(mine, theirs).effective, NOON).wanted(NOON)


def test_resuming_twice_does_nothing_more() -> None:
    theirs = stored("theirs", "Closed", at(15), selector={"matchLabels": {"room": "1"}})
    resumed = stored("resumed", "Scheduled", at(15), created=at(11))
    assert resumption(desk(theirs, resumed), NOON).is_empty


def test_resuming_what_is_only_to_come_takes_that_back() -> None:
    coming = stored("coming", "Closed", at(17, day=9), **{"from": "2026-03-09T09:00:00Z"})
    assert [each.name for each in resumption(desk(coming), NOON).delete] == ["coming"]


REFUSAL = {"type": "Accepted", "status": "False", "reason": "TooLong", "lastTransitionTime": "2026-03-06T08:00:00Z"}
REFUSED = {"conditions": [REFUSAL], "observedGeneration": 1}


def test_resuming_takes_back_what_was_not_accepted_before_what_is_to_come() -> None:
    refused = stored("refused", "Open", at(15), status=REFUSED)
    coming = stored("coming", "Closed", at(17, day=9), **{"from": "2026-03-09T09:00:00Z"})
    machine = desk(refused, coming)
    done = resumption(machine, NOON)
    assert [each.name for each in done.delete] == ["refused"]
    assert after_resumption(machine, done, NOON)[0].startswith("desk-7 follows its schedule: it is in service until")


def test_overrides_that_are_over_or_not_accepted_or_about_others_do_not_count() -> None:
    refused = stored("refused", "Closed", at(15), status=REFUSED, machines=["desk-7", "desk-8"])
    over, others = stored("over", "Closed", at(11)), stored("others", "Closed", at(15), machines=["desk-8"])
    machine = desk(refused, over, others)
    assert machine.effective.wanted(NOON)
    assert resumption(machine, NOON).is_empty


def test_resuming_after_a_reclaim_acknowledges_it() -> None:
    machine = desk(annotations={"5spot.finos.org/reclaim-unacknowledged": "2026-03-06T11:00:00Z"})
    assert resumption(machine, NOON).acknowledge
    assert any("acknowledged" in each for each in machine.outranked)


@pytest.mark.parametrize("value", ["", "\x1b[31m\nReady=True " + "x" * 100_000], ids=["empty", "hostile"])
def test_a_reclaim_of_any_time_can_be_acknowledged_and_is_shown_as_harmless_text(value: str) -> None:
    machine = desk(annotations={"5spot.finos.org/reclaim-unacknowledged": value})
    done = resumption(machine, NOON)
    assert done.acknowledge
    said = " ".join(after_resumption(machine, done, NOON))
    assert said.isprintable()
    assert len(said) < 1000


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        ("Paused", "Its Cluster is paused"),
        ("ClusterNotFound", "Its Cluster does not exist"),
        ("ClusterDeleting", "Its Cluster is being deleted"),
        ("InvalidSpec", "Its spec is invalid"),
    ],
)
def test_what_outranks_overrides_by_the_word_of_the_controller_is_known(reason: str, said: str) -> None:
    raw, since = desk_as_stored(), "2026-03-06T08:00:00Z"
    condition = {"type": "Ready", "status": "False", "reason": reason, "message": "", "lastTransitionTime": since}
    raw["status"] = {"conditions": [condition]}
    [line] = overridable(raw, ListedOverrides(), CalendarShelf()).outranked
    assert line.startswith(said)


def test_what_is_created_is_an_override_that_admission_accepts_and_its_name_ends_in_the_time() -> None:
    body = skip(desk(), NOON, "nobody is there").body("alice", NOON + timedelta(milliseconds=7))
    assert check_override(body).allowed
    assert body["metadata"]["name"] == "desk-7-20260306-120000-007"
    assert body["spec"]["requestedBy"] == "alice"


def test_of_two_overrides_of_one_second_the_later_one_decides() -> None:
    machine, later = desk(), NOON + timedelta(milliseconds=300)
    closed = suspension(machine, TWO_HOURS, NOON)
    both = extension(machine, TWO_HOURS, NOON).added_to(closed.added_to(machine.effective, later), NOON)
    assert not both.wanted(later)

"""Whether two releases watch the same namespaces, and how long an announcement counts."""

import pytest

from service.sharding.announcement import LONGEST_SECONDS, Announcement, observe, parse

MINE = Announcement(("t1", "t2"), 60.0, "first")


@pytest.mark.parametrize(
    ("theirs", "ours", "overlap"),
    [
        ((), (), True),
        ((), ("t1",), True),
        (("t1",), (), True),
        (("t1", "t2"), ("t2", "t3"), True),
        (("t1",), ("t2",), False),
    ],
)
def test_releases_overlap_where_both_watch_all_namespaces_or_the_same_one(theirs, ours, overlap):
    assert Announcement(theirs, 60.0, "").overlaps(ours) is overlap


def test_an_announcement_is_read_as_it_was_stored():
    assert parse(MINE.to_json()) == MINE


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", '{"watches": [1], "seconds": 1, "renewal": ""}', '{"watches": "t1", "seconds": 1}']
)
def test_a_text_that_is_not_an_announcement_is_ignored(text):
    assert parse(text) is None
    assert observe({"a": text}, {}, 0.0) == {}


def test_no_announcement_is_good_for_longer_than_the_settings_allow():
    endless = parse(Announcement((), 1e9, "").to_json())
    assert endless is not None
    assert endless.seconds == LONGEST_SECONDS


def test_an_announcement_counts_until_it_has_not_changed_for_its_time_on_our_own_clock():
    first = observe({"a": MINE.to_json()}, {}, 100.0)
    again = observe({"a": MINE.to_json()}, first, 150.0)
    assert [again["a"].seconds_left(now) for now in (100.0, 150.0, 160.0, 200.0)] == [60.0, 10.0, 0.0, 0.0]
    renewed = observe({"a": Announcement(MINE.watches, 60.0, "second").to_json()}, again, 150.0)
    assert renewed["a"].seconds_left(150.0) == 60.0


def test_an_announcement_that_was_withdrawn_no_longer_counts():
    assert observe({}, observe({"a": MINE.to_json()}, {}, 100.0), 101.0) == {}

"""The cache: the newest word wins, in whatever order words arrive."""

import itertools
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.kube.errors import Unavailable, Unreadable
from service.runtime.cache import TOMBSTONE_SECONDS, UNKNOWN_VERSION, Cache, Change, EventType
from service.runtime.defects import Defect
from service.runtime.key import Key

KEY = Key("a", "x")


def thing(version, *, uid="u1", name="x", **more):
    return {"metadata": {"namespace": "a", "name": name, "uid": uid, "resourceVersion": str(version)}, **more}


@pytest.fixture
def cache():
    return Cache(indexes={"colour": lambda o: [o["colour"]] if "colour" in o else []})


@pytest.fixture
def changes(cache):
    changes: list[Change] = []
    cache.listen(changes.append)
    return changes


def types_of(changes):
    return [change.type for change in changes]


def test_an_object_is_added_changed_and_deleted(cache, changes):
    cache.upsert(thing(1))
    cache.upsert(thing(2, phase="new"))
    cache.remove(thing(3))
    assert types_of(changes) == [EventType.ADDED, EventType.CHANGED, EventType.DELETED]
    assert cache.get(KEY) is None


def test_what_is_read_can_be_changed_without_harm(cache):
    cache.upsert(thing(1, labels=["a"]))
    cache.get(KEY)["labels"].append("b")
    assert cache.get(KEY)["labels"] == ["a"]


def test_field_managers_and_kubectls_copy_are_not_kept(cache):
    raw = thing(1)
    raw["metadata"] |= {
        "managedFields": [{}],
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}", "keep": "me"},
    }
    cache.upsert(raw)
    assert cache.get(KEY)["metadata"]["annotations"] == {"keep": "me"}
    assert "managedFields" not in cache.get(KEY)["metadata"]


def test_our_own_write_is_known_before_the_watch_reports_it(cache, changes):
    cache.upsert(thing(1, phase="old"))
    cache.absorb(thing(5, phase="ours"))
    assert cache.get(KEY)["phase"] == "ours"
    assert len(changes) == 1


def test_the_watch_event_of_our_own_write_calls_no_listener(cache, changes):
    cache.absorb(thing(5))
    assert not cache.upsert(thing(5))
    assert changes == []


def test_an_event_older_than_our_write_is_ignored(cache):
    cache.absorb(thing(5, phase="ours"))
    cache.upsert(thing(4, phase="stale"))
    assert cache.get(KEY)["phase"] == "ours"


def test_what_others_wrote_just_before_us_is_reported_although_our_answer_arrived_first(cache, changes):
    cache.upsert(thing(1))
    cache.absorb(thing(5, theirs=True, ours=True))
    cache.upsert(thing(4, theirs=True))
    cache.upsert(thing(5, theirs=True, ours=True))
    assert [(change.type, change.version) for change in changes[1:]] == [(EventType.CHANGED, 4)]
    assert changes[1].object == thing(5, theirs=True, ours=True)
    assert cache._own_versions == {}


def test_the_watch_events_of_two_writes_of_ours_call_no_listener(cache, changes):
    cache.absorb(thing(5))
    cache.absorb(thing(7, more=True))
    cache.upsert(thing(5))
    cache.upsert(thing(6))
    cache.upsert(thing(7, more=True))
    assert [change.version for change in changes] == [6]
    assert cache._own_versions == {}


def test_an_object_that_was_found_after_a_lost_answer_is_reported_from_its_creation_on(cache, changes):
    cache.absorb(thing(6, running=True))  # created by us in 4, and found when we tried again
    cache.upsert(thing(4))
    assert [change.object for change in changes] == [thing(6, running=True)]


def test_nothing_is_remembered_of_writes_to_what_is_gone(cache):
    cache.absorb(thing(5))
    cache.remove(thing(6))
    assert cache._own_versions == {}


def test_that_an_object_is_missing_is_never_taken_for_our_last_write(cache, changes):
    cache.absorb(thing(5))
    cache.keep_only(set(), listed_at=9)
    assert [(change.type, change.version) for change in changes] == [(EventType.DELETED, UNKNOWN_VERSION)]


def test_versions_are_compared_as_numbers(cache):
    cache.upsert(thing(9))
    assert cache.upsert(thing(10))


def test_a_stale_event_does_not_bring_a_deleted_object_back(cache):
    cache.upsert(thing(1))
    cache.absorb_deletion(KEY, "u1", {"kind": "Status", "status": "Success"})
    cache.upsert(thing(2, phase="stale"))
    assert KEY not in cache


def test_a_late_answer_to_a_write_does_not_bring_a_deleted_object_back(cache):
    cache.upsert(thing(1))
    cache.remove(thing(7))
    assert not cache.absorb(thing(6))
    assert KEY not in cache


def test_an_object_that_lost_its_label_and_got_it_back_is_stored_again(cache, changes):
    cache.upsert(thing(1))
    cache.remove(thing(7))  # what a watch by labels says when the label is gone
    assert cache.upsert(thing(8))
    cache.remove(thing(9))
    assert types_of(changes) == [EventType.ADDED, EventType.DELETED, EventType.ADDED, EventType.DELETED]


def test_a_deletion_held_by_finalizers_is_a_change(cache):
    cache.upsert(thing(1))
    cache.absorb_deletion(KEY, "u1", thing(2, kind="Machine", going=True))
    assert cache.get(KEY)["going"]


def test_a_new_object_of_the_same_name_is_taken_in_after_a_deletion(cache):
    cache.upsert(thing(1))
    cache.remove(thing(2))
    assert cache.upsert(thing(3, uid="u2"))
    assert cache.get(KEY)["metadata"]["uid"] == "u2"


def test_the_deletion_of_a_predecessor_does_not_remove_its_successor(cache, changes):
    cache.upsert(thing(1))
    cache.absorb(thing(5, uid="u2"))
    cache.remove(thing(4, uid="u1"))
    assert cache.get(KEY)["metadata"]["uid"] == "u2"
    assert types_of(changes) == [EventType.ADDED]


def test_an_object_replaced_by_another_of_its_name_is_reported_as_deleted_first(cache, changes):
    cache.upsert(thing(1))
    cache.upsert(thing(9, uid="u2"))
    assert types_of(changes) == [EventType.ADDED, EventType.DELETED, EventType.ADDED]
    assert changes[1].object["metadata"]["uid"] == "u1"


def test_what_a_list_no_longer_has_is_deleted(cache, changes):
    cache.upsert(thing(1))
    cache.upsert(thing(2, name="y", uid="u2"))
    cache.keep_only({Key("a", "y")}, listed_at=9)
    assert list(cache) == [Key("a", "y")]
    assert changes[-1].type is EventType.DELETED


def test_what_we_created_after_a_list_was_made_is_kept(cache):
    cache.absorb(thing(12))
    cache.keep_only(set(), listed_at=9)
    assert KEY in cache


def test_indexes_follow_changes(cache):
    cache.upsert(thing(1, colour="red"))
    cache.upsert(thing(2, colour="blue"))
    assert cache.keys_by("colour", "red") == frozenset()
    assert cache.keys_by("colour", "blue") == {KEY}
    assert cache.count_by("colour", "blue") == 1
    cache.remove(thing(3))
    assert cache.keys_by("colour", "blue") == frozenset()
    assert cache._terms == {}


def test_an_unknown_index_says_which_there_are(cache):
    with pytest.raises(KeyError, match="colour"):
        cache.keys_by("size", "big")


def test_tombstones_expire():
    now = [0.0]
    cache = Cache(monotonic=lambda: now[0])
    for n in range(100):
        cache.remove(thing(n, uid=f"u{n}"))
    now[0] = TOMBSTONE_SECONDS + 1
    cache.remove(thing(200, uid="last"))
    assert list(cache._tombstones) == ["last"]


def test_after_a_restored_backup_older_versions_are_believed(cache):
    cache.upsert(thing(1000, phase="lost"))
    cache.forget_versions()
    cache.upsert(thing(10, phase="restored"))
    cache.keep_only({KEY}, listed_at=11)
    assert cache.get(KEY)["phase"] == "restored"
    assert cache.newest == 11


@pytest.mark.parametrize(
    "nonsense",
    [
        {},
        {"metadata": None},
        {"metadata": {"name": "x", "uid": "u"}},
        thing("ten"),
        thing(1, uid=["u"]),
        thing(1, uid="u" * 129),
        thing(1, name="x" * 254),
        thing("1" * 21),
    ],
)
def test_nonsense_from_a_server_is_that_servers_failure(cache, nonsense):
    with pytest.raises(Unavailable):
        cache.upsert(nonsense)


def test_a_server_that_sends_more_than_fits_is_not_listened_to_further():
    cache = Cache(budget=1000)
    cache.upsert(thing(1, name="small", fill="x" * 300))
    with pytest.raises(Unavailable, match="1000 bytes"):
        cache.upsert(thing(2, name="large", uid="u2", fill="x" * 900))
    cache.upsert(thing(3, name="small", uid="u3", fill="x" * 600))
    cache.remove(thing(4, name="small", uid="u3"))
    assert cache._bytes == 0


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_any_interleaving_of_stream_and_own_writes_ends_in_the_truth(data):
    """History of one name on the server; we hear it in order from the watch, and late or early from our writes."""
    steps = data.draw(st.lists(st.sampled_from(["write", "delete"]), min_size=1, max_size=8))
    history, alive, uid = [], False, 0
    for version, step in enumerate(steps, start=1):
        if step == "write":
            uid += 0 if alive else 1
            alive = True
            history.append(("write", thing(version, uid=f"u{uid}", written=version)))
        elif alive:
            alive = False
            history.append(("delete", thing(version, uid=f"u{uid}")))
    answers = [raw for kind, raw in history if kind == "write" and data.draw(st.booleans())]
    moments = sorted(data.draw(st.integers(0, len(history))) for _ in answers)
    cache, newest_seen = Cache(), 0
    changes: list[Change] = []
    cache.listen(changes.append)
    for position, (kind, raw) in enumerate([*history, (None, None)]):
        for _, own_write in ((m, e) for m, e in zip(moments, answers, strict=True) if m == position):
            cache.absorb(dict(own_write))
            newest_seen = _never_back(cache, newest_seen)
        if kind == "write":
            cache.upsert(dict(raw))
        elif kind == "delete":
            cache.remove(dict(raw))
        newest_seen = _never_back(cache, newest_seen)
    last_kind, last = history[-1] if history else ("delete", None)
    assert (KEY in cache) == (last_kind == "write")
    if last_kind == "write":
        assert cache.get(KEY) == last
        theirs = {
            raw["written"] for kind, raw in history if kind == "write" and raw not in answers and _same_uid(raw, last)
        }
        assert theirs <= {change.version for change in changes}, "writes of others reach the listeners in either order"


def _same_uid(one, other):
    return one["metadata"]["uid"] == other["metadata"]["uid"]


def _never_back(cache, newest_seen):
    found = cache.get(KEY)
    version = int(found["metadata"]["resourceVersion"]) if found else newest_seen
    assert version >= newest_seen
    return version


def test_orders_of_an_answer_and_three_events_all_agree():
    raws = [thing(1), thing(2), thing(3)]
    for moment, own_write in itertools.product(range(4), raws):
        cache = Cache()
        for position in range(4):
            if position == moment:
                cache.absorb(dict(own_write))
            if position < 3:
                cache.upsert(dict(raws[position]))
        assert cache.get(KEY) == thing(3)


def nested(levels):
    deep: dict[str, Any] = {"bottom": 1}
    for _ in range(levels):
        deep = {"more": deep, "list": []}
    return deep


@pytest.fixture
def marks(cache):
    reported = []
    cache.on_defect = lambda key, mark: reported.append((key.name, str(mark.defect)))
    return reported


def test_an_object_nested_too_deep_to_be_kept_is_kept_without_its_depths_and_reported_once(cache, marks):
    for version in (7, 8):
        cache.upsert(thing(version, spec=nested(400), colour="red"))
    assert cache.get(KEY)["spec"]["more"]["more"]["list"] == []
    assert (cache.unreadable(KEY), cache.version(KEY), cache.keys_by("colour", "red")) == (None, 8, {KEY})
    cache.upsert(thing(9, spec=nested(100)))
    assert cache.get(KEY)["spec"] == nested(100)
    cache.upsert(thing(10, spec=nested(400)))
    assert marks == [("x", "TooDeep"), ("x", "TooDeep")]


def test_what_is_not_kept_may_be_as_deep_as_it_likes(marks):
    cache = Cache()
    raw = thing(7, spec={})
    raw["metadata"]["managedFields"] = [nested(400)]
    cache.upsert(raw)
    assert (marks, cache.get(KEY)) == ([], thing(7, spec={}))


def test_an_object_that_became_unreadable_counts_neither_as_present_nor_as_deleted(cache, changes, marks):
    cache.upsert(thing(7))
    cache.mark_unreadable(thing(8), Defect.TOO_LARGE, "too large")
    cache.mark_unreadable(thing(9), Defect.TOO_LARGE, "too large")
    assert (cache.get(KEY), cache.version(KEY), cache.unreadable(KEY)) == (None, None, "too large")
    assert KEY in cache
    assert types_of(changes) == [EventType.ADDED, EventType.CHANGED], "one change for those that rely on it"
    assert marks == [("x", "TooLarge")]
    cache.absorb(thing(8))
    assert cache.get(KEY) is None, "that is from before"
    cache.upsert(thing(10))
    assert (cache.get(KEY), cache.unreadable(KEY)) == (thing(10), None)
    assert types_of(changes)[2:] == [EventType.CHANGED], "also if nothing in it differs from what was known"


def test_an_answer_that_was_quicker_than_the_watch_is_not_hidden_by_an_unreadable_event(cache):
    cache.absorb(thing(9))
    cache.mark_unreadable(thing(8), Defect.TOO_LARGE, "too large")
    assert cache.get(KEY) == thing(9)


def test_deleting_an_unreadable_object_removes_its_mark_too(cache, changes):
    cache.upsert(thing(7))
    cache.mark_unreadable(thing(8), Defect.MALFORMED, "no uid")
    cache.remove(thing(9))
    assert (KEY in cache, cache.unreadable(KEY)) == (False, None)
    assert types_of(changes)[-1] == EventType.DELETED
    cache.mark_unreadable(thing(10, name="never known"), Defect.MALFORMED, "no uid")
    cache.keep_only(set(), 11)
    assert cache.unreadable(Key("a", "never known")) is None


def test_objects_that_are_alike_count_in_full():
    cache = Cache(budget=200 * 1000)
    for number in range(400):
        with suppress(Unavailable):
            cache.upsert(thing(number + 1, name=f"x-{number}", uid=f"u-{number}", text="a" * 900))
    assert 180 < len(cache) < 220


def test_unreadable_objects_count_towards_the_budget():
    cache = Cache(budget=10_000)
    for number in range(19):
        cache.mark_unreadable(thing(7, name=f"x{number}"), Defect.MALFORMED, "no uid")
    with pytest.raises(Unavailable, match="need more than"):
        cache.mark_unreadable(thing(7, name="one more"), Defect.MALFORMED, "no uid")


@pytest.mark.parametrize(
    "metadata",
    [
        {"uid": None},
        {"uid": ""},
        {"uid": 7},
        {"uid": "u" * 5_000_000},
        {"name": "n" * 5_000_000},
        {"name": ["x"]},
        {"name": None},
        {"namespace": {"a": 1}},
        {"resourceVersion": None},
        {"resourceVersion": "9" * 5000},
        {"resourceVersion": 9.5},
    ],
)
def test_an_object_without_a_valid_identity_is_not_kept_and_neither_are_its_names(cache, metadata):
    raw = thing(7)
    raw["metadata"] |= metadata
    with pytest.raises(Unreadable) as caught:
        cache.upsert(raw)
    key = cache.mark_unreadable(raw, Defect.MALFORMED, caught.value.message)
    assert len(str(key)) < 300
    assert len(caught.value.message) <= 1024
    assert cache.unreadable(key)
    assert len(cache) == 0

from datetime import UTC, datetime
from typing import Any

from service.clock import ManualClock
from service.objects.subject import Subject
from service.runtime.key import Key
from tests.service.decide.builders import intent

NOON = datetime(2026, 3, 6, 12, tzinfo=UTC)

STATUS = {"phase": "Active", "nodeRef": {"name": "node-7", "uid": "seen-then"}, "ofALaterVersion": 1}
METADATA = {"name": "desk", "uid": "u", "resourceVersion": "7"}
RAW: dict[str, Any] = {"metadata": METADATA, "spec": {"priority": 1}, "status": STATUS}


def stored_with(changes, raw=RAW):
    return Subject.read(Key("team", "desk"), raw, intent(), ManualClock(NOON)).with_status(changes)


def test_a_status_keeps_unchanged_and_unknown_fields():
    assert stored_with({"phase": "Error"})["status"] == {**STATUS, "phase": "Error"}


def test_what_is_none_is_taken_out_of_a_status():
    assert stored_with({"phase": None})["status"] == {name: STATUS[name] for name in ("nodeRef", "ofALaterVersion")}


def test_a_part_of_a_reference_that_is_not_known_any_more_does_not_stay():
    assert stored_with({"nodeRef": {"name": "node-7"}})["status"]["nodeRef"] == {"name": "node-7"}


def test_it_is_stored_only_over_the_version_that_was_seen():
    assert stored_with({})["metadata"] == RAW["metadata"]


def test_the_object_itself_stays_as_it_was_read():
    stored_with({"phase": "Error"})
    assert RAW["status"]["phase"] == "Active"


def test_one_that_came_in_a_list_is_complete():
    assert {"apiVersion", "kind", "spec"} <= stored_with({}, {**RAW, "status": None}).keys()

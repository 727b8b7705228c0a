import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crds import names
from crds.rules import check
from tests.crds.defaulting import defaulted
from tests.webhooks.reviews import UID, changed, machine
from webhooks.defaults import patch_for
from webhooks.review import JSONPatch, Review


def create(given: dict[str, Any], operation: str = "CREATE") -> Review:
    return Review(UID, operation, "default", "worker", "", given, None)


def applied(given: dict[str, Any], patch: JSONPatch) -> dict[str, Any]:
    """What the API server makes of the patch."""
    result = copy.deepcopy(given)
    for operation in patch:
        *parents, last = operation["path"].split("/")[1:]
        target: Any = result
        for parent in parents:
            target = target[parent]
        if operation["op"] == "remove":
            del target[last]
        elif last == "-":
            target.append(operation["value"])
        else:
            target[last] = operation["value"]
    return result


def test_absent_fields_and_the_finalizer_are_added_at_creation():
    stored = applied(machine(), patch_for(create(machine())))
    assert stored["metadata"]["finalizers"] == [names.FINALIZER]
    assert stored["spec"]["priority"] == 50
    assert stored["spec"]["gracefulShutdownTimeout"] == "5m"
    assert stored["spec"]["schedule"]["timezone"] == "UTC"
    assert stored["spec"]["schedule"]["enabled"] is True
    assert "duration" not in stored["spec"]["schedule"]
    assert "killIfCommands" not in stored["spec"]
    assert "machineTemplate" not in stored["spec"]


def test_the_patch_says_what_the_shared_defaults_say():
    given = machine()
    stored = applied(given, patch_for(create(given, "UPDATE")))
    assert stored == defaulted(given)


def test_a_duration_is_added_with_cron_only():
    given = machine(schedule={"cron": "0 9 * * *"})
    assert applied(given, patch_for(create(given)))["spec"]["schedule"]["duration"] == "1m"


def test_defaulting_twice_does_what_once_does():
    stored = applied(machine(), patch_for(create(machine())))
    assert patch_for(create(stored)) == []


def test_a_null_counts_as_absent():
    given = machine()
    given["spec"]["priority"] = None
    assert applied(given, patch_for(create(given)))["spec"]["priority"] == 50


def update(given: dict[str, Any], old: dict[str, Any]) -> Review:
    return Review(UID, "UPDATE", "default", "worker", "", given, old)


def test_a_duration_that_defaulting_wrote_goes_with_the_cron_it_was_written_for():
    old = machine(schedule={"cron": "0 9 * * *", "duration": "1m"})
    given = machine(schedule={"daysOfWeek": ["mon"], "duration": "1m"})
    stored = applied(given, patch_for(update(given, old)))
    assert stored["spec"]["schedule"] == {
        "daysOfWeek": ["mon"],
        "hoursOfDay": [],
        "timezone": "UTC",
        "enabled": True,
    }
    assert check(stored, old=old).allowed
    assert patch_for(update(stored, old)) == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"cron": "0 9 * * *", "duration": "8h"}, {"daysOfWeek": ["mon"], "duration": "8h"}),
        ({"cron": "0 9 * * *", "duration": "1m"}, {"daysOfWeek": ["mon"], "duration": "60s"}),
        ({"cron": "0 9 * * *", "duration": "1m"}, {"cron": "0 8 * * *", "duration": "1m"}),
        ({"daysOfWeek": ["mon"]}, {"daysOfWeek": ["mon"], "duration": "1m"}),
        ({"daysOfWeek": ["mon"], "duration": "1m"}, {"daysOfWeek": ["tue"], "duration": "1m"}),
    ],
)
def test_a_duration_that_the_user_wrote_is_kept(before: dict[str, Any], after: dict[str, Any]):
    given = machine(schedule=after)
    stored = applied(given, patch_for(update(given, machine(schedule=before))))
    assert stored["spec"]["schedule"]["duration"] == after["duration"]


@pytest.mark.parametrize("old", [None, {}, {"spec": 3}, {"spec": {"schedule": []}}])
def test_an_old_object_of_the_wrong_shape_takes_nothing_away(old: Any):
    given = machine(schedule={"daysOfWeek": ["mon"], "duration": "1m"})
    assert "remove" not in {operation["op"] for operation in patch_for(update(given, old))}


def test_the_empty_lists_that_defaulting_wrote_are_no_obstacle_to_cron():
    old = defaulted(machine(schedule={"hoursOfDay": ["9"]}))
    given = machine(schedule={"cron": "0 9 * * *", "daysOfWeek": []})
    assert check(applied(given, patch_for(update(given, old))), old=old).allowed


def test_an_update_gets_no_finalizer():
    paths = {operation["path"] for operation in patch_for(create(machine(), "UPDATE"))}
    assert not any("finalizers" in path for path in paths)
    assert "/spec/priority" in paths


def test_other_peoples_finalizers_stay():
    given = changed(machine(), finalizers=["example.org/mine"])
    stored = applied(given, patch_for(create(given)))
    assert stored["metadata"]["finalizers"] == ["example.org/mine", names.FINALIZER]


def test_a_finalizer_that_is_there_is_not_added_again():
    given = changed(machine(), finalizers=[names.FINALIZER])
    assert not any("finalizers" in operation["path"] for operation in patch_for(create(given)))


@pytest.mark.parametrize("broken", [{}, {"spec": None}, {"spec": []}, {"metadata": 3, "spec": {"schedule": "x"}}])
def test_an_object_of_the_wrong_shape_is_left_to_the_validation(broken: dict[str, Any]):
    assert isinstance(patch_for(create(broken)), list)


def test_nothing_is_added_to_nothing():
    assert patch_for(Review(UID, "CREATE", "", "", "", None, None)) == []


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text("abc", max_size=5), lambda v: st.lists(v, max_size=3)
)


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(["priority", "killSwitch", "nodeTaints", "schedule", "clusterName"]), values))
def test_defaulting_never_rewrites_what_is_there(spec: dict[str, Any]):
    given = {"metadata": {"name": "a"}, "spec": spec}
    stored = applied(given, patch_for(create(given)))
    for key, value in spec.items():
        assert stored["spec"][key] == value or value is None

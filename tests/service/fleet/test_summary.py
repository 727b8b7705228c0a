"""A ScheduledMachine at a glance, from the object as stored."""

from typing import Any

from service.fleet.summary import UNSEEN, Summary
from tests.crds.machines import machine

READY = {
    "type": "Ready",
    "status": "True",
    "reason": "MachineRunning",
    "message": "The Node is Ready.",
    "lastTransitionTime": "2026-03-06T09:02:00Z",
}


def summary(**status: Any) -> Summary:
    return Summary.read(machine(status=status))


def test_a_machine_in_service_closes_next() -> None:
    found = summary(phase="Active", inSchedule=True, nextCleanup="2026-03-06T18:00:00Z", conditions=[READY])
    assert (found.phase, found.ready, found.reason) == ("Active", True, "MachineRunning")
    assert found.next is not None
    assert (found.next.what, found.next.at.hour) == ("closes", 18)
    assert found.attention == ()


def test_a_shutdown_names_its_deadline() -> None:
    found = summary(phase="ShuttingDown", nextCleanup="2026-03-06T18:05:00Z", nextActivation="2026-03-09T09:00:00Z")
    assert found.next is not None
    assert found.next.what == "gone by"


def test_what_comes_next_are_the_ends_of_the_window_without_leads() -> None:
    window = {"opens": "2026-03-06T09:00:00Z", "closes": "2026-03-06T18:00:00Z"}
    lead = summary(phase="Active", window=window, nextChange="opens Fri 09:00", nextActivation="2026-03-09T08:50:00Z")
    open_now = summary(
        phase="Active",
        inSchedule=True,
        window=window,
        nextChange="closes Fri 18:00",
        nextCleanup="2026-03-06T17:50:00Z",
    )
    found = [each.next and (each.next.what, each.next.at.hour) for each in (lead, open_now)]
    assert found == [("opens", 9), ("closes", 18)]


def test_a_machine_out_of_service_opens_next() -> None:
    found = summary(phase="Inactive", nextActivation="2026-03-09T09:00:00Z")
    assert found.next is not None
    assert found.next.what == "opens"


def test_an_object_that_no_operator_has_handled_needs_attention() -> None:
    assert Summary.read(machine()).attention == (UNSEEN,)


def test_a_condition_that_warns_needs_attention_once_for_each_message() -> None:
    missing = {"reason": "ClusterNotFound", "message": "Cluster x does not exist.", "status": "False"}
    conditions = [{**READY, **missing}, {**READY, **missing, "type": "ReferencesValid"}]
    assert summary(phase="Inactive", conditions=conditions).attention == ("Cluster x does not exist.",)


def test_an_error_with_a_providers_own_word_needs_attention() -> None:
    failed = {**READY, "status": "False", "reason": "InsufficientCapacity"}
    found = summary(phase="Error", message="No host is free.", conditions=[failed])
    assert found.attention == ("No host is free.",)


def test_a_shutdown_says_what_holds_it_up() -> None:
    left = {**READY, "type": "Drained", "status": "False", "reason": "Draining", "message": "2 pods are left: a, b."}
    assert summary(phase="ShuttingDown", conditions=[left]).held_up == "2 pods are left: a, b."
    assert summary(phase="Inactive", conditions=[left]).held_up == ""


def test_an_override_in_force_is_part_of_it() -> None:
    found = summary(phase="Active", override={"name": "tonight", "state": "Open", "until": "2026-03-06T22:00:00Z"})
    assert found.to_json()["override"] == {"name": "tonight", "state": "Open", "until": "2026-03-06T22:00:00Z"}


def test_a_long_list_keeps_no_conditions() -> None:
    found = summary(phase="Active", conditions=[READY]).without_details()
    assert (found.status.conditions, found.ready, found.phase) == ((), True, "Active")


def test_an_object_that_is_invalid_is_shown_as_far_as_it_can_be_read() -> None:
    found = Summary.read(machine(schedule={"daysOfWeek": ["someday"]}, status={"phase": "Error"}))
    assert (found.phase, found.schedule) == ("Error", "cannot be read")

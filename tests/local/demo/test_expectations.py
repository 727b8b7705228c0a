"""The demo's verdicts: each expectation can be met, and each can fail."""

import pytest

from local.demo.expectations import (
    MONDAY,
    NIGHT_TAINTS,
    PODS,
    REFUSAL,
    Expectation,
    ExpectationVerdict,
    came,
    cleared,
    closed,
    drained,
    either_waited,
    expectations,
    failed,
    in_turn,
    left,
    reclaimed,
    tainted,
)
from local.demo.observations import Chronicle, Kind
from local.examples import BROKEN, CLASSROOM, NIGHT, OFFICE, READING, WORKSTATION
from tests.local.demo.chronicles import ChronicleBuilder, at, day_of


@pytest.fixture
def friday() -> ChronicleBuilder:
    return day_of(OFFICE, PODS[OFFICE], comes=9, leaves=18)


def office(what: str) -> Expectation:
    return next(each for each in expectations() if each.who == OFFICE and what in each.what)


@pytest.mark.parametrize("what", ["comes", "evicted", "leaves"])
def test_a_day_as_it_should_be_meets_what_is_expected_of_the_office(friday: ChronicleBuilder, what: str) -> None:
    assert office(what).verdict(friday.chronicle, at(19)) is ExpectationVerdict.MET


def test_what_has_not_happened_is_waited_for_and_then_missed() -> None:
    verdicts = [office("comes").verdict(Chronicle(), at(hour)) for hour in (8, 17, 19)]
    assert verdicts == [ExpectationVerdict.WAITING, ExpectationVerdict.WAITING, ExpectationVerdict.MISSED]


def test_a_machine_that_comes_before_its_window_is_too_early() -> None:
    early = day_of(OFFICE, PODS[OFFICE], comes=8, leaves=18)
    assert office("comes").verdict(early.chronicle, at(19)) is ExpectationVerdict.EARLY


def test_a_machine_that_leaves_before_its_window_closes_is_too_early() -> None:
    early = day_of(OFFICE, PODS[OFFICE], comes=9, leaves=16)
    assert office("leaves").verdict(early.chronicle, at(19)) is ExpectationVerdict.EARLY


def test_a_machine_that_leaves_long_after_its_grace_is_too_late() -> None:
    late = day_of(OFFICE, PODS[OFFICE], comes=9, leaves=25)
    assert office("leaves").verdict(late.chronicle, at(26)) is ExpectationVerdict.LATE


def test_a_machine_has_not_left_while_its_node_is_there() -> None:
    builder = ChronicleBuilder()
    builder.node(9, "host")
    builder.machine(9, OFFICE, "Active", "Running", ready="True", node="host")
    builder.machine(18, OFFICE, "Inactive")
    assert left(OFFICE)(builder.chronicle) is None


def test_pods_that_vanish_with_their_node_were_not_drained() -> None:
    builder = ChronicleBuilder()
    builder.node(9, "host")
    builder.machine(9, OFFICE, "Active", "Running", ready="True", node="host")
    for pod in PODS[OFFICE]:
        builder.pod(9.1, pod, "host")
    builder.node(18, "host", cordoned="yes")
    builder.gone(18.1, Kind.NODE, "host")
    for pod in PODS[OFFICE]:
        builder.gone(18.2, Kind.POD, pod)
    assert drained(OFFICE)(builder.chronicle) is None


def test_a_node_that_was_never_cordoned_was_not_drained(friday: ChronicleBuilder) -> None:
    uncordoned = Chronicle()
    for seen in friday.chronicle.observations:
        if not seen.says(cordoned="yes"):
            uncordoned.record(seen)
    assert drained(OFFICE)(friday.chronicle) == at(18.3)
    assert drained(OFFICE)(uncordoned) is None


@pytest.mark.parametrize(("taints", "found"), [(NIGHT_TAINTS, True), ("workload=batch:NoSchedule", False), ("", False)])
def test_both_taints_must_be_on_the_node(taints: str, found: bool) -> None:
    night = day_of(NIGHT, PODS[NIGHT], comes=22, leaves=30, taints=taints)
    assert (tainted(NIGHT, NIGHT_TAINTS)(night.chronicle) is not None) is found


def test_an_error_without_the_providers_message_does_not_count() -> None:
    builder = ChronicleBuilder()
    builder.machine(12, BROKEN, "Error", "Failed", message="something went wrong")
    assert failed(BROKEN, REFUSAL)(builder.chronicle) is None
    builder.machine(13, BROKEN, "Error", "Failed", message=f"the provider says: {REFUSAL}")
    assert failed(BROKEN, REFUSAL)(builder.chronicle) == at(13)
    assert cleared(BROKEN, REFUSAL)(builder.chronicle) is None
    builder.machine(20, BROKEN, "Inactive")
    assert cleared(BROKEN, REFUSAL)(builder.chronicle) == at(20)


def test_a_machine_that_is_active_but_not_ready_has_not_come() -> None:
    builder = ChronicleBuilder()
    builder.machine(9, OFFICE, "Active", "Running", node="host")
    assert came(OFFICE)(builder.chronicle) is None


def test_a_machine_that_waits_for_monday_is_out_for_the_holiday_unless_it_was_ever_ready() -> None:
    builder = ChronicleBuilder()
    builder.machine(8, CLASSROOM, "Inactive", opens="2026-03-06T08:30:00Z")
    assert closed(CLASSROOM, MONDAY)(builder.chronicle) is None
    builder.machine(8.2, CLASSROOM, "Inactive", opens="2026-03-09T08:30:00Z")
    assert closed(CLASSROOM, MONDAY)(builder.chronicle) == at(8.2)
    builder.machine(9, CLASSROOM, "Active", "Running", ready="True", node="host")
    assert closed(CLASSROOM, MONDAY)(builder.chronicle) is None


def test_a_machine_that_waits_must_say_so() -> None:
    builder = ChronicleBuilder()
    builder.machine(9, READING, "Pending", message="The Machine is gone; creating a new one.")
    assert either_waited(READING, OFFICE)(builder.chronicle) is None
    builder.machine(9.1, READING, "Pending", message="Waiting for a turn: at most 1 machine …")
    assert either_waited(OFFICE, READING)(builder.chronicle) == at(9.1)


@pytest.mark.parametrize(("requested", "found"), [(9.5, True), (9.05, False)])
def test_two_machines_come_in_turn_if_the_second_is_requested_after_the_first_is_ready(
    friday: ChronicleBuilder, requested: float, found: bool
) -> None:
    friday.machine(requested, READING, "Active", "Provisioning")
    friday.machine(9.6, READING, "Active", "Running", ready="True", node="room")
    assert (in_turn(READING, OFFICE)(friday.chronicle) is not None) is found
    assert in_turn(READING, BROKEN)(friday.chronicle) is None


def test_a_workstation_is_reclaimed_only_if_its_owner_asked_and_its_node_is_gone() -> None:
    builder = ChronicleBuilder()
    builder.node(10, "host")
    builder.machine(10, WORKSTATION, "Active", "Running", ready="True", node="host")
    builder.machine(14.1, WORKSTATION, "Disabled", node="host")
    builder.gone(14.2, Kind.NODE, "host")
    assert reclaimed(WORKSTATION)(builder.chronicle) is None
    builder = ChronicleBuilder()
    builder.node(10, "host")
    builder.machine(10, WORKSTATION, "Active", "Running", ready="True", node="host")
    builder.machine(14.1, WORKSTATION, "EmergencyRemove", "Deleting", node="host")
    builder.machine(14.2, WORKSTATION, "Disabled")
    assert reclaimed(WORKSTATION)(builder.chronicle) is None
    builder.gone(14.3, Kind.NODE, "host")
    assert reclaimed(WORKSTATION)(builder.chronicle) == at(14.3)

"""The demo's verdicts: each expectation can be met, and each can fail."""

import pytest

from local.demo.expectations import (
    NIGHT_TAINTS,
    PODS,
    REFUSAL,
    Expectation,
    ExpectationVerdict,
    came,
    cleared,
    drained,
    expectations,
    failed,
    left,
    tainted,
)
from local.demo.sightings import Chronicle, Kind
from local.examples import BROKEN, NIGHT, OFFICE
from tests.local.demo.telling import Telling, at, day_of


@pytest.fixture
def friday() -> Telling:
    return day_of(OFFICE, PODS[OFFICE], comes=9, leaves=18)


def office(what: str) -> Expectation:
    return next(each for each in expectations() if each.who == OFFICE and what in each.what)


@pytest.mark.parametrize("what", ["comes", "evicted", "leaves"])
def test_a_day_as_it_should_be_meets_what_is_expected_of_the_office(friday: Telling, what: str) -> None:
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
    telling = Telling()
    telling.node(9, "host")
    telling.machine(9, OFFICE, "Active", "Running", ready="True", node="host")
    telling.machine(18, OFFICE, "Inactive")
    assert left(OFFICE)(telling.chronicle) is None


def test_pods_that_vanish_with_their_node_were_not_drained() -> None:
    telling = Telling()
    telling.node(9, "host")
    telling.machine(9, OFFICE, "Active", "Running", ready="True", node="host")
    for pod in PODS[OFFICE]:
        telling.pod(9.1, pod, "host")
    telling.node(18, "host", cordoned="yes")
    telling.gone(18.1, Kind.NODE, "host")
    for pod in PODS[OFFICE]:
        telling.gone(18.2, Kind.POD, pod)
    assert drained(OFFICE)(telling.chronicle) is None


def test_a_node_that_was_never_cordoned_was_not_drained(friday: Telling) -> None:
    uncordoned = Chronicle()
    for seen in friday.chronicle.sightings:
        if not seen.says(cordoned="yes"):
            uncordoned.see(seen)
    assert drained(OFFICE)(friday.chronicle) == at(18.3)
    assert drained(OFFICE)(uncordoned) is None


@pytest.mark.parametrize(("taints", "found"), [(NIGHT_TAINTS, True), ("workload=batch:NoSchedule", False), ("", False)])
def test_both_taints_must_be_on_the_node(taints: str, found: bool) -> None:
    night = day_of(NIGHT, PODS[NIGHT], comes=22, leaves=30, taints=taints)
    assert (tainted(NIGHT, NIGHT_TAINTS)(night.chronicle) is not None) is found


def test_an_error_without_the_providers_message_does_not_count() -> None:
    telling = Telling()
    telling.machine(12, BROKEN, "Error", "Failed", message="something went wrong")
    assert failed(BROKEN, REFUSAL)(telling.chronicle) is None
    telling.machine(13, BROKEN, "Error", "Failed", message=f"the provider says: {REFUSAL}")
    assert failed(BROKEN, REFUSAL)(telling.chronicle) == at(13)
    assert cleared(BROKEN, REFUSAL)(telling.chronicle) is None
    telling.machine(20, BROKEN, "Inactive")
    assert cleared(BROKEN, REFUSAL)(telling.chronicle) == at(20)


def test_a_machine_that_is_active_but_not_ready_has_not_come() -> None:
    telling = Telling()
    telling.machine(9, OFFICE, "Active", "Running", node="host")
    assert came(OFFICE)(telling.chronicle) is None

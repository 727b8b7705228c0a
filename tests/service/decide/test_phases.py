import pytest

from crds.status import MachinePhase
from service.decide.phases import contradiction, failure_is_certain, machine_failure, machine_phase, node_is_ours
from tests.service.decide.builders import (
    DISCONNECTED,
    FAILURE,
    PROVIDER_ID,
    machine,
    new_machine,
    node,
    running_status,
    running_world,
    status,
    world,
)


@pytest.mark.parametrize(
    ("seen", "phase"),
    [
        ({"machine": new_machine()}, MachinePhase.PROVISIONING),
        ({"machine": new_machine(provider_id=PROVIDER_ID)}, MachinePhase.PROVISIONED),
        ({"machine": machine()}, MachinePhase.RUNNING),
        ({"machine": machine(of={"deleting": True}, failure=FAILURE)}, MachinePhase.DELETING),
        ({"machine": new_machine(failure=FAILURE)}, MachinePhase.FAILED),
        ({"infrastructure": None}, MachinePhase.FAILED),
        ({"machine": None}, None),
        ({"machine": machine(of={"ours": False})}, None),
    ],
)
def test_the_phase_of_a_machine(seen, phase):
    assert machine_phase(running_world(**seen)) == phase


def test_a_ready_node_with_ready_infrastructure_outranks_a_sticky_failure():
    recovered = running_world(machine=machine(failure=FAILURE))
    assert machine_failure(recovered) is None
    assert machine_phase(recovered) is MachinePhase.RUNNING


@pytest.mark.parametrize(
    "seen",
    [
        {"node": node(ready=False)},
        {"node": None},
        {"machine": machine(failure=FAILURE, infrastructure_ready=False)},
    ],
)
def test_a_sticky_failure_counts_without_them(seen):
    assert machine_failure(running_world(**{"machine": machine(failure=FAILURE), **seen})) == FAILURE


def test_a_failure_is_over_when_its_machine_is_leaving():
    assert machine_failure(running_world(machine=machine(of={"deleting": True}, failure=FAILURE), node=None)) is None


def test_a_node_that_was_seen_ready_outranks_a_failure_though_its_cluster_is_out_of_reach():
    before = running_status(machine_phase=MachinePhase.FAILED)
    seen = running_world(machine=machine(failure=FAILURE), status=before, workload=DISCONNECTED)
    assert (machine_failure(seen), failure_is_certain(seen)) == (None, True)


UNSEEN = ({"workload": None, "node": None}, {"workload": DISCONNECTED, "node": None})


@pytest.mark.parametrize("unseen", UNSEEN)
@pytest.mark.parametrize(
    ("reported", "phase"), [(MachinePhase.RUNNING, MachinePhase.RUNNING), (MachinePhase.FAILED, MachinePhase.FAILED)]
)
def test_while_the_node_cannot_be_read_the_status_reports_the_sticky_failure(unseen, reported, phase):
    seen = running_world(machine=machine(failure=FAILURE), status=running_status(machine_phase=reported), **unseen)
    assert machine_phase(seen) is phase
    assert not failure_is_certain(seen)


@pytest.mark.parametrize("unseen", UNSEEN)
def test_what_the_status_says_of_an_earlier_machine_says_nothing_of_this_one(unseen):
    before = running_status(machine_phase=MachinePhase.FAILED)
    seen = running_world(machine=machine(of={"uid": "new"}, failure=FAILURE), status=before, **unseen)
    assert machine_failure(seen) is None


@pytest.mark.parametrize("unseen", UNSEEN)
@pytest.mark.parametrize("changes", [{"node_name": None}, {"infrastructure_ready": False}])
def test_a_failure_that_no_node_could_outrank_counts_although_none_can_be_seen(unseen, changes):
    seen = running_world(machine=machine(failure=FAILURE, **changes), status=status(), **unseen)
    assert machine_failure(seen) == FAILURE
    assert failure_is_certain(seen)


def test_infrastructure_that_is_gone_before_the_host_was_provisioned_is_no_failure():
    assert machine_failure(running_world(machine=new_machine(), infrastructure=None)) is None


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"provider_id": "remote://another"}, "ProviderIDChanged"),
        ({"provider_id": None}, "ProviderIDChanged"),
        ({"node_name": "node-8"}, "NodeRefChanged"),
        ({"node_name": None}, "NodeRefChanged"),
    ],
)
def test_provider_id_and_node_never_change_or_vanish_while_the_machine_lives(changed, reason):
    wrong = contradiction(running_world(machine=machine(**changed)))
    assert wrong is not None
    assert wrong.reason == reason


@pytest.mark.parametrize(("now", "reported"), [("another", "another"), (None, "nothing")])
def test_a_contradiction_names_what_was_and_what_is(now, reported):
    moved = contradiction(running_world(machine=machine(provider_id=now)))
    renamed = contradiction(running_world(machine=machine(node_name=now)))
    assert moved is not None
    assert renamed is not None
    assert moved.message == f"providerID changed from {PROVIDER_ID} to {reported}."
    assert renamed.message == f"The Node changed from node-7 to {reported}."


def test_another_machine_may_have_another_provider_id():
    new = machine(of={"uid": "new"}, provider_id="remote://another")
    assert contradiction(running_world(machine=new, node=node(provider_id="remote://another"))) is None


def test_a_node_of_the_same_name_on_another_host_is_a_contradiction():
    wrong = contradiction(running_world(node=node(provider_id="remote://another")))
    assert wrong is not None
    assert wrong.reason == "NodeOfAnotherHost"


def test_a_node_that_does_not_say_which_host_it_is_contradicts_nothing():
    assert contradiction(running_world(node=node(provider_id=None))) is None


@pytest.mark.parametrize("known", [status(), running_status(provider_id=None, node_ref=None)])
def test_what_was_not_known_before_is_no_contradiction(known):
    assert contradiction(running_world(status=known)) is None


@pytest.mark.parametrize(
    ("seen", "ours"),
    [
        ({}, True),
        ({"node": node(provider_id="remote://another")}, False),
        ({"node": node(provider_id=None)}, False),
        ({"machine": new_machine(), "status": status(), "node": node(provider_id=None)}, False),
        ({"machine": machine(provider_id=None), "status": status()}, False),
        ({"node": None}, False),
        ({"machine": None}, False),
        ({"machine": machine(provider_id="x"), "node": node(provider_id="x")}, False),
    ],
)
def test_a_node_is_written_to_only_if_its_provider_id_is_the_machines(seen, ours):
    assert node_is_ours(running_world(**seen)) is ours


def test_without_a_machine_there_is_nothing_to_say():
    assert (machine_phase(world()), machine_failure(world()), contradiction(world())) == (None, None, None)

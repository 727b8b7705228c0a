from datetime import timedelta

import pytest

from service.decide import contracts
from service.decide.reasons import ProviderReason, Reason
from service.decide.world import Contract, Problem, Role
from tests.service.decide.builders import child

V1, V2 = Contract.V1BETA1, Contract.V1BETA2
CHILD = {
    "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
    "kind": "RemoteMachine",
    "metadata": {"name": "desk-infra"},
}


def read(contract: Contract, *, deleting: bool = False, **raw):
    return contracts.read_machine(contract, child(Role.MACHINE, deleting=deleting), raw)


def test_v1beta1_refers_to_children_by_version_and_namespace():
    assert contracts.reference(V1, CHILD, "team") == {
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
        "kind": "RemoteMachine",
        "name": "desk-infra",
        "namespace": "team",
    }


def test_v1beta2_refers_to_children_by_group_alone():
    assert contracts.reference(V2, CHILD, "team") == {
        "apiGroup": "infrastructure.cluster.x-k8s.io",
        "kind": "RemoteMachine",
        "name": "desk-infra",
    }


@pytest.mark.parametrize("contract", list(Contract))
@pytest.mark.parametrize(
    ("drain", "detach"), [(timedelta(minutes=5), timedelta(hours=24)), (timedelta(seconds=1), timedelta(seconds=59))]
)
def test_timeouts_that_are_written_are_read_back_the_same(contract, drain, detach):
    machine = read(contract, spec=contracts.timeouts(contract, drain, detach))
    assert (machine.drain_seconds, machine.detach_seconds) == (drain.total_seconds(), detach.total_seconds())


@pytest.mark.parametrize("contract", list(Contract))
@pytest.mark.parametrize("span", [timedelta(0), timedelta(seconds=-5), timedelta(milliseconds=900)])
def test_a_timeout_is_never_0_which_would_mean_for_ever(contract, span):
    machine = read(contract, spec=contracts.timeouts(contract, span, span))
    assert (machine.drain_seconds, machine.detach_seconds) == (1, 1)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("5m0s", 300), ("1h0m0s", 3600), ("90s", 90), ("0s", 0), ("1.5s", None), ("100ms", None), ("5", None), ("", None)],
)
def test_go_durations_are_read_in_whole_seconds(text, seconds):
    assert read(V1, spec={"nodeDrainTimeout": text}).drain_seconds == seconds


@pytest.mark.parametrize("contract", list(Contract))
def test_an_empty_machine_is_read_without_complaint(contract):
    machine = read(contract)
    assert machine == read(contract, spec=None, status=None)
    assert (machine.provider_id, machine.node_name, machine.failure) == (None, None, None)
    assert (machine.drain_seconds, machine.detach_seconds) == (None, None)
    assert not machine.remediation_requested


@pytest.mark.parametrize("contract", list(Contract))
def test_provider_id_and_node_are_read_from_the_same_place_in_both(contract):
    machine = read(contract, spec={"providerID": "remote://a"}, status={"nodeRef": {"name": "node-7"}})
    assert (machine.provider_id, machine.node_name) == ("remote://a", "node-7")


def test_v1beta1_reports_failures_in_its_status():
    machine = read(V1, status={"failureReason": "CreateError", "failureMessage": "no quota"})
    assert machine.failure == Problem(ProviderReason("CreateError"), "no quota")


def test_v1beta2_reports_failures_under_deprecated():
    failed = {"failureReason": "CreateError", "failureMessage": "no quota"}
    assert read(V2, status={"deprecated": {"v1beta1": failed}}).failure == Problem(
        ProviderReason("CreateError"), "no quota"
    )
    assert read(V2, status=failed).failure is None


@pytest.mark.parametrize(
    ("status", "failure"),
    [
        ({"failureMessage": "it burns"}, Problem(Reason.MACHINE_FAILED, "it burns")),
        ({"failureReason": "UpdateError"}, Problem(ProviderReason("UpdateError"), "UpdateError")),
        ({"failureReason": "it burns, really"}, Problem(Reason.MACHINE_FAILED, "it burns, really")),
    ],
)
def test_a_failure_always_has_a_reason_of_one_word_and_a_message(status, failure):
    assert read(V1, status=status).failure == failure


def test_v1beta1_says_in_a_field_whether_infrastructure_is_ready():
    assert read(V1, status={"infrastructureReady": True}).infrastructure_ready
    assert not read(V1, status={}).infrastructure_ready


def test_v1beta2_says_in_a_condition_whether_infrastructure_is_ready():
    ready = {"conditions": [{"type": "InfrastructureReady", "status": "True"}]}
    assert read(V2, status=ready).infrastructure_ready
    assert not read(V2, status={"infrastructureReady": True}).infrastructure_ready


OTHER = {"type": "NodeReady", "status": "True"}


def health(succeeded, remediated):
    """The conditions of a Machine that a MachineHealthCheck looks after."""
    found = {"HealthCheckSucceeded": succeeded, "OwnerRemediated": remediated}
    return [OTHER, *({"type": kind, "status": status} for kind, status in found.items() if status)]


@pytest.mark.parametrize("contract", list(Contract))
@pytest.mark.parametrize("remediated", ["False", "True", "Unknown", None])
@pytest.mark.parametrize("succeeded", ["False", "True", "Unknown", None])
def test_a_health_check_asks_for_remediation_by_two_conditions(contract, succeeded, remediated):
    machine = read(contract, status={"conditions": health(succeeded, remediated)})
    assert machine.remediation_requested is ((succeeded, remediated) == ("False", "False"))
    stale = (succeeded, remediated) == ("True", "False")
    assert machine.unmarked_status == ({"conditions": health(succeeded, None)} if stale else None)


def test_a_stale_mark_is_cleared_in_the_conditions_of_both_contracts():
    marked, kept = health("True", "False"), health("True", None)
    older = {"deprecated": {"v1beta1": {"conditions": marked, "failureReason": "x"}}}
    assert read(V2, status={"conditions": marked, **older}).unmarked_status == {
        "conditions": kept,
        "deprecated": {"v1beta1": {"conditions": kept}},
    }
    newer = {"v1beta2": {"conditions": marked}}
    assert read(V1, status={"conditions": marked, **newer}).unmarked_status == {
        "conditions": kept,
        "v1beta2": {"conditions": kept},
    }
    assert read(V2, status=older).unmarked_status == {"deprecated": {"v1beta1": {"conditions": kept}}}


def test_a_mark_that_counts_is_not_cleared_anywhere():
    older = {"deprecated": {"v1beta1": {"conditions": health("True", "False")}}}
    assert read(V2, status={"conditions": health("False", "False"), **older}).unmarked_status is None


@pytest.mark.parametrize("contract", list(Contract))
def test_what_capi_waits_for_is_quoted(contract):
    conditions = [
        {"type": "Ready", "status": "False", "message": "all of it"},
        {"type": "InfrastructureReady", "status": "False", "message": "host is off"},
    ]
    assert read(contract, status={"conditions": conditions}).waiting_for == "InfrastructureReady: host is off"


NO_NODE = "Waiting for a Node with spec.providerID remote://192.0.2.7 to exist"


def test_where_v1beta1_says_little_the_words_of_v1beta2_are_quoted():
    old = {"type": "NodeHealthy", "status": "False", "reason": "NodeProvisioning"}
    new = {"type": "NodeReady", "status": "Unknown", "reason": "NodeInspectionFailed", "message": NO_NODE}
    assert read(V1, status={"conditions": [old]}).waiting_for == "NodeHealthy: NodeProvisioning"
    both = {"conditions": [old], "v1beta2": {"conditions": [new]}}
    assert read(V1, status=both).waiting_for == f"NodeReady: {NO_NODE}"


HOOK = "Waiting for pre-drain hooks to succeed (hooks: pre-drain.delete.hook.machine.cluster.x-k8s.io/backup)"


def deleting(reason, message):
    return {"conditions": [{"type": "Deleting", "status": "True", "reason": reason, "message": message}]}


def undone(kind, **said):
    return {"conditions": [{"type": kind, "status": "False", **said}]}


@pytest.mark.parametrize(
    ("contract", "status", "said"),
    [
        (V2, deleting("WaitingForPreDrainHook", HOOK), HOOK),
        (V1, {"v1beta2": deleting("WaitingForPreDrainHook", HOOK)}, HOOK),
        (V2, deleting("WaitingForInfrastructureDeletion", "Waiting for RemoteMachine to be deleted"), None),
        (V1, undone("DrainingSucceeded", message="3 pods are left"), "DrainingSucceeded: 3 pods are left"),
        (V1, undone("PreDrainDeleteHookSucceeded", reason="Waiting"), "PreDrainDeleteHookSucceeded: Waiting"),
    ],
    ids=["a hook", "a hook, in v1beta1", "the provider, as always", "pods, in older words", "a hook, in older words"],
)
def test_what_holds_up_a_deletion_is_quoted_while_there_is_one(contract, status, said):
    assert read(contract, status=status, deleting=True).waiting_for == said
    assert read(contract, status=status).waiting_for is None

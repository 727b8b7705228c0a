from dataclasses import replace

import pytest

from crds import names
from service.decide import contracts, manifests
from service.decide.plan import Patch
from service.decide.world import Contract, Owner, Role
from tests.service.decide.builders import (
    CLUSTER_UID,
    GRACE,
    SPEC,
    UID,
    child,
    machine,
    running_world,
    spec,
    world,
)

OWNED = {
    "cluster.x-k8s.io/cluster-name": "prod",
    "5spot.finos.org/scheduled-machine": "desk",
    "app.kubernetes.io/managed-by": "5spot",
}
SELF = {"apiVersion": "5spot.finos.org/v1alpha1", "kind": "ScheduledMachine", "name": "desk", "uid": UID}


def made(contract: Contract = Contract.V1BETA2, **changes):
    return {one.role: one.manifest for one in manifests.creations(spec(**changes), world(contract=contract))}


def repair(seen=None, **changes) -> Patch:
    (patch,) = manifests.repairs(spec(**changes), seen or running_world())
    return patch


# Creation


@pytest.mark.parametrize(
    ("role", "name"),
    [(Role.BOOTSTRAP, "desk-bootstrap"), (Role.INFRASTRUCTURE, "desk-infra"), (Role.MACHINE, "desk-machine")],
)
def test_names_labels_and_namespace(role, name):
    metadata = made()[role]["metadata"]
    assert (metadata["name"], metadata["namespace"]) == (name, "team")
    assert metadata["labels"] == OWNED


@pytest.mark.parametrize("role", [Role.BOOTSTRAP, Role.INFRASTRUCTURE])
def test_bootstrap_and_infrastructure_have_us_as_plain_owner(role):
    assert made()[role]["metadata"]["ownerReferences"] == [SELF]


@pytest.mark.parametrize("contract", list(Contract))
def test_the_machine_has_two_owners_from_its_creation(contract):
    owners = made(contract)[Role.MACHINE]["metadata"]["ownerReferences"]
    api_version = f"cluster.x-k8s.io/{contract}"
    assert owners == [
        {**SELF, "controller": True},
        {"apiVersion": api_version, "kind": "Cluster", "name": "prod", "uid": CLUSTER_UID},
    ]


def test_provider_specs_are_passed_through_unchanged():
    assert made()[Role.BOOTSTRAP]["spec"] == SPEC["bootstrapSpec"]["spec"]
    assert made()[Role.INFRASTRUCTURE]["spec"] == SPEC["infrastructureSpec"]["spec"]
    assert made()[Role.INFRASTRUCTURE]["kind"] == "RemoteMachine"


@pytest.mark.parametrize("contract", list(Contract))
def test_the_machine_points_at_the_other_two_in_its_contract(contract):
    body = made(contract)[Role.MACHINE]
    refs = body["spec"]["bootstrap"]["configRef"], body["spec"]["infrastructureRef"]
    assert body["apiVersion"] == f"cluster.x-k8s.io/{contract}"
    assert [ref["name"] for ref in refs] == ["desk-bootstrap", "desk-infra"]
    assert all(("apiGroup" in ref) == (contract is Contract.V1BETA2) for ref in refs)
    assert body["spec"]["clusterName"] == "prod"


def test_capi_has_limits_from_the_start():
    deletion = made(nodeDrainTimeout="2m")[Role.MACHINE]["spec"]["deletion"]
    assert deletion == {
        "nodeDrainTimeoutSeconds": 120,
        "nodeVolumeDetachTimeoutSeconds": 120,
        "nodeDeletionTimeoutSeconds": 10,
    }


def test_the_template_goes_onto_the_machine_only_and_what_we_set_wins():
    template = {"labels": {"rack": "4", names.LABEL_MANAGED_BY: "helm"}, "annotations": {"note": "x"}}
    bodies = made(machineTemplate=template)
    assert bodies[Role.MACHINE]["metadata"]["labels"] == {**OWNED, "rack": "4"}
    assert bodies[Role.MACHINE]["metadata"]["annotations"]["note"] == "x"
    assert "rack" not in bodies[Role.BOOTSTRAP]["metadata"]["labels"]


def test_the_hash_depends_on_the_provider_specs_a_machine_was_made_from():
    edited = {"bootstrapSpec": {**SPEC["bootstrapSpec"], "spec": {"version": "v2"}}}
    noted = made()[Role.MACHINE]["metadata"]["annotations"][names.ANNOTATION_SPEC_HASH]
    assert noted == manifests.spec_hash(spec()) == manifests.spec_hash(spec(priority=3, nodeDrainTimeout="1m"))
    assert noted != manifests.spec_hash(spec(**edited))


VERSIONED = {"version": "v1.34.2", "failureDomain": "eu-west-1a"}


@pytest.mark.parametrize("contract", list(Contract))
def test_version_and_failure_domain_go_into_the_machines_spec_unchanged_in_both_contracts(contract):
    made_spec = made(contract, machineTemplate=VERSIONED)[Role.MACHINE]["spec"]
    assert {name: made_spec[name] for name in VERSIONED} == VERSIONED
    assert not VERSIONED.keys() & made(contract, machineTemplate={"labels": {"a": "b"}})[Role.MACHINE]["spec"].keys()
    assert not VERSIONED.keys() & made(contract)[Role.MACHINE]["spec"].keys()


@pytest.mark.parametrize("name", VERSIONED)
def test_the_hash_depends_on_the_version_and_failure_domain_a_machine_was_made_with(name):
    hashes = {manifests.spec_hash(spec(machineTemplate=each)) for each in (None, {name: "1.2.3"}, {name: "1.2.4"})}
    assert len(hashes) == 3
    assert manifests.spec_hash(spec(machineTemplate={name: None, "labels": {"a": "b"}})) == manifests.spec_hash(spec())


def test_a_machine_of_an_operator_that_knew_neither_version_nor_failure_domain_is_not_outdated():
    assert manifests.spec_hash(spec()) == "bba7914e8b0813b1731d3063964d9d9c"


@pytest.mark.parametrize("role", [Role.BOOTSTRAP, Role.INFRASTRUCTURE])
def test_an_empty_provider_spec_is_sent_as_none_and_the_object_counts_as_made_from_it(role):
    field = "bootstrapSpec" if role is Role.BOOTSTRAP else "infrastructureSpec"
    wanted = spec(**{field: {**SPEC[field], "spec": {}}})
    (body,) = (one.manifest for one in manifests.creations(wanted, world()) if one.role is role)
    assert "spec" not in body

    for stored in ({}, {"format": "cloud-config"}):
        seen = replace(child(role, annotations=body["metadata"]["annotations"]), spec=stored)
        assert manifests.made_from(seen, body)


# Objects from before an edit

KIND = {"bootstrapSpec": {**SPEC["bootstrapSpec"], "kind": "KubeadmConfig"}}
GROUP = {"bootstrapSpec": {**SPEC["bootstrapSpec"], "apiVersion": "k0smotron.io/v1beta1"}}
VERSION = {
    "infrastructureSpec": {**SPEC["infrastructureSpec"], "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2"}
}
HOST = {"infrastructureSpec": {**SPEC["infrastructureSpec"], "spec": {"address": "192.0.2.8"}}}


@pytest.mark.parametrize(
    ("edit", "roles"),
    [
        ({}, []),
        ({"priority": 3, "machineTemplate": {"labels": {"rack": "4"}}}, []),
        (KIND, [Role.BOOTSTRAP]),
        (GROUP, [Role.BOOTSTRAP]),
        (HOST, [Role.INFRASTRUCTURE]),
        ({**KIND, **HOST}, [Role.BOOTSTRAP, Role.INFRASTRUCTURE]),
    ],
)
def test_an_object_records_whether_it_was_made_from_the_spec_of_its_role(edit, roles):
    assert [one.role for one in manifests.outdated(spec(**edit), running_world())] == roles


@pytest.mark.parametrize(("edit", "roles"), [(HOST, []), (VERSION, []), (KIND, [Role.BOOTSTRAP])])
def test_an_object_without_a_recorded_spec_is_judged_by_its_kind(edit, roles):
    seen = running_world(**{str(role): child(role, annotations={}) for role in (Role.BOOTSTRAP, Role.INFRASTRUCTURE)})
    assert [one.role for one in manifests.outdated(spec(**edit), seen)] == roles


def test_objects_of_other_owners_are_never_outdated():
    assert manifests.outdated(spec(**KIND), running_world(bootstrap=child(Role.BOOTSTRAP, ours=False))) == ()


@pytest.mark.parametrize("role", [Role.BOOTSTRAP, Role.INFRASTRUCTURE])
def test_an_object_without_a_note_of_its_spec_is_not_given_one_later(role):
    assert manifests.repairs(spec(), running_world(**{str(role): child(role, annotations={})})) == ()


# Repair


@pytest.mark.parametrize("contract", list(Contract))
def test_what_was_just_created_needs_no_repair(contract):
    assert manifests.repairs(spec(), running_world(contract=contract)) == ()


@pytest.mark.parametrize("role", list(Role))
@pytest.mark.parametrize("labels", [{}, {**OWNED, names.LABEL_OWNER: "me"}])
def test_owned_labels_that_a_user_changed_are_restored(role, labels):
    changed = {"machine": machine(of={"labels": labels})}
    seen = running_world(**(changed if role is Role.MACHINE else {str(role): child(role, labels=labels)}))
    patch = repair(seen)
    wrong = {key: value for key, value in OWNED.items() if labels.get(key) != value}
    assert (patch.role, patch.body) == (role, {"metadata": {"labels": wrong}})


def test_labels_and_annotations_of_others_are_left_alone():
    seen = running_world(machine=machine(of={"labels": {**OWNED, "theirs": "x"}}))
    assert manifests.repairs(spec(), seen) == ()


@pytest.mark.parametrize(("drain", "detach"), [(None, None), (0, 300), (300, 7)])
@pytest.mark.parametrize("contract", list(Contract))
def test_timeouts_that_a_user_changed_are_restored(drain, detach, contract):
    seen = running_world(contract=contract, machine=machine(drain_seconds=drain, detach_seconds=detach))
    assert repair(seen).body == {"spec": contracts.timeouts(contract, GRACE, GRACE)}


EXCLUSIONS = (names.ANNOTATION_EXCLUDE_DRAIN, names.ANNOTATION_EXCLUDE_VOLUME_DETACH)


def test_a_machine_that_is_wanted_after_all_is_drained_by_capi_again():
    excluded = {**child(Role.MACHINE).annotations, **dict.fromkeys(EXCLUSIONS, "5spot")}
    patch = repair(running_world(machine=machine(of={"annotations": excluded})))
    assert patch.body == {"metadata": {"annotations": dict.fromkeys(EXCLUSIONS)}}


def test_a_users_annotation_against_draining_is_left_alone():
    excluded = {**child(Role.MACHINE).annotations, **dict.fromkeys(EXCLUSIONS, "true")}
    assert manifests.repairs(spec(), running_world(machine=machine(of={"annotations": excluded}))) == ()


def owners(*kept: tuple[str, bool]) -> tuple[Owner, ...]:
    return tuple(Owner(uid, controller, {"uid": uid, "controller": controller}) for uid, controller in kept)


@pytest.mark.parametrize(
    "kept",
    [
        pytest.param((), id="none left"),
        pytest.param(((UID, True),), id="Cluster missing"),
        pytest.param(((CLUSTER_UID, False),), id="we are missing"),
        pytest.param(((UID, False), (CLUSTER_UID, False)), id="not the controller any more"),
    ],
)
def test_owner_references_of_the_machine_that_a_user_changed_are_restored(kept):
    patch = repair(running_world(machine=machine(of={"owners": owners(*kept), "resource_version": "7"})))
    written = patch.body["metadata"]["ownerReferences"]
    assert [(one["uid"], one.get("controller", False)) for one in written] == [(UID, True), (CLUSTER_UID, False)]
    assert patch.resource_version == "7"


def test_owners_of_others_are_kept():
    patch = repair(running_world(machine=machine(of={"owners": owners(("theirs", False))})))
    assert patch.body["metadata"]["ownerReferences"][-1] == {"uid": "theirs", "controller": False}


def test_another_controller_of_the_machine_is_not_fought():
    seen = running_world(machine=machine(of={"owners": owners(("theirs", True))}))
    assert manifests.repairs(spec(), seen) == ()


@pytest.mark.parametrize("kept", [(), (("machine", True),), ((UID, True),)])
def test_we_stay_a_plain_owner_of_bootstrap_and_infrastructure_beside_capi(kept):
    seen = running_world(infrastructure=child(Role.INFRASTRUCTURE, owners=owners(*kept)))
    patch = repair(seen)
    others = [{"uid": uid, "controller": controller} for uid, controller in kept if uid != UID]
    assert patch.body["metadata"]["ownerReferences"] == [*others, SELF]


@pytest.mark.parametrize("role", [Role.BOOTSTRAP, Role.INFRASTRUCTURE])
def test_that_capi_controls_bootstrap_and_infrastructure_is_as_it_should_be(role):
    controlled = child(role, owners=owners((UID, False), ("uid-of-the-machine", True)))
    assert manifests.repairs(spec(), running_world(**{str(role): controlled})) == ()


@pytest.mark.parametrize("role", list(Role))
@pytest.mark.parametrize("state", [{"ours": False}, {"deleting": True}])
def test_what_is_foreign_or_leaving_is_never_patched(role, state):
    broken = {**state, "labels": {}}
    seen = running_world(
        **({"machine": machine(of=broken)} if role is Role.MACHINE else {str(role): child(role, **broken)})
    )
    assert manifests.repairs(spec(), seen) == ()


def test_a_patch_says_what_was_off_and_whose():
    patch = repair(running_world(machine=machine(of={"labels": {}}, drain_seconds=0)))
    assert (patch.role, patch.name, patch.uid) == (Role.MACHINE, "desk-machine", "uid-of-desk-machine")
    assert patch.why == "labels, timeouts"

import pytest

from crds import names
from service.decide.adoption import OURS, examine
from service.decide.world import Role
from tests.service.decide import builders

ME = builders.world().me
LABELS = {names.LABEL_OWNER: ME.name, names.LABEL_MANAGED_BY: names.MANAGED_BY}
STALE = {"apiVersion": names.API_VERSION, "kind": names.KIND, "name": ME.name, "uid": "gone"}
CLUSTER = {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "demo", "uid": "cluster"}
MACHINE = {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "uid": "m", "controller": True}


def child(*owners, labels=LABELS, **metadata):
    return {"metadata": {"uid": "c", "resourceVersion": "7", "labels": labels, "ownerReferences": owners, **metadata}}


def adopted(verdict):
    return [
        (owner["kind"], owner["uid"], owner.get("controller")) for owner in verdict.patch["metadata"]["ownerReferences"]
    ]


@pytest.mark.parametrize("owners", [(), (STALE,)], ids=["as Velero restores it", "with the uid that was"])
def test_a_restored_object_becomes_ours(owners):
    verdict = examine(Role.MACHINE, child(*owners, CLUSTER), ME, {ME.uid})
    assert adopted(verdict) == [("Cluster", "cluster", None), (names.KIND, ME.uid, True)]
    assert verdict.patch is not None
    assert verdict.patch["metadata"]["resourceVersion"] == "7"
    assert verdict.patch["metadata"]["uid"] == "c"


def test_a_machine_that_cluster_api_made_the_controller_of_its_parts_stays_it():
    machine = {**MACHINE, "name": f"{ME.name}-machine"}
    verdict = examine(Role.INFRASTRUCTURE, child(machine), ME, {ME.uid})
    assert adopted(verdict) == [("Machine", "m", True), (names.KIND, ME.uid, None)]


def test_what_is_ours_already_needs_nothing():
    assert examine(Role.MACHINE, child({**STALE, "uid": ME.uid}, labels={}), ME, {ME.uid}) == OURS


@pytest.mark.parametrize(
    ("role", "found", "why"),
    [
        (Role.MACHINE, child(labels={}), "another program or person made it"),
        (Role.MACHINE, child(labels={**LABELS, names.LABEL_OWNER: "other"}), names.LABEL_OWNER),
        (Role.MACHINE, child(labels={**LABELS, names.LABEL_MANAGED_BY: "helm"}), names.LABEL_MANAGED_BY),
        (Role.MACHINE, child(STALE, deletionTimestamp="2026-03-06T09:00:00Z"), "being deleted"),
        (Role.MACHINE, child({**STALE, "name": "other"}), "belongs to ScheduledMachine other"),
        (Role.MACHINE, child({**STALE, "uid": "alive"}), "belongs to ScheduledMachine"),
        (Role.MACHINE, child({**MACHINE, "kind": "MachineSet", "name": "set"}), "MachineSet set controls it"),
        (Role.BOOTSTRAP, child({**MACHINE, "name": "other-machine"}), "Machine other-machine controls it"),
        (Role.MACHINE, child({**MACHINE, "name": f"{ME.name}-machine"}), "controls it"),
    ],
)
def test_what_may_be_anothers_is_refused_with_the_reason(role, found, why):
    verdict = examine(role, found, ME, {ME.uid, "alive"})
    assert verdict.patch is None
    assert why in verdict.refusal

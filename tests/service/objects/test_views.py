from datetime import UTC, datetime

import pytest

from crds import names
from crds.scheduledmachine import Metadata
from crds.status import ObjectReference, ScheduledMachineStatus
from service.clock import SystemClock
from service.decide.world import Identity, Role, Taint
from service.kube.errors import Unavailable
from service.objects import views

ME = Identity("team", "desk", "my-uid", 1, None, finalized=True, paused=False)
KIND = ("cluster.x-k8s.io/v1beta2", "Machine")


def stored(**metadata):
    return {"metadata": {"namespace": "team", "name": "desk-machine", "uid": "its-uid", **metadata}}


def recorded(uid):
    reference = ObjectReference(api_version=KIND[0], kind=KIND[1], name="desk-machine", namespace="team", uid=uid)
    return ScheduledMachineStatus(machine_ref=reference)


def test_the_identity_says_whether_we_are_asked_before_it_goes_and_whether_it_is_paused():
    me = views.identity(
        Metadata.read(
            {
                "namespace": "team",
                "name": "desk",
                "uid": "my-uid",
                "generation": 7,
                "finalizers": ["other", names.FINALIZER],
                "annotations": {names.ANNOTATION_PAUSED: ""},
                "deletionTimestamp": "2026-03-06T18:00:00Z",
            }
        ),
        SystemClock(),
    )
    assert (me.finalized, me.paused, me.generation) == (True, True, 7)
    assert me.deleting_since == datetime(2026, 3, 6, 18, tzinfo=UTC)


@pytest.mark.parametrize(
    ("raw", "status", "ours"),
    [
        (stored(), ScheduledMachineStatus(), False),
        (stored(ownerReferences=[{"uid": "my-uid"}]), ScheduledMachineStatus(), True),
        (stored(ownerReferences=[{"uid": "another"}, {"kind": "NoUid"}]), ScheduledMachineStatus(), False),
        (stored(), recorded("its-uid"), True),
        (stored(), recorded("of-the-one-before"), False),
    ],
)
def test_a_child_is_ours_if_it_carries_our_uid_or_stands_in_our_status(raw, status, ours):
    assert views.child(Role.MACHINE, KIND, raw, ME, status).ours is ours


@pytest.mark.parametrize("role", list(Role))
def test_each_role_has_its_own_place_in_our_status(role):
    reference = recorded("its-uid").machine_ref
    status = ScheduledMachineStatus(**{f"{role}_ref": reference})
    assert views.child(role, KIND, stored(), ME, status).ours


def test_what_stands_in_the_status_for_one_role_says_nothing_of_another():
    assert not views.child(Role.BOOTSTRAP, KIND, stored(), ME, recorded("its-uid")).ours


def test_a_child_that_carries_nothing_but_its_name_can_be_read():
    child = views.child(Role.MACHINE, KIND, stored(), ME, ScheduledMachineStatus())
    assert (child.labels, child.annotations, child.owners, child.spec, child.deleting) == ({}, {}, (), {}, False)


def test_what_a_child_carries_is_read():
    raw = stored(
        labels={"a": "b"}, annotations={"c": "d"}, resourceVersion="7", deletionTimestamp="2026-03-06T18:00:00Z"
    )
    child = views.child(Role.MACHINE, KIND, {**raw, "spec": {"e": 1}}, ME, ScheduledMachineStatus())
    assert (child.labels, child.annotations, child.spec) == ({"a": "b"}, {"c": "d"}, {"e": 1})
    assert (child.resource_version, child.deleting) == ("7", True)


@pytest.mark.parametrize(
    ("raw", "paused"),
    [
        ({"metadata": {"name": "prod", "uid": "u"}}, False),
        ({"metadata": {"name": "prod", "uid": "u"}, "spec": {"paused": True}}, True),
        ({"metadata": {"name": "prod", "uid": "u", "annotations": {names.ANNOTATION_PAUSED: "true"}}}, True),
    ],
)
def test_a_cluster_is_paused_by_its_spec_or_by_an_annotation(raw, paused):
    assert views.cluster(raw).paused is paused


@pytest.mark.parametrize(("more", "deleting"), [({}, False), ({"deletionTimestamp": "2026-03-06T18:00:00Z"}, True)])
def test_a_cluster_is_being_deleted_from_when_that_was_asked_for(more, deleting):
    assert views.cluster({"metadata": {"name": "prod", "uid": "u", **more}}).deleting is deleting


def node(spec=None, conditions=(), **more):
    metadata = {"name": "node-7", "uid": "u", "resourceVersion": "5", **more}
    return views.node({"metadata": metadata, "spec": spec or {}, "status": {"conditions": list(conditions)}})


@pytest.mark.parametrize(
    ("conditions", "ready"),
    [
        ((), False),
        (({"type": "Ready", "status": "True"},), True),
        (({"type": "Ready", "status": "Unknown"},), False),
        (({"type": "DiskPressure", "status": "True"},), False),
    ],
)
def test_a_node_is_ready_only_if_it_says_so(conditions, ready):
    assert node(conditions=conditions).ready is ready


def test_what_a_node_carries_is_read():
    seen = node({"providerID": "remote://7"}, labels={"a": "b"}, annotations={"c": "d"})
    assert (seen.provider_id, seen.labels, seen.annotations) == ("remote://7", {"a": "b"}, {"c": "d"})


def test_an_empty_provider_id_is_none():
    assert node({"providerID": ""}).provider_id is None


def test_a_taint_keeps_the_time_at_which_it_was_added():
    added = "2026-01-01T00:00:00Z"
    first = {"key": "a", "value": "v", "effect": "NoExecute", "timeAdded": added}
    seen = node({"taints": [first, {"key": "b", "effect": "x"}]})
    assert seen.taints == (Taint("a", "NoExecute", "v"), Taint("b", "x"))
    assert [taint.added for taint in seen.taints] == [added, ""]


def pod(status=None, **metadata):
    return views.pod({"metadata": {"namespace": "default", "name": "p", "uid": "u", **metadata}, "status": status})


@pytest.mark.parametrize(("phase", "finished"), [("Succeeded", True), ("Failed", True), ("Running", False)])
def test_a_pod_is_finished_when_its_containers_are(phase, finished):
    assert pod({"phase": phase}).finished is finished


def test_a_pod_that_says_little_has_to_leave_like_any_other():
    seen = pod()
    assert (seen.controller_kind, seen.mirror, seen.finished, seen.deleting) == (None, False, False, False)


@pytest.mark.parametrize(
    "nonsense",
    [{"name": ".."}, {"name": ""}, {"namespace": "."}, {"uid": 7}, {"name": "x" * 254}, {"name": 7}, {"name": None}],
)
def test_what_cannot_be_a_pod_is_its_servers_failure(nonsense):
    listed = [{"metadata": {"namespace": "default", "name": "p", "uid": "u", **nonsense}}]
    with pytest.raises(Unavailable, match="a pod"):
        views.pods(listed)


def test_only_the_controller_among_the_owners_of_a_pod_counts():
    owners = [{"kind": "Job", "uid": "a"}, {"kind": "DaemonSet", "uid": "b", "controller": True}]
    assert pod(ownerReferences=owners).controller_kind == "DaemonSet"
    assert pod(ownerReferences=owners[:1]).controller_kind is None


def test_mirror_pods_are_known_by_their_annotation():
    assert pod(annotations={"kubernetes.io/config.mirror": "hash"}).mirror

import pytest

from service.decide.drain import drain
from tests.service.decide.builders import pod


@pytest.mark.parametrize(
    ("kind", "stays"),
    [
        ({"controller_kind": "DaemonSet"}, True),
        ({"mirror": True}, True),
        ({"finished": True}, True),
        ({"controller_kind": "ReplicaSet"}, False),
        ({"controller_kind": "StatefulSet"}, False),
        ({"controller_kind": "Job"}, False),
        ({"controller_kind": None}, False),
    ],
)
def test_daemonset_mirror_and_finished_pods_stay_and_all_others_must_leave(kind, stays):
    state = drain([pod(**kind)])
    assert state.done is stays
    assert (state.to_evict == ()) is stays


def test_a_pod_that_is_leaving_is_waited_for_but_not_asked_again():
    going, there = pod("going", leaving=True), pod("there")
    state = drain([going, there])
    assert (state.to_evict, state.going, state.remaining, state.done) == ((there,), (going,), 2, False)


def test_an_empty_node_is_drained():
    assert drain([]).done

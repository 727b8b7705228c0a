import pytest

from service.kube.connection import slim_node
from service.kube.errors import Unavailable
from service.runtime.cache import Cache
from service.runtime.key import Key

NODE = {
    "metadata": {"name": "node-7", "uid": "u", "resourceVersion": "1", "labels": {"a": "b"}, "managedFields": [{}]},
    "spec": {"providerID": "remote://192.0.2.7", "taints": [{"key": "a", "effect": "NoSchedule"}]},
    "status": {
        "conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-03-02T10:00:00Z"}],
        "images": [{"names": ["registry.example/app"]}],
    },
}


def taken_in(**changes):
    """A Node as the cache keeps it."""
    cache = Cache(slim=slim_node)
    cache.upsert({**NODE, **changes})
    return cache.get(Key("", "node-7"))


def test_of_a_node_only_that_is_kept_which_decisions_look_at():
    kept = taken_in()
    assert kept["spec"] == NODE["spec"]
    assert kept["metadata"]["labels"] == {"a": "b"}
    assert "managedFields" not in kept["metadata"]
    assert kept["status"] == {"conditions": [{"type": "Ready", "status": "True"}], "nodeInfo": {"machineID": ""}}


def test_a_node_that_says_next_to_nothing_is_a_node():
    assert taken_in(spec=None, status=None)["spec"] == {}


@pytest.mark.parametrize(
    "changes",
    [
        {"spec": "text"},
        {"spec": {"taints": "text"}},
        {"spec": {"taints": ["text"]}},
        {"spec": {"taints": [{"key": ["a"]}]}},
        {"spec": {"providerID": 5}},
        {"status": "text"},
        {"status": {"conditions": [5]}},
        {"metadata": {**NODE["metadata"], "annotations": "text"}},
        {"metadata": {**NODE["metadata"], "annotations": {"a": 5}}},
        {"metadata": {**NODE["metadata"], "labels": {"a": {}}}},
    ],
)
def test_what_is_no_node_makes_its_cluster_one_that_does_not_answer(changes):
    with pytest.raises(Unavailable):
        taken_in(**changes)

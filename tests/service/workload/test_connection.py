"""What is kept of a Node, and that it is one."""

import pytest

from service.kube.errors import Unavailable
from service.runtime.cache import Cache
from service.workload.connection import slim_node


def node(**parts):
    metadata = {"name": "n", "uid": "u", "resourceVersion": "1", "managedFields": [{}], **parts.pop("metadata", {})}
    return {"metadata": metadata, **parts}


def test_decisions_see_no_heartbeats_and_no_field_managers():
    ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": "now"}
    spec = {"providerID": "a://b", "taints": [{"key": "k", "effect": "NoSchedule"}]}
    kept = slim_node(node(spec=spec, status={"conditions": [ready], "images": [{}]}))
    assert kept == {
        "metadata": {"name": "n", "uid": "u", "resourceVersion": "1"},
        "spec": spec,
        "status": {"conditions": [{"type": "Ready", "status": "True"}], "nodeInfo": {"machineID": ""}},
    }


def test_a_node_that_says_next_to_nothing_is_a_node():
    assert slim_node(node(spec=None, status=None))["spec"] == {}


@pytest.mark.parametrize(
    "nonsense",
    [
        {"spec": "x"},
        {"spec": {"taints": "x"}},
        {"spec": {"taints": [1]}},
        {"spec": {"taints": [{"key": ["k"]}]}},
        {"spec": {"providerID": 7}},
        {"metadata": {"labels": ["x"]}},
        {"metadata": {"annotations": {"a": {}}}},
        {"status": "x"},
        {"status": {"conditions": [5]}},
        {"status": {"conditions": [{"type": {}}]}},
        {"status": {"nodeInfo": {"machineID": []}}},
    ],
)
def test_an_invalid_node_makes_its_server_unavailable_and_reaches_no_decision(nonsense):
    cache = Cache(slim=slim_node)
    with pytest.raises(Unavailable):
        cache.upsert(node(**nonsense))
    assert not len(cache)

"""Paths of objects."""

import pytest

from service.kube.resource import NODES, PODS, SCHEDULED_MACHINES, Resource, path_segment


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (PODS.collection(), "/api/v1/pods"),
        (PODS.collection("a"), "/api/v1/namespaces/a/pods"),
        (PODS.item("x", "a"), "/api/v1/namespaces/a/pods/x"),
        (PODS.item("x", "a", "eviction"), "/api/v1/namespaces/a/pods/x/eviction"),
        (NODES.item("n1"), "/api/v1/nodes/n1"),
        (NODES.item("n1", "ignored"), "/api/v1/nodes/n1"),
        (
            SCHEDULED_MACHINES.item("x", "a", "status"),
            "/apis/5spot.finos.org/v1alpha1/namespaces/a/scheduledmachines/x/status",
        ),
    ],
)
def test_paths(path, expected):
    assert path == expected


@pytest.mark.parametrize("name", ["../../secrets/x", "a/b", "x?force=true", "x#y", "ä", "a b", "%2e%2e"])
def test_a_hostile_name_stays_one_segment(name):
    segment = path_segment(name)
    assert not set(segment) & set("/?# ")
    assert segment.isascii()


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_names_that_would_change_the_path_are_refused(name):
    with pytest.raises(ValueError, match="cannot be the name"):
        PODS.item(name, "a")


def test_a_namespace_is_needed_where_there_is_one():
    with pytest.raises(ValueError, match="is namespaced"):
        PODS.item("x")


def test_how_people_and_manifests_name_it():
    machines = Resource("cluster.x-k8s.io", "v1beta2", "machines", "Machine")
    assert machines.label == "machines.cluster.x-k8s.io"
    assert machines.envelope() == {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine"}
    assert PODS.envelope() == {"apiVersion": "v1", "kind": "Pod"}
    assert PODS.label == "pods"

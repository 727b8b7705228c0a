"""Which Nodes request a reclaim, and which of them belong to no ScheduledMachine."""

from typing import Any

import pytest

from crds import names
from service.observe import unowned_nodes
from service.observe.unowned_nodes import UnownedNodes, requests_reclaim
from service.runtime.cache import Change, EventType
from service.runtime.key import Key

HERE = Key("team", "prod")
MACHINE = {"spec": {"clusterName": "prod"}, "status": {"nodeRef": {"name": "node-7"}}}


class Machines(dict):
    """The part of a cache that these tests need."""


def machines(*objects) -> Any:
    return Machines(*objects)


def node(requested="true", uid="u-1"):
    return {"metadata": {"name": "node-7", "uid": uid, "annotations": {names.ANNOTATION_RECLAIM_REQUESTED: requested}}}


@pytest.mark.parametrize(
    ("change_type", "text", "requested"),
    [
        (EventType.ADDED, "true", True),
        (EventType.CHANGED, "true", True),
        (EventType.CHANGED, "yes", False),
        (EventType.DELETED, "true", False),
    ],
)
def test_only_an_existing_node_with_the_value_true_requests_a_reclaim(change_type, text, requested):
    assert requests_reclaim(Change(change_type, Key("", "node-7"), node(text), 7)) is requested


def test_a_node_without_annotations_requests_nothing():
    assert not requests_reclaim(Change(EventType.ADDED, Key("", "n"), {"metadata": {"name": "n"}}, 7))


def test_an_unowned_node_is_reported_once():
    some = UnownedNodes()
    assert some.report(HERE, node(), machines())
    assert not some.report(HERE, node(), machines())
    assert some.report(HERE, node(uid="u-2"), None)


def test_the_number_of_remembered_nodes_is_bounded(monkeypatch):
    monkeypatch.setattr(unowned_nodes, "MOST_REMEMBERED", 3)
    some = UnownedNodes()
    for number in range(10):
        assert some.report(HERE, node(uid=f"u-{number}"), None)
    assert len(some._reported) <= 3


@pytest.mark.parametrize(
    ("key", "raw", "reported"),
    [
        (Key("team", "a-machine"), MACHINE, False),
        (Key("other", "a-machine"), MACHINE, True),
        (Key("team", "a-machine"), {**MACHINE, "spec": {"clusterName": "test"}}, True),
        (Key("team", "a-machine"), {"spec": {"clusterName": "prod"}}, True),
    ],
    ids=["ours", "another namespace", "another cluster", "without a Node"],
)
def test_a_node_whose_machine_is_not_observed_yet_is_not_unowned(key, raw, reported):
    assert UnownedNodes().report(HERE, node(), machines({key: raw})) is reported

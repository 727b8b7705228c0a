"""Which Nodes ask for themselves, and which of them are nobody's."""

from typing import Any

import pytest

from crds import names
from service.observe import unowned_nodes
from service.observe.unowned_nodes import UnownedNodes, asks_back
from service.runtime.cache import Change, EventType
from service.runtime.key import Key

HERE = Key("team", "prod")
MACHINE = {"spec": {"clusterName": "prod"}, "status": {"nodeRef": {"name": "node-7"}}}


def machines(objects: dict[Key, Any] | None = None) -> Any:
    """As much of a watched cache as is asked for here."""
    return objects or {}


def node(requested="true", uid="u-1"):
    return {"metadata": {"name": "node-7", "uid": uid, "annotations": {names.ANNOTATION_RECLAIM_REQUESTED: requested}}}


@pytest.mark.parametrize(
    ("change_type", "text", "asks"),
    [
        (EventType.ADDED, "true", True),
        (EventType.CHANGED, "true", True),
        (EventType.CHANGED, "yes", False),
        (EventType.DELETED, "true", False),
    ],
)
def test_a_node_asks_with_one_word_for_as_long_as_it_is_there(change_type, text, asks):
    assert asks_back(Change(change_type, Key("", "node-7"), node(text), 7)) is asks


def test_a_node_without_annotations_asks_for_nothing():
    assert not asks_back(Change(EventType.ADDED, Key("", "n"), {"metadata": {"name": "n"}}, 7))


def test_a_node_of_nobody_is_told_once():
    some = UnownedNodes()
    assert some.asked(HERE, node(), machines())
    assert not some.asked(HERE, node(), machines())
    assert some.asked(HERE, node(uid="u-2"), None)


def test_of_ever_more_nodes_not_all_are_remembered(monkeypatch):
    monkeypatch.setattr(unowned_nodes, "MOST_REMEMBERED", 3)
    some = UnownedNodes()
    for number in range(10):
        assert some.asked(HERE, node(uid=f"u-{number}"), None)
    assert len(some._told) <= 3


@pytest.mark.parametrize(
    ("key", "raw", "told"),
    [
        (Key("team", "a-machine"), MACHINE, False),
        (Key("other", "a-machine"), MACHINE, True),
        (Key("team", "a-machine"), {**MACHINE, "spec": {"clusterName": "test"}}, True),
        (Key("team", "a-machine"), {"spec": {"clusterName": "prod"}}, True),
    ],
    ids=["ours", "another namespace", "another cluster", "without a Node"],
)
def test_a_node_whose_machine_has_not_been_looked_at_yet_is_not_nobodys(key, raw, told):
    assert UnownedNodes().asked(HERE, node(), machines({key: raw})) is told

"""The index of overrides, and the machines that one is about, against what a walk over everything finds."""

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from crds.overrides import Override, OverrideState
from crds.selector import Selector
from service.observe.indexes import INDEXES
from service.observe.overrides import IndexedOverride, OverrideIndex, machines_of
from service.runtime.cache import Cache
from service.runtime.key import Key

EVENING = datetime(2026, 11, 20, 18, tzinfo=UTC)
LABELS = {"desk-1": {"room": "1"}, "desk-2": {"room": "2", "night": "yes"}, "desk-3": {}}
SELECTORS: tuple[dict[str, Any], ...] = (
    {"matchLabels": {"room": "1"}},
    {"matchExpressions": [{"key": "room", "operator": "In", "values": ["1", "2"]}]},
    {"matchExpressions": [{"key": "night", "operator": "Exists"}]},
    {"matchExpressions": [{"key": "night", "operator": "DoesNotExist"}]},
    {"matchExpressions": [{"key": "room", "operator": "NotIn", "values": ["1"]}]},
    {"matchLabels": {"room": "2"}, "matchExpressions": [{"key": "night", "operator": "DoesNotExist"}]},
)


def entry(name: str, *machines: str, selector: dict[str, Any] | None = None, hours: int = 4) -> IndexedOverride:
    ends = EVENING + timedelta(hours=hours)
    found = Override(name, OverrideState.OPEN, EVENING, ends, created=EVENING)
    return IndexedOverride(found, machines, Selector.parse(selector) if selector else None)


def asked(index: OverrideIndex, namespace: str, name: str) -> set[str]:
    return {each.name for each in index.about(namespace, name, LABELS.get(name, {}))}


def concerns(given: IndexedOverride, name: str) -> bool:
    return name in given.machines or bool(given.selector and given.selector.matches(LABELS.get(name, {})))


def fleet() -> Any:
    """The cache of ScheduledMachines: each name in two namespaces."""
    cache = Cache(indexes=INDEXES)
    for number, (namespace, name) in enumerate((ns, name) for ns in ("blue", "red") for name in LABELS):
        about = {"namespace": namespace, "name": name, "uid": f"u{number}", "resourceVersion": str(number + 1)}
        cache.upsert({"metadata": {**about, "labels": LABELS[name]}, "spec": {}})
    return cache


def test_after_any_puts_the_index_says_what_a_walk_over_all_entries_says():
    dice = random.Random(7)
    index, known = OverrideIndex(), dict[Key, IndexedOverride]()
    for _ in range(400):
        key = Key(dice.choice(("blue", "red")), f"o{dice.randrange(6)}")
        machines = dice.sample([*LABELS, "not-yet"], k=dice.randrange(1, 3))
        selector = dice.choice(SELECTORS) if dice.random() < 0.5 else None
        given = entry(key.name, *(() if selector else machines), selector=selector, hours=dice.randrange(1, 3))
        if dice.random() < 0.3:
            index.put(key, None)
            known.pop(key, None)
        else:
            index.put(key, given)
            known[key] = given
        for namespace in ("blue", "red"):
            for name in (*LABELS, "not-yet"):
                wanted = {k.name for k, each in known.items() if k.namespace == namespace and concerns(each, name)}
                assert asked(index, namespace, name) == wanted
    for key in list(known):
        index.put(key, None)
    left = (index._entries, index._by_machine, index._by_namespace)
    assert left == ({}, {}, {}), "nothing is left behind"


def test_a_change_names_the_entries_before_and_after_and_no_change_names_none():
    index, key = OverrideIndex(), Key("blue", "tonight")
    first, second = entry("tonight", "desk-1"), entry("tonight", "desk-1", hours=5)
    assert index.put(key, first) == (first,)
    assert index.put(key, first) == ()
    assert index.put(key, second) == (first, second)
    assert index.put(key, None) == (second,)
    assert index.put(key, None) == ()


@pytest.mark.parametrize("selector", SELECTORS)
def test_a_selector_wakes_the_machines_of_its_own_namespace_that_it_selects(selector: dict[str, Any]):
    given = entry("tonight", selector=selector)
    wanted = {Key("blue", name) for name in LABELS if concerns(given, name)}
    assert set(machines_of(given, "blue", fleet())) == wanted


def test_names_wake_the_machines_that_exist():
    assert list(machines_of(entry("tonight", "desk-1", "not-yet"), "red", fleet())) == [Key("red", "desk-1")]

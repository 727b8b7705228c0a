"""What is kept of classes and namespaces, and which of their changes concern ScheduledMachines."""

from datetime import timedelta
from typing import Any

import pytest

from crds.classes import MachineClass, UnusableClass, class_not_found
from crds.providers import DEFAULT_POLICY
from service.kube.client import Client
from service.observe.classes import LEFT_MAX, ClassStore
from tests.corpus import machine_class


@pytest.fixture
def store() -> ClassStore:
    """One that has listed everything; there is nothing yet."""
    made = ClassStore(Client.from_inline("https://127.0.0.1:1", token="t"), DEFAULT_POLICY)
    for reflector in made._classes._reflectors.values():
        reflector.synced.set()
    return made


def stored(store: ClassStore, version: int, labels: dict[str, str] | None = None, uid: str = "u", **spec: Any) -> None:
    raw = machine_class(**spec)
    raw["metadata"] |= {"uid": uid, "resourceVersion": str(version), "labels": labels or {}}
    store._classes.absorb(raw, notify=True)


def namespace(store: ClassStore, version: int, annotations: dict[str, str] | None = None, **labels: str) -> None:
    about = {"name": "team", "uid": "n", "resourceVersion": str(version), "labels": labels}
    store._namespaces.absorb({"metadata": {**about, "annotations": annotations or {}}}, notify=True)


def test_a_class_is_read_once_for_all_of_its_users_until_it_is_edited(store):
    stored(store, 1, priority=7)
    first = store.find("desk")
    assert isinstance(first, MachineClass)
    assert store.find("desk") is first
    stored(store, 2, priority=8)
    again = store.find("desk")
    assert isinstance(again, MachineClass)
    assert again.spec.priority == 8


def test_a_class_that_is_missing_is_found_as_soon_as_it_is_there(store):
    assert isinstance(store.find("desk"), UnusableClass)
    stored(store, 1)
    assert isinstance(store.find("desk"), MachineClass)


def test_the_timeouts_of_a_class_that_is_gone_are_remembered_until_it_is_there_again(store):
    stored(store, 1, gracefulShutdownTimeout="2h")
    gone(store, 2, gracefulShutdownTimeout="2h")
    assert store.find("desk") == class_not_found("desk", timedelta(hours=2))
    stored(store, 3, uid="another")
    assert isinstance(store.find("desk"), MachineClass)
    gone(store, 4, uid="another")
    assert store.find("desk") == class_not_found("desk")


def test_of_many_classes_that_are_gone_the_last_are_remembered(store):
    for number in range(LEFT_MAX + 1):
        store._remember(f"class-{number}", {"nodeDrainTimeout": "1h"})
    assert store.find("class-0") == class_not_found("class-0")
    assert store.find(f"class-{LEFT_MAX}") == class_not_found(f"class-{LEFT_MAX}", None, timedelta(hours=1))


def gone(store: ClassStore, version: int, uid: str = "u", **spec: Any) -> None:
    """As the watch tells it, with the object as it was."""
    cache = store._classes._cache("")
    assert cache is not None
    raw = machine_class(**spec)
    assert cache.remove({**raw, "metadata": {**raw["metadata"], "uid": uid, "resourceVersion": str(version)}})


def test_the_outline_of_a_class_has_its_priority_and_its_kinds_and_nothing_large(store):
    assert store.outline("desk") is None
    large = {**machine_class()["spec"]["bootstrapSpec"], "spec": {"x": "x" * 100_000}}
    stored(store, 1, priority=7, bootstrapSpec=large)
    found = store.outline("desk")
    assert found is store.outline("desk"), "each of its users asks"
    assert len(str(found)) < 1000
    assert found["spec"]["priority"] == 7
    assert found["spec"]["infrastructureSpec"]["kind"] == "RemoteMachine"
    stored(store, 2, priority=8)
    assert store.outline("desk")["spec"]["priority"] == 8


@pytest.mark.parametrize("spec", [None, "x", {"bootstrapSpec": []}])
def test_a_malformed_class_has_an_outline_too(store, spec):
    raw = machine_class() | {"spec": spec}
    raw["metadata"] |= {"uid": "u", "resourceVersion": "1"}
    store._classes.absorb(raw)
    assert store.outline("desk") == {"spec": {"priority": None}}


def test_only_the_spec_of_a_class_and_the_labels_of_a_namespace_concern_anyone(store):
    heard: list[str] = []
    store.subscribe(heard.append, heard.append)
    stored(store, 1, priority=7)
    stored(store, 2, priority=7, labels={"a": "b"})
    assert heard == ["desk"]
    namespace(store, 1, floor="three")
    namespace(store, 2, {"last-seen": "now"}, floor="three")
    assert heard == ["desk", "team"]
    stored(store, 3, priority=8)
    namespace(store, 3, floor="four")
    assert heard == ["desk", "team", "desk", "team"]

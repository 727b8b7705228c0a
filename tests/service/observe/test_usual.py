"""What machines of one kind usually need in their Cluster."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from crds.base import rfc3339
from service.decide.leads import UNKNOWN, Usual
from service.observe.indexes import INDEXES
from service.observe.usual import KEPT_SECONDS, MACHINES_MAX, UsualTimes
from service.runtime.cache import Cache
from service.runtime.key import Key
from tests.corpus import machine_class
from tests.service.decide.builders import raw_spec

NINE = datetime(2026, 3, 6, 9, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def service(ready: timedelta, gone: timedelta) -> dict[str, str]:
    instants = {"requested": NINE, "ready": NINE + ready, "shutdown": NINE, "gone": NINE + gone}
    return {**{name: rfc3339(at) for name, at in instants.items()}, "reason": "WindowClosed"}


def stored(name: str, *services: dict[str, str], namespace: str = "team", **spec: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace, "uid": f"{namespace}-{name}", "resourceVersion": "1"}
    return {"metadata": metadata, "spec": raw_spec(**spec), "status": {"history": list(services)}}


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def cache() -> Cache:
    return Cache(indexes=INDEXES)


@pytest.fixture
def usual(cache: Any, clock: Clock) -> UsualTimes:
    return UsualTimes(cache, Outlines(machine_class()), clock)


class Outlines:
    """Classes, as the controller keeps them."""

    def __init__(self, *classes: dict[str, Any]) -> None:
        self.classes = {each["metadata"]["name"]: each for each in classes}

    def names(self) -> Iterable[str]:
        return self.classes

    def outline(self, name: str) -> dict[str, Any] | None:
        return self.classes.get(name)


def put(cache: Cache, *machines: dict[str, Any]) -> None:
    for raw in machines:
        cache.absorb(raw)


NEW = stored("new")


def test_it_is_what_nine_in_ten_services_of_the_kind_needed(cache, usual):
    put(
        cache,
        stored("a", service(MINUTE, MINUTE), service(3 * MINUTE, MINUTE)),
        stored("b", service(2 * MINUTE, MINUTE)),
    )
    assert usual.like(NEW) == Usual(3 * MINUTE, MINUTE)


def of_class(name: str, *services: dict[str, str], of: str = "desk") -> dict[str, Any]:
    """A machine at rest: only its class says of which kind it is."""
    raw = stored(name, *services, classRef={"name": of})
    del raw["spec"]["bootstrapSpec"], raw["spec"]["infrastructureSpec"]
    return raw


def test_machines_of_a_class_count_by_the_kind_of_their_class(cache, usual):
    put(cache, of_class("a", *[service(MINUTE, MINUTE)] * 2), stored("b", service(3 * MINUTE, MINUTE)))
    assert usual.like(NEW) == usual.like(of_class("new")) == Usual(3 * MINUTE, MINUTE)
    assert usual.like(of_class("new", of="missing")) == UNKNOWN


def test_other_clusters_namespaces_and_kinds_do_not_count(cache, usual):
    served = [service(MINUTE, MINUTE)] * 3
    other_kind = {**raw_spec()["infrastructureSpec"], "kind": "OtherMachine"}
    put(
        cache,
        stored("a", *served, clusterName="other"),
        stored("b", *served, namespace="other"),
        stored("c", *served, infrastructureSpec=other_kind),
    )
    assert usual.like(NEW) == UNKNOWN


def test_fewer_than_three_services_say_nothing(cache, usual):
    put(cache, stored("a", service(MINUTE, MINUTE)), stored("b", service(MINUTE, MINUTE)))
    assert usual.like(NEW) == UNKNOWN


def test_an_answer_is_kept_for_a_while(cache, usual, clock):
    assert usual.like(NEW) == UNKNOWN
    put(cache, stored("a", *[service(MINUTE, MINUTE)] * 3))
    assert usual.like(NEW) == UNKNOWN
    clock.now = KEPT_SECONDS
    assert usual.like(NEW) == Usual(MINUTE, MINUTE)


def test_a_crowd_costs_no_more_than_a_sample_of_it(cache, usual, monkeypatch):
    put(cache, *(stored(f"m{number}", service(MINUTE, MINUTE)) for number in range(3 * MACHINES_MAX)))
    read: list[Key] = []
    get = cache.get

    def counted(key: Key) -> Any:
        read.append(key)
        return get(key)

    monkeypatch.setattr(cache, "get", counted)
    assert usual.like(NEW) == Usual(MINUTE, MINUTE)
    assert len(read) == MACHINES_MAX


def test_nothing_is_known_of_an_object_that_cannot_be_read(usual):
    assert usual.like({"metadata": {"namespace": "team"}, "spec": {"infrastructureSpec": 7}}) == UNKNOWN

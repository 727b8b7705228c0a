from dataclasses import replace
from datetime import timedelta

import pytest

from service.observe.refusals import MOST_WOKEN, Refusals, slim_budget
from service.runtime.cache import Change, EventType
from service.runtime.key import Key
from tests.service.decide.builders import pod

KEY = Key("team", "desk")
WEB = pod("web", labels={"app": "web"})


class Scene:
    def __init__(self):
        self.now = 1000.0
        self.refusals = Refusals(lambda: self.now)

    def pauses(self, count):
        return [self.refusals.record(KEY, WEB, "a budget").total_seconds() for _ in range(count)]

    def retry_after(self, key=KEY, of=WEB):
        (marked,) = self.refusals.with_refusals(key, (of,))
        return marked.refusal.retry_after if marked.refusal else None


@pytest.fixture
def scene():
    return Scene()


def budget(allowed=1, app="web", namespace="apps", type_=EventType.CHANGED, selector=...):
    metadata = {"name": "budget", "namespace": namespace, "uid": "b", "resourceVersion": "1"}
    selector = {"matchLabels": {"app": app}} if selector is ... else selector
    raw = {"metadata": metadata, "spec": {"selector": selector}, "status": {"disruptionsAllowed": allowed}}
    return Change(type_, Key(namespace, "budget"), slim_budget(raw), 1)


def test_a_refused_eviction_is_retried_less_and_less_often(scene):
    pauses = scene.pauses(6)
    for pause, full in zip(pauses, (5, 10, 20, 30, 30, 30), strict=True):
        assert 0.8 * full <= pause <= full


def test_a_retry_after_of_the_api_server_is_respected(scene):
    assert scene.refusals.record(KEY, WEB, "not computed yet", 10.0) == timedelta(seconds=10)


def test_a_pod_carries_its_refusal_with_what_is_left_of_the_pause(scene):
    pause = scene.refusals.record(KEY, WEB, "a budget")
    scene.now += 2
    (marked,) = scene.refusals.with_refusals(KEY, (WEB,))
    assert marked.refusal.reason == "a budget"
    assert marked.refusal.retry_after == pytest.approx(pause - timedelta(seconds=2), abs=timedelta(milliseconds=1))
    scene.now += 60
    assert scene.retry_after() == timedelta(0)


@pytest.mark.parametrize("since", [replace(WEB, uid="another"), replace(WEB, deleting=True)])
def test_the_refusal_of_a_pod_that_is_gone_or_being_deleted_is_forgotten(scene, since):
    scene.refusals.record(KEY, WEB, "a budget")
    assert scene.retry_after(of=since) is None
    assert scene.retry_after() is None


def test_after_a_drain_no_refusal_is_remembered(scene):
    scene.refusals.record(KEY, WEB, "a budget")
    scene.refusals.forget(KEY)
    assert scene.retry_after() is None


@pytest.mark.parametrize(
    ("change", "woken"),
    [
        (budget(), True),
        (budget(allowed=0), False),
        (budget(allowed=0, type_=EventType.DELETED), True),
        (budget(app="db"), False),
        (budget(namespace="other"), False),
        (budget(selector={}), True),
        (budget(selector=None), False),
        (budget(selector={"matchExpressions": "nonsense"}), False),
        (budget(allowed="many"), False),
    ],
)
def test_a_budget_that_allows_an_eviction_has_it_retried_at_once(scene, change, woken):
    scene.refusals.record(KEY, WEB, "a budget")
    assert list(scene.refusals.budget_changed(frozenset({KEY}), change)) == ([KEY] if woken else [])
    assert (scene.retry_after() == timedelta(0)) is woken


def test_only_as_many_machines_retry_as_the_budget_allows(scene):
    machines = frozenset(Key("team", f"desk-{number}") for number in range(100))
    for key in machines:
        scene.refusals.record(key, WEB, "a budget")
    assert len(list(scene.refusals.budget_changed(machines, budget(allowed=3)))) == 3
    assert len(list(scene.refusals.budget_changed(machines, budget(allowed=1000)))) == MOST_WOKEN

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
        return [self.refusals.note(KEY, WEB, "a budget").total_seconds() for _ in range(count)]

    def retry_after(self, key=KEY, of=WEB):
        (marked,) = self.refusals.marked(key, (of,))
        return marked.refusal.retry_after if marked.refusal else None


@pytest.fixture
def scene():
    return Scene()


def budget(allowed=1, app="web", namespace="apps", type_=EventType.CHANGED, selector=...):
    metadata = {"name": "budget", "namespace": namespace, "uid": "b", "resourceVersion": "1"}
    selector = {"matchLabels": {"app": app}} if selector is ... else selector
    raw = {"metadata": metadata, "spec": {"selector": selector}, "status": {"disruptionsAllowed": allowed}}
    return Change(type_, Key(namespace, "budget"), slim_budget(raw), 1)


def test_a_refused_eviction_is_asked_for_ever_less_often(scene):
    pauses = scene.pauses(6)
    for pause, full in zip(pauses, (5, 10, 20, 30, 30, 30), strict=True):
        assert 0.8 * full <= pause <= full


def test_a_server_that_names_a_pause_is_given_it(scene):
    assert scene.refusals.note(KEY, WEB, "not reckoned yet", 10.0) == timedelta(seconds=10)


def test_a_pod_carries_its_refusal_with_what_is_left_of_the_pause(scene):
    pause = scene.refusals.note(KEY, WEB, "a budget")
    scene.now += 2
    (marked,) = scene.refusals.marked(KEY, (WEB,))
    assert marked.refusal.reason == "a budget"
    assert marked.refusal.retry_after == pytest.approx(pause - timedelta(seconds=2), abs=timedelta(milliseconds=1))
    scene.now += 60
    assert scene.retry_after() == timedelta(0)


@pytest.mark.parametrize("since", [replace(WEB, uid="another"), replace(WEB, leaving=True)])
def test_the_refusal_of_a_pod_that_is_gone_or_going_is_forgotten(scene, since):
    scene.refusals.note(KEY, WEB, "a budget")
    assert scene.retry_after(of=since) is None
    assert scene.retry_after() is None


def test_a_drain_that_is_over_leaves_nothing_behind(scene):
    scene.refusals.note(KEY, WEB, "a budget")
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
def test_a_budget_that_allows_something_has_the_eviction_asked_for_at_once(scene, change, woken):
    scene.refusals.note(KEY, WEB, "a budget")
    assert list(scene.refusals.allowed(frozenset({KEY}), change)) == ([KEY] if woken else [])
    assert (scene.retry_after() == timedelta(0)) is woken


def test_of_a_crowd_only_as_many_ask_again_as_the_budget_allows(scene):
    crowd = frozenset(Key("team", f"desk-{number}") for number in range(100))
    for key in crowd:
        scene.refusals.note(key, WEB, "a budget")
    assert len(list(scene.refusals.allowed(crowd, budget(allowed=3)))) == 3
    assert len(list(scene.refusals.allowed(crowd, budget(allowed=1000)))) == MOST_WOKEN

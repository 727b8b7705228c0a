"""A controller that was put together and not started: its gauges, and what a failed pass leads to."""

from types import SimpleNamespace
from typing import Any

import prometheus_client
import pytest

from service import metrics
from service.clock import ManualClock
from service.controller import gauges
from service.controller.shared import Shared
from service.controller.wiring import Controller
from service.decide.world import Contract
from service.kube.client import Client
from service.observe.watches import CapiInformers
from service.runtime.cache import Cache, Change, EventType
from service.runtime.informer import Informer
from service.runtime.key import Key
from service.settings import Settings
from service.sharding.fence import Fence, ShardNotHeldError
from service.sharding.shard import Shard, shard_number
from tests.service.decide import builders
from tests.service.decide.builders import MORNING

FIRST, SECOND = Shard(0, 2), Shard(1, 2)
KEYS = [Key("team", f"desk-{number}") for number in range(20)]
OURS = [key for key in KEYS if shard_number(key.namespace, key.name, 2) == FIRST.number]
CLUSTER = Key("team", "prod")
CLUSTERS = {CLUSTER: {"metadata": {"namespace": "team", "name": "prod", "uid": "c"}}}


@pytest.fixture
def controller() -> Controller:
    """The holder of the first of two shards."""
    settings = Settings(webhooks=False, instance_count=2)
    client = Client.from_inline("https://127.0.0.1:1", token="t")
    fence = Fence(2, lambda: 0.0)
    made = Controller(Shared(settings=settings, client=client, clock=ManualClock(MORNING)), fence)
    fence.extend(FIRST, 60.0)
    clusters: Any = SimpleNamespace(get=CLUSTERS.get)
    made.watches.capi = CapiInformers(Contract.V1BETA2, machines=clusters, clusters=clusters)
    return made


def hears_of(
    controller: Controller, *keys: Key, version: int = 1, cluster: dict[Key, str] | None = None, **status: Any
) -> None:
    """All of them want the same host."""
    for key in keys:
        spec = builders.raw_spec(clusterName=(cluster or {}).get(key, CLUSTER.name))
        raw = builders.stored(spec) | {"status": status}
        raw["metadata"] |= {"name": key.name, "resourceVersion": str(version), "uid": key.name}
        controller.watches.scheduled.absorb(raw, notify=True)


def shown(name: str, **labels: str) -> float | None:
    return metrics.REGISTRY.get_sample_value(f"fivespot_{name}", labels)


# The page of metrics


def test_the_gauges_report_schedule_time_and_how_far_the_clock_is_ahead(controller):
    controller._shared.client.transport.skew_seconds = 3.5
    assert (shown("clock_time_seconds"), shown("clock_skew_seconds")) == (MORNING.timestamp(), 3.5)


def test_a_scrape_costs_no_walk_over_the_objects(controller, monkeypatch):
    hears_of(controller, *KEYS, phase="Active")
    walks = []

    def walking(name):
        def walk(*_):
            walks.append(name)
            return ()

        return walk

    for name in ("__iter__", "get", "keys_by"):
        monkeypatch.setattr(Informer, name, walking(name))
        monkeypatch.setattr(Cache, name, walking(name))
    page = prometheus_client.generate_latest(metrics.REGISTRY).decode()
    assert f'fivespot_shard_objects{{shard="0-of-2"}} {len(OURS)}.0' in page
    assert 'fivespot_scheduledmachines{phase="Active"} 20.0' in page
    assert walks == []


def test_it_counts_objects_by_phase_in_all_shards(controller):
    hears_of(controller, *KEYS[:14], phase="Active")
    hears_of(controller, *KEYS[14:], phase="Inactive")
    counted = [shown("scheduledmachines", phase=phase) for phase in ("Active", "Inactive", "Error")]
    assert counted == [14, 6, 0]


def test_the_gauges_report_the_held_shards_and_their_number_of_objects(controller):
    hears_of(controller, *KEYS)
    held = [shown("shard_held", shard=str(shard)) for shard in (FIRST, SECOND)]
    objects = [shown("shard_objects", shard=str(shard)) for shard in (FIRST, SECOND)]
    assert (held, objects) == ([1, 0], [len(OURS), 0])
    controller.fence.drop(FIRST)
    assert (shown("shard_held", shard=str(FIRST)), shown("shard_objects", shard=str(FIRST))) == (0, 0)


def test_machines_in_trouble_are_named_with_what_their_status_says_as_far_as_that_is_bounded(controller):
    late = [{"type": "Ready", "status": "False", "reason": "NotReadyInTime"}]
    hears_of(controller, KEYS[0], phase="Active", conditions=late, message="no Node")
    hears_of(controller, KEYS[1], phase="Error", message="x" * 1000)
    hears_of(controller, KEYS[2], phase="Active", message="well")
    rows = list(gauges.trouble(controller.watches.scheduled))
    assert rows == [
        ("team", "desk-0", "Active", "NotReadyInTime", "no Node"),
        ("team", "desk-1", "Error", "", "x" * gauges.MESSAGE_MAX),
    ]
    many = [Key("team", f"broken-{number}") for number in range(gauges.NAMED_MAX + 5)]
    hears_of(controller, *many, phase="Error")
    assert len(list(gauges.trouble(controller.watches.scheduled))) == gauges.NAMED_MAX


def test_nobody_is_named_unless_the_settings_say_so(controller):
    hears_of(controller, KEYS[0], phase="Error", message="secret of a team")
    assert "secret of a team" not in prometheus_client.generate_latest(metrics.REGISTRY).decode()


def test_a_machine_that_is_out_of_trouble_is_no_longer_listed():
    registry = prometheus_client.CollectorRegistry()
    listed = metrics.ListGauge("trouble", "Names.", ["object"], registry=registry)
    listed.rows = lambda: [("one",), ("two",)]
    assert registry.get_sample_value("trouble", {"object": "two"}) == 1
    listed.rows = lambda: [("one",)]
    assert registry.get_sample_value("trouble", {"object": "two"}) is None


def test_the_gauge_counts_the_due_keys_of_its_own_shards(controller):
    for key in KEYS:
        controller.queue.add(key)
    assert controller.queue.take() in OURS
    assert shown("queue_depth") == len(OURS) - 1


# Which event wakes which object


def test_who_waits_for_a_host_is_woken_when_it_becomes_free_though_another_replica_serves_who_had_it(controller):
    mine, theirs = OURS[0], next(key for key in KEYS if key not in OURS)
    hears_of(controller, theirs, machineRef={"name": "m", "uid": "u"})
    hears_of(controller, mine)
    assert controller.queue.take() == mine
    controller.queue.done(mine)
    hears_of(controller, theirs, version=2)
    assert controller.queue.take() == mine


def test_who_waits_for_a_host_is_woken_when_the_cluster_of_the_one_before_goes(controller):
    older, newer = OURS[:2]
    hears_of(controller, older, newer, cluster={older: "other"})
    for _ in range(2):
        controller.queue.done(controller.queue.take())
    controller.triggers.cluster_changed(Change(EventType.DELETED, Key("team", "other"), {}, 7))
    assert {controller.queue.take(), controller.queue.take()} == {older, newer}


def test_a_write_to_a_node_wakes_the_others_on_it(controller):
    one, two = OURS[:2]
    for key in (one, two):
        controller.observer.workload.nodes.put(key, CLUSTER, "node-7")
    subject = SimpleNamespace(key=one, cluster=CLUSTER)
    news = [True, False]
    held = SimpleNamespace(nodes=SimpleNamespace(absorb=lambda _: news.pop(0)))
    controller.workloads.held_by = lambda *_: held
    writer = controller.reconciler._writer
    writer.absorb_node(subject, {"metadata": {"name": "node-7"}})
    assert controller.queue.take() == two
    controller.queue.done(two)
    writer.absorb_node(subject, {"metadata": {"name": "node-7"}})
    assert controller.queue.take() is None


def test_a_kill_switch_goes_before_a_crowd_that_was_due_before_it(controller):
    hears_of(controller, *OURS)
    raw = builders.stored(builders.raw_spec(killSwitch=True))
    raw["metadata"] |= {"name": OURS[-1].name, "resourceVersion": "2", "uid": "u", "generation": 2}
    controller.watches.scheduled.absorb(raw, notify=True)
    assert controller.queue.take() == OURS[-1]


def test_a_machine_whose_turn_came_goes_before_reports_and_after_a_kill_switch(controller):
    killed, turned = OURS[-1], OURS[-2]
    hears_of(controller, *OURS)
    controller.crowds._wake(turned)
    raw = builders.stored(builders.raw_spec(killSwitch=True))
    raw["metadata"] |= {"name": killed.name, "resourceVersion": "2", "uid": "u", "generation": 2}
    controller.watches.scheduled.absorb(raw, notify=True)
    assert [controller.queue.take(), controller.queue.take()] == [killed, turned]


# What comes of a pass that failed


def test_a_key_whose_handling_fails_by_a_bug_is_handled_again_after_a_back_off(controller):
    asked = []
    retry = controller.queue.retry

    def ask(key, after=None):
        asked.append(retry(key, after=after))
        return asked[-1]

    controller.queue.retry = ask
    controller._failed(OURS[0], ZeroDivisionError("a bug"))
    assert 24 <= asked[0] <= 30


def test_what_another_replica_serves_by_now_is_left_to_it(controller):
    controller._failed(OURS[0], ShardNotHeldError("not ours any more"))
    assert controller.queue.waiting == 0

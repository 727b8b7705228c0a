"""Prometheus reads the metrics of the pods; what it takes to make alerts fire is in `tests/monitoring`."""

from collections.abc import Iterator

import pytest

from tests.charts.helm import NAMESPACE, only
from tests.cluster.site import Site, eventually
from tests.monitoring.prometheus import Prometheus, at_once


@pytest.fixture(scope="module")
def prometheus(release: Site) -> Iterator[Prometheus]:
    rendered = release.helm.template({"prometheusRule": {"enabled": True}})
    (alerts,) = only(rendered, "PrometheusRule")["spec"]["groups"]
    started = Prometheus.start(release.node.keeper, [at_once(alerts, NAMESPACE)])
    started.read(*(
        {
            "targets": [f"{pod['status']['podIP']}:8080"],
            "labels": {"namespace": NAMESPACE, "pod": pod["metadata"]["name"]},
        }
        for pod in release.settled()
    ))  # fmt: skip
    yield started
    started.server.kill()


def test_both_pods_deliver_metrics_and_one_of_them_holds_the_shard(prometheus: Prometheus):
    eventually(lambda: value(prometheus, "sum(up)") == 2)
    assert value(prometheus, "count(fivespot_build_info)") == 2
    eventually(lambda: value(prometheus, "sum(fivespot_shard_held)") == 1)


def test_no_alert_fires_about_a_release_that_works(prometheus: Prometheus):
    eventually(lambda: value(prometheus, "min(count_over_time(up[5m]))") > 10)
    assert prometheus.failing_rules() == []
    firing = {each["metric"]["alertname"] for each in prometheus.ask('ALERTS{alertstate="firing"}')}
    assert firing == set()


def value(prometheus: Prometheus, query: str) -> float:
    """The only value; -1 while there is none."""
    found = prometheus.ask(query)
    return float(found[0]["value"][1]) if found else -1.0

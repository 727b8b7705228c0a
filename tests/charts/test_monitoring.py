"""Alerts and dashboard speak of metrics that exist, with the labels that they have."""

import json
import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard

from crds.scheduledmachine import DEFAULT_TIMEOUT
from service import metrics
from tests.charts.helm import of_kind, only

SERIES = re.compile(r"\b(fivespot_\w+)(?:\{([^}]*)\})?")
ADDED = {"namespace", "cluster"}
"""Labels that Prometheus adds: the first to what it reads by a ServiceMonitor, the second where there are several."""


def exposed() -> dict[str, set[str]]:
    """Every series that Prometheus can get from us, with its labels."""
    found: dict[str, set[str]] = {}
    for collector, names in metrics.REGISTRY._collector_to_names.items():
        labels = set(getattr(collector, "_labelnames", ()))
        served = {name for name in names if f"{name}_total" not in names}
        found |= {name: labels | ({"le"} if name.endswith("_bucket") else set()) for name in served}
    process = [family.name for family in metrics.REGISTRY.collect() if "_process_" in family.name]
    return found | {name: set() for name in process}


def queries(helm) -> list[str]:
    rendered = helm.template({"prometheusRule": {"enabled": True}})
    rules = only(rendered, "PrometheusRule")["spec"]["groups"][0]["rules"]
    return [rule["expr"] for rule in rules] + [target["expr"] for panel in panels(helm) for target in panel["targets"]]


def board(helm) -> dict:
    rendered = helm.template({"dashboard": {"enabled": True}})
    (found,) = [each for each in of_kind(rendered, "ConfigMap") if "5spot.json" in each["data"]]
    return json.loads(found["data"]["5spot.json"])


def panels(helm) -> list[dict]:
    """All but the rows' titles."""
    return [panel for panel in board(helm)["panels"] if panel["type"] != "row"]


def test_every_metric_exists_with_its_labels(helm):
    known, asked = exposed(), queries(helm)
    assert len(asked) > 25
    for query in asked:
        series = SERIES.findall(query)
        assert series, query
        for name, matchers in series:
            assert name in known, query
            assert set(re.findall(r"(\w+)[=!]~?=?\"", matchers)) <= known[name] | ADDED, query
        grouped = {label.strip() for group in re.findall(r"by \(([^)]*)\)", query) for label in group.split(",")}
        assert grouped <= ADDED.union(*(known[name] for name, _ in series)), query
        assert query.count("(") == query.count(")")


def test_the_values_of_labels_are_ones_that_occur(helm):
    results = {
        "fivespot_evictions_total": {"accepted", "blocked"},
        "fivespot_drains_total": {"completed", "timed_out", "skipped"},
    }
    for query in queries(helm):
        for name, matchers in SERIES.findall(query):
            for value in re.findall(r'result="(\w+)"', matchers):
                assert value in results[name]


def test_each_alert_says_what_is_wrong_and_where_to_read_on(helm):
    rendered = helm.template({"prometheusRule": {"enabled": True, "runbookUrl": "https://docs.example.org/alerts"}})
    rules = only(rendered, "PrometheusRule")["spec"]["groups"][0]["rules"]
    assert len(rules) > 10
    for rule in rules:
        assert rule["labels"]["severity"] in {"warning", "critical"}
        assert rule["annotations"]["summary"]
        assert rule["annotations"]["description"]
        assert "<no value>" not in str(rule)
        assert rule["annotations"]["runbook_url"] == f"https://docs.example.org/alerts#{rule['alert'].lower()}"


def alerts(helm, **flags) -> dict[str, dict]:
    rendered = helm.template({"prometheusRule": {"enabled": True}}, **flags)
    return {rule["alert"]: rule for rule in only(rendered, "PrometheusRule")["spec"]["groups"][0]["rules"]}


def test_alerts_are_about_the_release_that_brings_them(helm):
    for rule in alerts(helm, namespace="elsewhere").values():
        for _, matchers in SERIES.findall(rule["expr"]):
            assert 'namespace="elsewhere"' in matchers


def test_by_default_the_alert_for_a_stuck_drain_fires_before_the_drain_times_out(helm):
    rule = alerts(helm)["FivespotDrainBlocked"]
    minutes = [int(each) for each in (*re.findall(r"\[(\d+)m\]", rule["expr"]), rule["for"].removesuffix("m"))]
    assert timedelta(minutes=max(minutes[:-1]) + minutes[-1]) < DEFAULT_TIMEOUT


def test_limits_are_values(helm):
    rendered = helm.template({"prometheusRule": {"enabled": True, "lateSeconds": 7, "certificateDays": 2}})
    text = str(only(rendered, "PrometheusRule"))
    assert "> 7'" in text
    assert f"< {2 * 86400}'" in text


def test_the_service_monitor_finds_the_metrics_and_nothing_else(helm):
    rendered = helm.template({"serviceMonitor": {"enabled": True}})
    wanted = only(rendered, "ServiceMonitor")["spec"]["selector"]["matchLabels"].items()
    found = [each for each in of_kind(rendered, "Service") if wanted <= each["metadata"]["labels"].items()]
    assert [each["metadata"]["name"] for each in found] == ["fivespot-metrics"]
    assert only(rendered, "ServiceMonitor")["spec"]["endpoints"][0]["port"] == found[0]["spec"]["ports"][0]["name"]


def test_the_dashboard_has_every_metric_of_ours_but_what_only_debugging_needs(helm):
    asked = {re.sub(r"_(bucket|total)$", "", name) for query in queries(helm) for name, _ in SERIES.findall(query)}
    ours = {
        family.name for family in metrics.REGISTRY.collect()
        if family.name.startswith("fivespot_") and not family.name.startswith("fivespot_process_")
    }  # fmt: skip
    assert ours - asked == {"fivespot_clock_time_seconds", "fivespot_kinds_watched", "fivespot_schedule_evaluations"}


def test_every_query_of_the_dashboard_is_about_the_chosen_clusters_and_namespaces(helm):
    asked = [target["expr"] for panel in panels(helm) for target in panel["targets"]]
    assert len(asked) > 35
    for query in asked:
        for _, matchers in SERIES.findall(query):
            assert 'cluster=~"$cluster", namespace=~"$namespace"' in matchers, query


def test_every_panel_has_a_place_of_its_own_a_unit_and_a_sentence(helm):
    places = [panel["gridPos"] for panel in board(helm)["panels"]]
    cells = [
        (x, y)
        for place in places
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) == 23
    for panel in panels(helm):
        assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]
        assert panel["description"].endswith("."), panel["title"]


def test_grafana_knows_every_field_of_the_dashboard(helm):
    """Read by Grafana's own types and written again, nothing may be missing: they drop what they do not know."""
    given = board(helm)
    understood = json.loads(json.dumps(Dashboard.from_json(given), cls=JSONEncoder))
    assert list(lost(given, understood)) == []
    misspelt = {**given, "panels": [{**given["panels"][1], "fieldConfg": {}}]}
    understood = json.loads(json.dumps(Dashboard.from_json(misspelt), cls=JSONEncoder))
    assert list(lost(misspelt, understood)) == [".panels[0].fieldConfg"]


def lost(given: Any, understood: Any, path: str = "") -> Iterator[str]:
    """Where the second lacks something of the first."""
    match given, understood:
        case dict(), dict():
            for name, value in given.items():
                if name in understood:
                    yield from lost(value, understood[name], f"{path}.{name}")
                else:
                    yield f"{path}.{name}"
        case list(), list():
            for place, (one, other) in enumerate(zip(given, understood, strict=True)):
                yield from lost(one, other, f"{path}[{place}]")
        case _:
            if given != understood:
                yield path


def test_the_table_of_machines_in_trouble_comes_with_what_names_them(helm):
    def names_machines(values: dict) -> bool:
        (container,) = only(helm.template(values), "Deployment")["spec"]["template"]["spec"]["containers"]
        return {"name": "FIVESPOT_MACHINE_METRICS", "value": "true"} in container["env"]

    assert not names_machines({})
    assert names_machines({"dashboard": {"enabled": True}})
    assert not names_machines({"dashboard": {"enabled": True, "machines": False}})
    assert names_machines({"dashboard": {"enabled": True}, "settings": {"machineMetrics": True}})

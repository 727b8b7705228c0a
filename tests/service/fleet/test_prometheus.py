"""What the answers of Prometheus mean; the queries themselves are tried on a real one."""

import re

import pytest
from prometheus_client import generate_latest

from service import metrics
from service.fleet.prometheus import QUANTILES, queries, read_answer, report_from
from tests.service.fleet.test_usage import MONTH


def vector(*samples):
    result = [{"metric": labels, "value": [1.0, value]} for labels, value in samples]
    return {"status": "success", "data": {"resultType": "vector", "result": result}}


def answered(**values):
    empty = dict.fromkeys(queries(MONTH), ())
    return empty | {name: read_answer(vector(*samples)) for name, samples in values.items()}


def test_hours_are_what_the_gauges_add_up_to():
    answers = answered(
        known=[({}, "8640")],
        ready=[({}, "1200")],
        phases=[({"phase": "Active"}, "1440"), ({"phase": "Inactive"}, "7200")],
        now=[({}, "1")],
        due=[({}, "20")],
        punctual=[({}, "19.0001")],
    )
    report = report_from(answers, MONTH)
    totals = report.totals
    assert (totals.hours, totals.served, totals.free, totals.machines) == (720.0, 100.0, 600.0, 1)
    assert (totals.due, totals.punctual, totals.punctuality) == (20, 19, 0.95)
    assert len(report.notes) == 1


def test_the_queries_name_what_the_operator_exposes():
    exposed = {name for family in metrics.REGISTRY.collect() for name in series_of(family)}
    asked = " ".join(queries(MONTH).values())
    assert set(re.findall(r"fivespot_\w+", asked)) <= exposed
    labels = set(re.findall(r'(fivespot_\w+)\{(\w+="[^"]+")\}', asked))
    assert len(labels) == 3
    text = generate_latest(metrics.REGISTRY).decode()
    assert all(re.search(rf"{name}\{{{re.escape(label)}\}}", text) for name, label in labels)


def series_of(family):
    ends = {"counter": ("_total",), "histogram": ("_bucket", "_count", "_sum")}
    return [family.name + end for end in ends.get(family.type, ("",))]


def test_data_for_a_part_of_the_time_are_said_to_be_that():
    report = report_from(answered(known=[({}, "2880")]), MONTH)
    assert "data for 10.0 of these 30.0 days" in report.notes[1]


def test_times_to_ready_are_by_kind_and_leave_out_what_was_not_measured():
    spreads = {name: [({"kind": "RemoteMachine"}, "30"), ({"kind": "AWSMachine"}, "NaN")] for name in QUANTILES}
    answers = answered(to_ready=[({"kind": "RemoteMachine"}, "7"), ({"kind": "AWSMachine"}, "0")], **spreads)
    found = report_from(answers, MONTH).totals.to_ready
    assert list(found) == ["RemoteMachine"]
    assert (found["RemoteMachine"].count, found["RemoteMachine"].p90) == (7, 30.0)


@pytest.mark.parametrize("number", ["NaN", "+Inf", "-Inf"])
def test_what_is_no_number_counts_as_not_measured(number):
    answers = answered(due=[({}, number)], ready=[({}, number)])
    assert (report_from(answers, MONTH).totals.due, report_from(answers, MONTH).totals.served) == (0, 0.0)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"status": "error", "error": "parse error"}, "parse error"),
        ({"status": "success", "data": {"resultType": "matrix", "result": []}}, "not one of Prometheus"),
        ([], "not one of Prometheus"),
        (vector()["data"], "not one of Prometheus"),
    ],
)
def test_anything_else_is_not_an_answer(body, message):
    with pytest.raises(ValueError, match=message):
        read_answer(body)

"""The report's totals from the metrics of the operator in Prometheus, for longer than the history of statuses reaches.

Pure: the queries, and what their answers mean. They are about all machines of the operator.
"""

from collections.abc import Mapping
from datetime import timedelta
from math import isfinite
from typing import Any, Final, NamedTuple

from crds.reasons import OverrideConditionReason
from service.fleet.usage import ReportPeriod, Spread, Totals, UsageReport

STEP: Final = timedelta(minutes=5)
"""How finely gauges are added up."""
QUANTILES: Final = {"p50": 0.5, "p90": 0.9, "p99": 0.99}
NOTE: Final = (
    "From the operator's metrics in Prometheus, for all of its machines: hours by how many machines were Ready or "
    "Inactive every five minutes, times to Ready by the buckets of a histogram. Windows are those whose machine was "
    "requested within five minutes of the opening, and was Ready. Metrics know no cost."
)


class Sample(NamedTuple):
    """One value, with its labels."""

    labels: Mapping[str, str]
    value: float


Answers = Mapping[str, tuple[Sample, ...]]


def queries(period: ReportPeriod) -> dict[str, str]:
    """The queries by name; each replica reports gauges of all objects, so the largest counts, and its own counters."""
    span, step = f"{_seconds(period.until - period.since)}s", f"{_seconds(STEP)}s"
    every = f"[{span}:{step}]"
    ready, phases = "max(fivespot_scheduledmachines_ready)", "max by (phase) (fivespot_scheduledmachines)"
    lateness, accepted = "fivespot_ready_lateness_seconds", OverrideConditionReason.IS_ACCEPTED
    found = {
        "known": f"count_over_time({ready}{every})",
        "ready": f"sum_over_time({ready}{every})",
        "phases": f"sum_over_time(({phases}){every})",
        "now": f"sum({phases}) or last_over_time((sum({phases}))[1h:{step}])",
        "due": _increase(f"{lateness}_count", span),
        "punctual": _increase(f'{lateness}_bucket{{le="60.0"}}', span),
        "cut_short": _increase('fivespot_drains_total{result="timed_out"}', span),
        "reclaims": _increase("fivespot_emergency_reclaims_total", span),
        "overrides": _increase(f'fivespot_overrides_judged_total{{reason="{accepted}"}}', span),
        "to_ready": f"sum by (kind) (increase(fivespot_time_to_ready_seconds_count[{span}]))",
    }
    buckets = f"sum by (le, kind) (increase(fivespot_time_to_ready_seconds_bucket[{span}]))"
    return found | {name: f"histogram_quantile({share}, {buckets})" for name, share in QUANTILES.items()}


def report_from(answers: Answers, period: ReportPeriod) -> UsageReport:
    """The report on what Prometheus knows of the period."""
    step = STEP / timedelta(hours=1)
    phases = {each.labels.get("phase", ""): each.value * step for each in answers["phases"]}
    totals = Totals(
        machines=round(_value(answers, "now")),
        hours=round(sum(phases.values()), 2),
        served=round(_value(answers, "ready") * step, 2),
        free=round(phases.get("Inactive", 0.0), 2),
        services=None,
        due=round(_value(answers, "due")),
        punctual=round(_value(answers, "punctual")),
        cut_short=round(_value(answers, "cut_short")),
        reclaims=round(_value(answers, "reclaims")),
        overrides=round(_value(answers, "overrides")),
        to_ready=_spreads(answers),
    )
    known = STEP * _value(answers, "known")
    asked = period.until - period.since
    notes = (NOTE,) if known >= asked - 2 * STEP else (NOTE, _shorter(known, asked))
    return UsageReport(period, totals, (), notes)


def _shorter(known: timedelta, asked: timedelta) -> str:
    days, of = known / timedelta(days=1), asked / timedelta(days=1)
    return f"Prometheus has data for {days:.1f} of these {of:.1f} days; the figures are for those."


def _spreads(answers: Answers) -> dict[str, Spread]:
    counts = {each.labels.get("kind", ""): round(each.value) for each in answers["to_ready"]}
    found = {name: {each.labels.get("kind", ""): each.value for each in answers[name]} for name in QUANTILES}
    return {
        kind: Spread(count, *(round(found[name].get(kind, 0.0), 1) for name in QUANTILES))
        for kind, count in sorted(counts.items())
        if count
    }


def _increase(series: str, span: str) -> str:
    return f"sum(increase({series}[{span}]))"


def _value(answers: Answers, name: str) -> float:
    """The only value of an answer; 0 without one, as for a counter that nothing has exposed yet."""
    found = answers[name]
    return found[0].value if found else 0.0


def _seconds(span: timedelta) -> int:
    return int(span.total_seconds())


def read_answer(body: Any) -> tuple[Sample, ...]:
    """The values in an answer of Prometheus' HTTP API; `ValueError` if it is none."""
    match body:
        case {"status": "success", "data": {"resultType": "vector", "result": list(result)}}:
            return tuple(sample for each in result if (sample := _sample(each)) is not None)
        case {"status": "error", "error": str(error)}:
            raise ValueError(error[:200])
        case _:
            raise ValueError("the answer is not one of Prometheus")


def _sample(raw: Any) -> Sample | None:
    match raw:
        case {"metric": dict(labels), "value": [_, str(text)]}:
            value = float(text)
            return Sample(labels, value) if isfinite(value) else None  # NaN: nothing was measured
        case _:
            raise ValueError("the answer is not one of Prometheus")

"""The dashboard for Grafana: what its panels show. `charts.generate` writes it to charts/5spot/files/dashboard.json."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

Raw = dict[str, Any]
WIDTH: Final = 24
"""Of the grid that Grafana lays panels out on."""
CHOSEN: Final = 'cluster=~"$cluster", namespace=~"$namespace"'
"""What every series is asked with: the variables of the dashboard."""
SERIES: Final = re.compile(r"\b(fivespot_\w+)(?:\{([^}]*)\})?")
SOURCE: Final[Raw] = {"type": "prometheus", "uid": "${datasource}"}
LAST: Final[Raw] = {"reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False}}


@dataclass(frozen=True, slots=True)
class Panel:
    """A panel: legends and their queries, without the variables, which `_chosen` adds."""

    title: str
    description: str
    queries: dict[str, str]
    unit: str = "short"
    kind: str = "timeseries"
    width: int = 8
    height: int = 7
    least: int | None = 0


def _stat(title: str, description: str, query: str, unit: str = "short") -> Panel:
    return Panel(title, description, {"": query}, unit, "stat", 4, 4, None)


def _quantile(part: float, histogram: str, by: str = "le") -> str:
    return f"histogram_quantile({part}, sum by ({by}) (rate({histogram}_bucket[$__rate_interval])))"


def _largest(gauge: str, label: str = "") -> str:
    """Every replica sees all objects: the largest number of a release counts, and those of releases are added."""
    grouped = f" by ({label})" if label else ""
    return f"sum{grouped} (max by (cluster, namespace{', ' + label if label else ''}) ({gauge}))"


def _counted(counter: str, label: str = "") -> str:
    return f"sum{f' by ({label})' if label else ''} (increase({counter}_total[$__rate_interval]))"


TROUBLE: Final = Panel(
    "Machines that need attention",
    "In phase Error, or not Ready in time, with what their status says: at most 100. They are named where the chart's "
    "`dashboard.machines` is true.",
    {"": "max by (object_namespace, object, phase, reason, message) (fivespot_scheduledmachine_trouble)"},
    "none", "table", WIDTH, 7, None,
)  # fmt: skip

ROWS: Final[dict[str, tuple[Panel, ...]]] = {
    "Machines": (
        _stat("Ready", "Machines whose Node is Ready.", _largest("fivespot_scheduledmachines_ready")),
        _stat(
            "Not Ready in time", "Machines whose Node is not Ready although provisioningTimeout is up.",
            _largest("fivespot_scheduledmachines_not_ready_in_time"),
        ),
        _stat(
            "In phase Error", "Machines that cannot go on until a user or an administrator changes something.",
            _largest('fivespot_scheduledmachines{phase="Error"}'),
        ),
        _stat(
            "Certificate expires in", "The one that expires first.",
            "min((fivespot_certificate_expiry_timestamp_seconds > 0) - time())", "s",
        ),
        _stat("Replicas", "Replicas that deliver metrics.", "count(fivespot_build_info)"),
        _stat(
            "Versions", "More than one during an upgrade only.", "count(count by (version) (fivespot_build_info))"
        ),
        TROUBLE,
        Panel(
            "ScheduledMachines by phase", "Every replica sees all of them, so the largest number counts.",
            {"{{phase}}": _largest("fivespot_scheduledmachines", "phase")},
        ),
        Panel(
            "Machines Ready", "Nodes that are Ready, and machines that are not although provisioningTimeout is up.",
            {
                "Ready": _largest("fivespot_scheduledmachines_ready"),
                "not Ready in time": _largest("fivespot_scheduledmachines_not_ready_in_time"),
            },
        ),
        Panel(
            "Time to Ready",
            "From the creation of a Machine until its Node is Ready, by the infrastructure object's kind.",
            {
                "p90 {{kind}}": _quantile(0.9, "fivespot_time_to_ready_seconds", "le, kind"),
                "median {{kind}}": _quantile(0.5, "fivespot_time_to_ready_seconds", "le, kind"),
            },
            "s",
        ),
    ),
    "Schedules": (
        Panel(
            "Windows opened late", "From the opening of a window to the creation of its Machine.",
            {
                "p99": _quantile(0.99, "fivespot_activation_lateness_seconds"),
                "median": _quantile(0.5, "fivespot_activation_lateness_seconds"),
            },
            "s",
        ),
        Panel(
            "Shutdowns begun late", "From the closing of a window to the beginning of the shutdown.",
            {
                "p99": _quantile(0.99, "fivespot_removal_lateness_seconds"),
                "median": _quantile(0.5, "fivespot_removal_lateness_seconds"),
            },
            "s",
        ),
        Panel(
            "Punctuality",
            "How long after the opening of its window a Node is Ready, and after the close a host is free; 0 is on "
            "time. startEarly and stopEarly move both.",
            {
                "p90 Ready": _quantile(0.9, "fivespot_ready_lateness_seconds"),
                "p90 free": _quantile(0.9, "fivespot_gone_lateness_seconds"),
            },
            "s",
        ),
        Panel(
            "Hours served", "From Ready to the beginning of the shutdown, counted at the end of each service.",
            {"hours": "sum(increase(fivespot_served_seconds_total[$__rate_interval])) / 3600"}, "h",
        ),
        Panel(
            "Turns in Clusters with a limit",
            "Machines that are provisioned or drained, and those that wait for it; the replicas add up.",
            {
                "{{queueing}}": "sum by (queueing) (fivespot_turns_taken)",
                "waiting for {{queueing}}": "sum by (queueing) (fivespot_turns_awaited)",
            },
        ),
        Panel(
            "Dry runs", "What dry runs reported instead of doing it.",
            {"{{reason}}": _counted("fivespot_dry_runs", "reason")},
        ),
        Panel(
            "Notifications", "What was sent, refused or dropped, attempts that failed, and what waits.",
            {
                "{{result}}": _counted("fivespot_notifications", "result"),
                "waiting": "sum(fivespot_notifications_queued)",
            },
        ),
        Panel("Drains", "How drains ended.", {"{{result}}": _counted("fivespot_drains", "result")}),
        Panel(
            "Evictions", "A disruption budget refuses blocked ones; the controller tries them again.",
            {"{{result}}": _counted("fivespot_evictions", "result")},
        ),
        Panel(
            "Emergencies", "What removes machines at once, and what goes with it.",
            {
                "reclaimed": _counted("fivespot_emergency_reclaims"),
                "kill switch": _counted("fivespot_kill_switches"),
                "pods deleted, {{result}}": _counted("fivespot_forced_pod_deletions", "result"),
                "namespaces deleted": _counted("fivespot_namespaces_terminating"),
            },
        ),
        Panel(
            "Overrides", "In force, by the state that they set; and what the controller did with new and old ones.",
            {
                "in force, {{state}}": "sum by (state) (fivespot_overrides_in_force)",
                "{{reason}}": _counted("fivespot_overrides_judged", "reason"),
                "deleted": _counted("fivespot_overrides_deleted"),
            },
        ),
    ),
    "Admission": (
        Panel(
            "Admission requests", "By webhook and by what it answered.",
            {
                "{{webhook}} {{outcome}}":
                    "sum by (webhook, outcome) (rate(fivespot_admission_requests_total[$__rate_interval]))"
            },
            "ops",
        ),
        Panel(
            "Duration of an admission request", "API servers give up after 3 s.",
            {"p99": _quantile(0.99, "fivespot_admission_duration_seconds")}, "s",
        ),
        Panel(
            "Violations by field", "What users get wrong.",
            {"{{field}}": _counted("fivespot_admission_violations", "field")},
        ),
    ),
    "The controller": (
        Panel(
            "Passes by result", "One pass looks at one ScheduledMachine.",
            {"{{result}}": "sum by (result) (rate(fivespot_reconciles_total[$__rate_interval]))"}, "ops",
        ),
        Panel(
            "Duration of a pass", "Longer ones wait for API servers.",
            {
                "p99": _quantile(0.99, "fivespot_reconcile_duration_seconds"),
                "median": _quantile(0.5, "fivespot_reconcile_duration_seconds"),
            },
            "s",
        ),
        Panel(
            "Queue", "Objects that are due, and how long they wait.",
            {
                "waiting": "sum(fivespot_queue_depth)",
                "p99 of waiting, s": _quantile(0.99, "fivespot_queue_latency_seconds"),
            },
        ),
        Panel(
            "Holders of each shard", "Must be 1.",
            {"{{namespace}} {{shard}}": "sum by (cluster, namespace, shard) (fivespot_shard_held)"},
        ),
        Panel(
            "Objects of each shard", "How evenly ScheduledMachines are spread.",
            {"{{namespace}} {{shard}}": "max by (cluster, namespace, shard) (fivespot_shard_objects)"},
        ),
        Panel(
            "Leases", "Won and lost, by shard.",
            {"{{shard}} {{event}}": _counted("fivespot_lease_transitions", "shard, event")},
        ),
    ),
    "API servers and processes": (
        Panel(
            "Requests to API servers", "Next to none at rest.",
            {
                "{{verb}} {{resource}}":
                    "sum by (verb, resource) (rate(fivespot_api_requests_total[$__rate_interval]))"
            },
            "reqps",
        ),
        Panel(
            "Refused or failed requests", "Status 0 means that no answer came.",
            {
                "{{verb}} {{resource}} {{status}}": "sum by (verb, resource, status) "
                '(rate(fivespot_api_requests_total{status=~"0|4..|5.."}[$__rate_interval]))'
            },
            "reqps",
        ),
        Panel(
            "Watches restarted", "By kind watched and reason.",
            {"{{resource}} {{reason}}": _counted("fivespot_watch_restarts", "resource, reason")},
        ),
        Panel(
            "Clock against the API server", "Windows open and close by the replica's clock.",
            {"{{pod}}": "fivespot_clock_skew_seconds"}, "s", least=None,
        ),
        Panel(
            "Memory", "Resident memory of each replica.",
            {"{{pod}}": "fivespot_process_resident_memory_bytes"}, "bytes",
        ),
    ),
}  # fmt: skip


def dashboard() -> str:
    """The dashboard as the chart carries it."""
    board = {
        "title": "5-Spot",
        "uid": "5spot",
        "tags": ["5spot", "cluster-api"],
        "editable": True,
        "schemaVersion": 39,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "timezone": "browser",
        "templating": {"list": list(_variables())},
        "panels": list(_laid_out()),
    }
    return json.dumps(board, indent=1, ensure_ascii=False) + "\n"


def _variables() -> Iterator[Raw]:
    yield {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Data source"}
    cluster = "The management cluster, where Prometheus or what is behind it adds such a label."
    yield _variable("cluster", "label_values(fivespot_build_info, cluster)", cluster)
    namespaces = 'label_values(fivespot_build_info{cluster=~"$cluster"}, namespace)'
    yield _variable("namespace", namespaces, "The namespace that the operator runs in.")


def _variable(name: str, query: str, description: str) -> Raw:
    return {
        "name": name,
        "label": name.capitalize(),
        "description": description,
        "type": "query",
        "datasource": SOURCE,
        "query": {"query": query, "refId": name},
        "refresh": 2,
        "sort": 1,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
        "options": [],
    }


def _laid_out() -> Iterator[Raw]:
    """Rows, each with its panels from left to right."""
    number, y = 0, 0
    for title, panels in ROWS.items():
        number += 1
        place = {"x": 0, "y": y, "w": WIDTH, "h": 1}
        yield {"id": number, "type": "row", "title": title, "collapsed": False, "gridPos": place, "panels": []}
        x, y, height = 0, y + 1, 0
        for panel in panels:
            if x + panel.width > WIDTH:
                x, y, height = 0, y + height, 0
            number += 1
            yield {"id": number, **_panel(panel), "gridPos": {"x": x, "y": y, "w": panel.width, "h": panel.height}}
            x, height = x + panel.width, max(height, panel.height)
        y += height


def _panel(panel: Panel) -> Raw:
    least = {} if panel.least is None else {"min": panel.least}
    shown: Raw = {
        "title": panel.title,
        "description": panel.description,
        "type": panel.kind,
        "datasource": SOURCE,
        "fieldConfig": {"defaults": {"unit": panel.unit, **least}, "overrides": []},
        "options": LAST if panel.kind == "stat" else {},
        "targets": [_target(*each) for each in enumerate(panel.queries.items())],
    }
    return shown | _as_table() if panel.kind == "table" else shown


def _target(number: int, query: tuple[str, str]) -> Raw:
    legend, expression = query
    named = {"legendFormat": legend} if legend else {"instant": True}
    return {"refId": chr(ord("A") + number), "expr": _chosen(expression), **named, "datasource": SOURCE}


def _chosen(expression: str) -> str:
    """Asks every series for the cluster and the namespace that the variables name."""

    def narrowed(match: re.Match[str]) -> str:
        further = f", {match[2]}" if match[2] else ""
        return f"{match[1]}{{{CHOSEN}{further}}}"

    return SERIES.sub(narrowed, expression)


def _as_table() -> Raw:
    """One line for each series, its labels in columns."""
    order = ("object_namespace", "object", "phase", "reason", "message")
    columns = {
        "excludeByName": {"Time": True, "Value": True},
        "indexByName": {name: place for place, name in enumerate(order)},
        "renameByName": {"object_namespace": "namespace", "object": "machine"},
    }
    wide = {"matcher": {"id": "byName", "options": "message"}, "properties": [{"id": "custom.width", "value": 900}]}
    query = _target(0, next(iter(TROUBLE.queries.items())))
    return {
        "fieldConfig": {
            "defaults": {"unit": "none", "custom": {"align": "left", "filterable": True}},
            "overrides": [wide],
        },
        "options": {"showHeader": True},
        "targets": [{**query, "format": "table"}],
        "transformations": [{"id": "organize", "options": columns}],
    }

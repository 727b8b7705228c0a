"""Every metric of the service, declared once with its help text; other modules import the metrics from here."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from fastapi import FastAPI, Request, Response
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    Metric,
    PlatformCollector,
    ProcessCollector,
)
from prometheus_client.exposition import choose_encoder
from prometheus_fastapi_instrumentator import Instrumentator
from prometheus_fastapi_instrumentator.metrics import Info

from crds.reasons import ACCEPTED, OverrideConditionReason
from service import __version__

NAMESPACE: Final = "fivespot"
REGISTRY: Final = CollectorRegistry()
ProcessCollector(namespace=NAMESPACE, registry=REGISTRY)
PlatformCollector(registry=REGISTRY)
GCCollector(registry=REGISTRY)

# A review takes well under a millisecond; what matters is how close it comes to the webhook's timeout of 3 s.
LATENCIES: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 3.0)
OTHER: Final = "other"
FIELDS: Final = frozenset(
    {
        "metadata.name",
        "metadata.generateName",
        "spec",
        "spec.bootstrapSpec",
        "spec.classRef",
        "spec.clusterName",
        "spec.gracefulShutdownTimeout",
        "spec.infrastructureSpec",
        "spec.killIfCommands",
        "spec.killSwitch",
        "spec.machineTemplate",
        "spec.from",
        "spec.machines",
        "spec.nodeDrainTimeout",
        "spec.reason",
        "spec.requestedBy",
        "spec.selector",
        "spec.state",
        "spec.until",
        "spec.namespaceSelector",
        "spec.nodeTaints",
        "spec.parameters",
        "spec.priority",
        "spec.provisioningTimeout",
        "spec.schedule",
    }
)

BUILD: Final = Gauge(
    "build_info", "The running version; always 1.", ["version"], namespace=NAMESPACE, registry=REGISTRY
)
BUILD.labels(version=__version__).set(1)

ADMISSION_REQUESTS: Final = Counter(
    "admission_requests",
    "Admission requests by webhook (validate, default) and outcome.",
    ["webhook", "outcome"],
    namespace=NAMESPACE,
    registry=REGISTRY,
)
ADMISSION_VIOLATIONS: Final = Counter(
    "admission_violations",
    "Violations found in rejected objects, by the field they are in.",
    ["field"],
    namespace=NAMESPACE,
    registry=REGISTRY,
)
ADMISSION_DURATION: Final = Histogram(
    "admission_duration_seconds",
    "Time from an admission request to its answer, by path and HTTP status.",
    ["handler", "status"],
    buckets=LATENCIES,
    namespace=NAMESPACE,
    registry=REGISTRY,
)
CERTIFICATE_EXPIRY: Final = Gauge(
    "certificate_expiry_timestamp_seconds",
    "When the serving certificate of the webhooks expires; 0 while there is none.",
    namespace=NAMESPACE,
    registry=REGISTRY,
)

RECONCILES: Final = Counter(
    "reconciles",
    "Passes over a ScheduledMachine by result: changed, unchanged, waiting, gone, error.",
    ["result"],
    namespace=NAMESPACE,
    registry=REGISTRY,
)
RECONCILE_DURATION: Final = Histogram(
    "reconcile_duration_seconds",
    "Duration of one pass over a ScheduledMachine.",
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
    namespace=NAMESPACE,
    registry=REGISTRY,
)


class ListGauge(Gauge):
    """A gauge whose label values are listed at each scrape: 1 for each, none for what is no longer listed."""

    rows: Callable[[], Iterable[Sequence[str]]] = staticmethod(tuple)

    def collect(self) -> Iterable[Metric]:
        """The samples, as they are now."""
        self.clear()
        for row in self.rows():
            self.labels(*row).set(1)
        return super().collect()


OBJECTS: Final = Gauge(
    "scheduledmachines",
    "ScheduledMachines by phase.",
    ["phase"],
    namespace=NAMESPACE,
    registry=REGISTRY,
)
OBJECTS_READY: Final = Gauge(
    "scheduledmachines_ready", "ScheduledMachines whose Node is Ready.", namespace=NAMESPACE, registry=REGISTRY
)
OBJECTS_NOT_READY_IN_TIME: Final = Gauge(
    "scheduledmachines_not_ready_in_time",
    "ScheduledMachines whose Node was not Ready within provisioningTimeout, and is not Ready yet.",
    namespace=NAMESPACE,
    registry=REGISTRY,
)
OBJECTS_IN_TROUBLE: Final = ListGauge(
    "scheduledmachine_trouble",
    "ScheduledMachines in phase Error or not Ready in time, one series each, at most 100, with what their status says; "
    "always 1. Only with --machine-metrics.",
    ["object_namespace", "object", "phase", "reason", "message"],
    namespace=NAMESPACE,
    registry=REGISTRY,
)
TIME_TO_READY: Final = Histogram(
    "time_to_ready_seconds",
    "Real time from the creation of a Machine until its Node is first Ready, by kind of the infrastructure object.",
    ["kind"],
    buckets=(5, 10, 30, 60, 120, 300, 600, 900, 1800, 3600),
    namespace=NAMESPACE,
    registry=REGISTRY,
)
KINDS_MAX: Final = 32
"""At most so many kinds have their own series; users choose the kind, and the values of a label must be limited."""
QUEUE_DEPTH: Final = Gauge(
    "queue_depth", "ScheduledMachines that are due and wait for a worker.", namespace=NAMESPACE, registry=REGISTRY
)
QUEUE_LATENCY: Final = Histogram(
    "queue_latency_seconds",
    "Time between a ScheduledMachine becoming due and a worker taking it.",
    buckets=(0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60),
    namespace=NAMESPACE,
    registry=REGISTRY,
)
LATENESS: Final = (0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 60, 120, 300)
ACTIVATION_LATENESS: Final = Histogram(
    "activation_lateness_seconds",
    "Real time from when a Machine was due, at the opening of a window less startEarly, to its creation.",
    buckets=LATENESS,
    namespace=NAMESPACE,
    registry=REGISTRY,
)
REMOVAL_LATENESS: Final = Histogram(
    "removal_lateness_seconds",
    "Real time from when a shutdown was due, at the close of a window less stopEarly, to its beginning.",
    buckets=LATENESS,
    namespace=NAMESPACE,
    registry=REGISTRY,
)
PUNCTUALITY: Final = (0, 1, 5, 15, 30, 60, 120, 300, 600, 1800, 3600)
READY_LATENESS: Final = Histogram(
    "ready_lateness_seconds",
    "Real time from the opening of a window until the Node of its machine is first Ready; 0 if it was Ready before. "
    "Machines that were requested later, such as after an edit, do not count.",
    buckets=PUNCTUALITY,
    namespace=NAMESPACE,
    registry=REGISTRY,
)
GONE_LATENESS: Final = Histogram(
    "gone_lateness_seconds",
    "Real time from the close of a window until its machine and all its objects are gone; 0 if they were gone before.",
    buckets=PUNCTUALITY,
    namespace=NAMESPACE,
    registry=REGISTRY,
)
SERVED_SECONDS: Final = Counter(
    "served_seconds",
    "Real time for which machines were in service, from Ready to the beginning of the shutdown; counted at the end of "
    "each service.",
    namespace=NAMESPACE,
    registry=REGISTRY,
)
SCHEDULE_EVALUATIONS: Final = Counter(
    "schedule_evaluations",
    "Schedules evaluated, by whether a window was open.",
    ["in_schedule"],
    namespace=NAMESPACE,
    registry=REGISTRY,
)
DRAINS: Final = Counter(
    "drains",
    "Machines deleted after a drain, by how it ended: completed, timed_out, skipped.",
    ["result"],
    namespace=NAMESPACE,
    registry=REGISTRY,
)
EVICTIONS: Final = Counter(
    "evictions",
    "Evictions requested, by answer: accepted, blocked.",
    ["result"],
    namespace=NAMESPACE,
    registry=REGISTRY,
)
KILL_SWITCHES: Final = Counter(
    "kill_switches", "Machines deleted by the kill switch.", namespace=NAMESPACE, registry=REGISTRY
)
EMERGENCY_RECLAIMS: Final = Counter(
    "emergency_reclaims",
    "Emergency reclaims: machines that were taken out because a Node requested it.",
    namespace=NAMESPACE,
    registry=REGISTRY,
)
NAMESPACES_TERMINATING: Final = Counter(
    "namespaces_terminating",
    "Namespaces deleted with machines in them that were not drained in time.",
    namespace=NAMESPACE,
    registry=REGISTRY,
)
FORCED_DELETIONS: Final = Counter(
    "forced_pod_deletions",
    "Pods deleted without grace period in emergency reclaims, by answer: accepted, failed.",
    ["result"],
    namespace=NAMESPACE,
    registry=REGISTRY,
)
OVERRIDES_IN_FORCE: Final = Gauge(
    "overrides_in_force",
    "ScheduleOverrides that have begun and not ended, by state (Open, Closed, Scheduled), on the replica that holds "
    "their shard.",
    ["state"],
    namespace=NAMESPACE,
    registry=REGISTRY,
)
OVERRIDES_JUDGED: Final = Counter(
    "overrides_judged",
    "ScheduleOverrides that the controller accepted or did not accept, by reason: Accepted, TooLong, Invalid.",
    ["reason"],
    namespace=NAMESPACE,
    registry=REGISTRY,
)
OVERRIDES_DELETED: Final = Counter(
    "overrides_deleted",
    "ScheduleOverrides that the controller deleted a day after their end.",
    namespace=NAMESPACE,
    registry=REGISTRY,
)
TURNS_AWAITED: Final = Gauge(
    "turns_awaited",
    "ScheduledMachines that wait for their turn because of a Cluster's limit, by turn: provisioning, draining.",
    ["queueing"],
    namespace=NAMESPACE,
    registry=REGISTRY,
)
TURNS_TAKEN: Final = Gauge(
    "turns_taken",
    "ScheduledMachines on the way, in Clusters that have a limit, by what: provisioning, draining.",
    ["queueing"],
    namespace=NAMESPACE,
    registry=REGISTRY,
)
DRY_RUNS: Final = Counter(
    "dry_runs",
    "What dry runs reported instead of doing it, by reason: WouldCreate, WouldDelete, WouldChange.",
    ["reason"],
    namespace=NAMESPACE,
    registry=REGISTRY,
)
NOTIFICATIONS: Final = Counter(
    "notifications",
    "Notifications by result: sent, dropped (the queue was full), refused (not sent again), failed (an attempt; sent "
    "again later).",
    ["result"],
    namespace=NAMESPACE,
    registry=REGISTRY,
)
NOTIFICATIONS_QUEUED: Final = Gauge(
    "notifications_queued", "Notifications that wait to be sent.", namespace=NAMESPACE, registry=REGISTRY
)
WATCH_RESTARTS: Final = Counter(
    "watch_restarts",
    "Watches that broke and were resumed, by kind watched and reason.",
    ["resource", "reason"],
    namespace=NAMESPACE,
    registry=REGISTRY,
)
WATCH_OBJECTS_UNREADABLE: Final = Counter(
    "watch_objects_unreadable",
    "Objects that became unreadable, by kind watched and reason: TooDeep (kept without its deepest levels), "
    "TooLarge and Malformed (ignored until they change).",
    ["resource", "reason"],
    namespace=NAMESPACE,
    registry=REGISTRY,
)
KINDS_WATCHED: Final = Gauge(
    "kinds_watched",
    "Providers' kinds that are watched: those that the API server serves and a ScheduledMachine names.",
    namespace=NAMESPACE,
    registry=REGISTRY,
)
API_REQUESTS: Final = Counter(
    "api_requests",
    "Requests to API servers, by verb, resource and HTTP status (0: no answer; other: not an HTTP status).",
    ["verb", "resource", "status"],
    namespace=NAMESPACE,
    registry=REGISTRY,
)
SHARD_HELD: Final = Gauge(
    "shard_held",
    "Whether this replica holds a shard: 1 if it does.",
    ["shard"],
    namespace=NAMESPACE,
    registry=REGISTRY,
)
SHARD_OBJECTS: Final = Gauge(
    "shard_objects",
    "ScheduledMachines of a shard, on the replica that holds it; 0 on the others.",
    ["shard"],
    namespace=NAMESPACE,
    registry=REGISTRY,
)
LEASE_TRANSITIONS: Final = Counter(
    "lease_transitions",
    "Changes of the Lease of a shard on this replica, by shard and event: acquired, lost, released.",
    ["shard", "event"],
    namespace=NAMESPACE,
    registry=REGISTRY,
)
FOREIGN_RELEASES: Final = Gauge(
    "foreign_releases",
    "Other releases that act in namespaces that this one watches; while there are any, this one does not act.",
    namespace=NAMESPACE,
    registry=REGISTRY,
)
CLOCK_TIME: Final = Gauge(
    "clock_time_seconds",
    "The time that schedules follow, in seconds since 1970; differs from the wall clock if it is simulated.",
    namespace=NAMESPACE,
    registry=REGISTRY,
)
CLOCK_SKEW: Final = Gauge(
    "clock_skew_seconds",
    "How many seconds the operator's clock is ahead of the management cluster's API server.",
    namespace=NAMESPACE,
    registry=REGISTRY,
)


def start_at_zero(counter: Counter, *results: str) -> None:
    """Makes series: `increase` ignores the first value of one, so an alert would miss the first event."""
    for result in results:
        counter.labels(result)


start_at_zero(DRAINS, "completed", "timed_out", "skipped")
start_at_zero(EVICTIONS, "accepted", "blocked")
start_at_zero(OVERRIDES_JUDGED, *(each for each in OverrideConditionReason if each.condition == ACCEPTED))
start_at_zero(NOTIFICATIONS, "sent", "dropped", "refused", "failed")
start_at_zero(FORCED_DELETIONS, "accepted", "failed")


class AdmissionRecorder:
    """Counts the answers of the webhooks; looks labels up only once, as this runs for every request."""

    def __init__(self) -> None:
        self._outcomes: dict[tuple[str, str], Counter] = {}
        self._durations: dict[tuple[str, int], Histogram] = {}

    def answered(self, webhook: str, outcome: str, fields: tuple[str, ...]) -> None:
        """Counts an answered request; `fields` are the invalid ones."""
        counter = self._outcomes.get((webhook, outcome))
        if counter is None:
            counter = self._outcomes[webhook, outcome] = ADMISSION_REQUESTS.labels(webhook, outcome)
        counter.inc()
        for field in fields:
            ADMISSION_VIOLATIONS.labels(_known(field)).inc()

    def took(self, path: str, status: int, seconds: float) -> None:
        """Observes how long an answered request took."""
        histogram = self._durations.get((path, status))
        if histogram is None:
            histogram = self._durations[path, status] = ADMISSION_DURATION.labels(path, f"{status // 100}xx")
        histogram.observe(seconds)


def instrument(app: FastAPI) -> None:
    """Measures every request to the webhooks that is no review, such as one with another method or path."""

    def observe(info: Info) -> None:
        ADMISSION_DURATION.labels(info.modified_handler, info.modified_status).observe(info.modified_duration)

    Instrumentator().add(observe).instrument(app)


def create_app(registry: CollectorRegistry = REGISTRY) -> FastAPI:
    """Serves `/metrics`."""
    app = FastAPI(title="5-Spot metrics", openapi_url=None, docs_url=None, redoc_url=None)

    async def metrics(request: Request) -> Response:
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        return Response(encode(registry), headers={"content-type": content_type})

    app.add_route("/metrics", metrics, methods=["GET"])
    return app


_kinds: Final[set[str]] = set()


def kind_label(kind: str) -> str:
    """The kind as the value of a label; "other" if there are too many kinds."""
    if kind not in _kinds and len(_kinds) >= KINDS_MAX:
        return OTHER
    _kinds.add(kind)
    return kind


def _known(field: str) -> str:
    # Users choose the names of unknown fields, and the values of a label must be limited.
    parts = field.split("[", 1)[0].split(".")
    short = ".".join(parts[:2])
    return short if short in FIELDS else OTHER

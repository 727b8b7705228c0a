"""Sends Events to the API server in the background, after the work that they report."""

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import structlog

from crds import names
from crds.text import one_line_of_bytes
from service import metrics
from service.act.backlog import Backlog
from service.decide.plan import Event
from service.decide.reasons import Reason
from service.decide.world import Identity
from service.kube.client import Client
from service.kube.errors import AlreadyExists, Forbidden, KubeError, NotFound, Rejected
from service.kube.resource import EVENTS

NOTE_MAX = 1024
"""In bytes."""
BACKLOG_MAX = 50_000
MAX_DELAY_SECONDS = 30.0
"""How long work that is due may delay Events."""
BATCH_SIZE = 4
"""How many Events are sent at a time while no work is due."""
DEFAULT_NAMESPACE = "default"
TERMINATING_SECONDS = 600.0
"""How long the end of a namespace is not reported again."""
_TERMINATION = (
    "Kubernetes deletes its ScheduledMachines, Machines, infrastructure objects and Secrets at once, so Nodes are not "
    "drained in time. Delete the ScheduledMachines and wait until they are gone before you delete a namespace."
)
_POLL_SECONDS = 0.2
_ATTEMPTS = 5

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Regarding:
    """The object that an Event is about."""

    api_version: str
    kind: str
    name: str
    namespace: str = ""
    uid: str = ""

    @property
    def event_namespace(self) -> str:
        """The namespace of its Events; those of cluster-scoped objects are in `default`."""
        return self.namespace or DEFAULT_NAMESPACE

    def to_json(self) -> dict[str, str]:
        given = {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "namespace": self.namespace,
            "name": self.name,
            "uid": self.uid,
        }
        return {key: value for key, value in given.items() if value}


@dataclass(frozen=True, slots=True)
class _Pending:
    regarding: _Regarding
    event: Event
    at: datetime
    since: float
    number: int


class EventRecorder:
    """Queues Events and sends them, a few at a time; `busy` returns whether reconciliations are due."""

    def __init__(self, client: Client, *, instance: str, busy: Callable[[], bool]) -> None:
        self._client = client
        self._instance = instance
        self._busy = busy
        self._backlog: Backlog[_Pending] = Backlog(BACKLOG_MAX)
        self._number = 0
        self._terminating: dict[str, float] = {}
        """Namespaces that are being deleted, and when that was reported."""
        self._recorded = asyncio.Event()
        self.idle = asyncio.Event()
        self.idle.set()

    def record(self, subject: Identity, event: Event) -> None:
        """Queues an Event; never waits."""
        self._record(_Regarding(names.API_VERSION, names.KIND, subject.name, subject.namespace, subject.uid), event)

    def record_about(self, raw: Mapping[str, Any], notice: Event) -> None:
        """Takes down an Event about another object of ours, such as a calendar; never waits."""
        metadata = raw["metadata"]
        regarding = _Regarding(
            raw["apiVersion"], raw["kind"], metadata["name"], metadata.get("namespace", ""), metadata["uid"]
        )
        self._record(regarding, notice)

    def _record(self, regarding: _Regarding, event: Event) -> None:
        # `kubectl describe` sorts Events by name: the numbers increase with time and are unique.
        self._number = max(self._number + 1, time.time_ns())
        pending = _Pending(regarding, event, datetime.now(UTC), time.monotonic(), self._number)
        self._backlog.append(regarding.event_namespace, pending)
        self.idle.clear()
        self._recorded.set()

    async def run(self) -> None:
        """Sends Events until cancelled."""
        while True:
            await self._recorded.wait()
            while self._backlog:
                await self._wait_for_work(self._backlog.first())
                count = 1 if self._busy() else BATCH_SIZE
                batch = [self._backlog.popleft() for _ in range(min(count, len(self._backlog)))]
                await asyncio.gather(*map(self._send, batch))
            self._recorded.clear()
            self.idle.set()

    async def finish(self, within: float) -> None:
        """Waits until the rest is sent, as no other replica has it; `run` must still be running."""
        self._busy = lambda: False
        with suppress(TimeoutError):
            async with asyncio.timeout(within):
                await self.idle.wait()

    async def _wait_for_work(self, first: _Pending) -> None:
        while self._busy() and time.monotonic() - first.since < MAX_DELAY_SECONDS:  # noqa: ASYNC110 - a queue has no event
            await asyncio.sleep(_POLL_SECONDS)

    async def _send(self, pending: _Pending) -> None:
        body = self._body(pending)
        for attempt in range(_ATTEMPTS):
            try:
                await self._client.create(EVENTS, body, namespace=pending.regarding.event_namespace)
            except AlreadyExists:
                return  # the answer to an earlier attempt was lost
            except (NotFound, Forbidden) as error:
                # The namespace is gone or being deleted, and takes no Events.
                log.debug("event not stored", reason=pending.event.reason, error=error.message)
                if error.namespace_terminating and pending.regarding.namespace:
                    self._report_termination(pending.regarding)
                return
            except Rejected as error:
                # The API server will never store it: the Events behind it must not wait.
                log.warning("event refused", reason=pending.event.reason, error=error.message)
                return
            except KubeError as error:
                log.info("event delayed", reason=pending.event.reason, error=error.message)
                await asyncio.sleep(max(error.retry_after or 0.0, 2.0**attempt))
            else:
                return

    def _report_termination(self, last: _Regarding) -> None:
        """A namespace that is being deleted takes no Events: one about the Namespace goes to `default`, once."""
        now = time.monotonic()
        namespace = last.namespace
        self._terminating = {name: at for name, at in self._terminating.items() if now - at < TERMINATING_SECONDS}
        if namespace in self._terminating:
            return
        self._terminating[namespace] = now
        metrics.NAMESPACES_TERMINATING.inc()
        log.warning("namespace is being deleted, its machines are not drained in time", namespace=namespace)
        message = f"Namespace {namespace} is being deleted. {_TERMINATION}"
        self._record(_Regarding("v1", "Namespace", namespace), Event(Reason.NAMESPACE_TERMINATING, message))

    def _body(self, pending: _Pending) -> dict[str, object]:
        regarding, event = pending.regarding, pending.event
        return {
            "apiVersion": EVENTS.api_version,
            "kind": EVENTS.kind,
            "metadata": {"name": f"{regarding.name}.{pending.number:016x}", "namespace": regarding.event_namespace},
            "eventTime": pending.at.isoformat(timespec="microseconds").replace("+00:00", "Z"),
            "reportingController": names.GROUP,
            "reportingInstance": self._instance,
            "action": event.reason,
            "reason": event.reason,
            "type": event.severity,
            "note": one_line_of_bytes(event.message, NOTE_MAX),
            "regarding": regarding.to_json(),
        }

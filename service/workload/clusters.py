"""The workload clusters that Nodes live in: one connection each, shared by all machines of the cluster.

A connection opens when the first holder needs it, and closes some time after the last one releases it.
"""

import asyncio
from contextvars import Context

import structlog

from service.decide.reasons import Reason
from service.kube.client import Client
from service.kube.pace import WatchThrottle
from service.runtime.key import Key
from service.runtime.tasks import start
from service.workload.connection import ClusterListener, WorkloadCluster, WorkloadUnreachable

log = structlog.get_logger()
LINGER_SECONDS = 60.0
_CRASH_PAUSE_SECONDS = 60.0


class WorkloadClusters:
    """Workload clusters by namespace and name. A pass that needs one holds it; `run` must run meanwhile."""

    def __init__(
        self,
        management: Client,
        listener: ClusterListener | None = None,
        *,
        linger_seconds: float = LINGER_SECONDS,
    ) -> None:
        self._management = management
        self._listener = listener or ClusterListener()
        self._linger = linger_seconds
        self._throttle = WatchThrottle()
        self._open: dict[Key, WorkloadCluster] = {}
        self._tasks: dict[Key, asyncio.Task[None]] = {}
        self._held: dict[Key, Key] = {}
        self._holders: dict[Key, set[Key]] = {}
        self._group: asyncio.TaskGroup | None = None

    def hold(self, cluster: Key, holder: Key) -> WorkloadCluster:
        """Opens the cluster if necessary; it stays open until `holder` releases it or holds another."""
        if self._held.get(holder) != cluster:
            self.release(holder)
            self._held[holder] = cluster
            self._holders.setdefault(cluster, set()).add(holder)
        workload = self._open.get(cluster)
        if workload is None:
            workload = WorkloadCluster(cluster, self._management, self._listener, self._throttle)
            self._open[cluster] = workload
            self._start(workload)
        return workload

    def held_by(self, holder: Key, cluster: Key | None) -> WorkloadCluster:
        """`hold` for a cluster that a spec may fail to name: `WorkloadUnreachable` then."""
        if cluster is None:
            raise WorkloadUnreachable("the spec names no cluster", reason=Reason.NO_CLUSTER)
        return self.hold(cluster, holder)

    def release(self, holder: Key) -> None:
        """`holder` no longer needs a cluster."""
        cluster = self._held.pop(holder, None)
        if cluster is None:
            return
        holders = self._holders[cluster]
        holders.discard(holder)
        if not holders:
            del self._holders[cluster]
            # Often another holder needs it soon: a new connection and list cost more than an idle watch.
            asyncio.get_running_loop().call_later(self._linger, self._close_unless_held, cluster)

    def get(self, cluster: Key) -> WorkloadCluster | None:
        """The cluster if it is open."""
        return self._open.get(cluster)

    def holders(self, cluster: Key) -> frozenset[Key]:
        """The holders of a cluster."""
        return frozenset(self._holders.get(cluster, ()))

    async def run(self) -> None:
        """Connects to every cluster that is held, until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                for workload in self._open.values():
                    self._start(workload)
                await asyncio.Event().wait()
        finally:
            self._group = None

    def subscribe(self, listener: ClusterListener) -> None:
        """Replaces the listener; clusters that are already open keep theirs."""
        self._listener = listener

    def _start(self, workload: WorkloadCluster) -> None:
        if self._group is not None:
            self._tasks[workload.key] = start(
                self._group,
                _run_supervised(workload),
                name=f"cluster {workload.key}",
                context=Context(),  # its log lines must not carry the key of the pass that opened it
            )

    def _close_unless_held(self, cluster: Key) -> None:
        if cluster in self._holders:
            return
        self._open.pop(cluster, None)
        task = self._tasks.pop(cluster, None)
        if task is not None:
            task.cancel()


async def _run_supervised(workload: WorkloadCluster) -> None:
    """Restarts the connection after an unexpected error: no workload cluster may end this process."""
    while True:
        try:
            await workload.run()
        except Exception:
            log.exception("the connection to a workload cluster failed unexpectedly", cluster=str(workload.key))
            workload.report_broken()
            await asyncio.sleep(_CRASH_PAUSE_SECONDS)

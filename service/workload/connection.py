"""The connection to one workload cluster: a client, a Node watch, and whether both can be relied on.

While a cluster cannot be reached, the connection says why and retries with back-off; only the machines of that cluster
wait for it.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import structlog

from crds.names import KUBECONFIG_SECRET_SUFFIX
from service.decide.reasons import AnyReason, Reason, read_reason
from service.decide.world import Reachability
from service.kube.client import Client
from service.kube.credentials import KubeconfigRefused, Token
from service.kube.errors import KubeError, NotFound, Unauthorized, Unavailable, Untrusted, bounded
from service.kube.pace import Limited, WatchThrottle
from service.kube.resource import NODES, SECRETS
from service.kube.transport import Call, Limits
from service.runtime.backoff import Backoff
from service.runtime.cache import Cache, Change
from service.runtime.informer import Informer
from service.runtime.key import Key
from service.runtime.tasks import start
from service.runtime.watch import ListWatch, Reflector
from service.workload.kubeconfig import ClusterAccess, read_secret

log = structlog.get_logger()

# Low limits: a cluster that does not answer must not hold up the workers that serve others.
LIMITS = Limits(
    calls=8,
    call_seconds=10.0,
    connect_seconds=5.0,
    body_bytes=16 * 1024 * 1024,
    page_bytes=4 * 1024 * 1024,
    line_bytes=4 * 1024 * 1024,
    values=50_000,
)
PAGE = 100
"""A Node or pod has some hundred values, so that a page of them stays below the limit of values."""
RECONNECT_BACKOFF = Backoff(base=2.0, cap=60.0, jitter=0.5)
# Enough for some ten thousand Nodes; a server that sends more is broken or hostile.
NODE_BYTES = 64 * 1024 * 1024
_MAX_UNANSWERED = 2


class WorkloadUnreachable(Unavailable):
    """The workload cluster is known to be unreachable; nothing was sent. `reason` fits a condition."""


CONNECTING = Reachability(
    reachable=False, reason=Reason.CONNECTING, message="the workload cluster has not answered yet"
)
REACHABLE = Reachability(reachable=True, reason=Reason.REACHABLE, message="")

BROKEN = Reachability(
    reachable=False, reason=Reason.CONNECTION_BROKEN, message="the operator failed to connect; its log says more"
)


def slim_node(raw: dict[str, Any]) -> dict[str, Any]:
    """Keeps what decisions read: without images, volumes, field managers and the times of heartbeats.

    `TypeError` if it is not a valid Node: decisions rely on its shape, and the server belongs to others.
    """
    status = raw.get("status") or {}
    spec = raw.get("spec") or {}
    metadata = {key: value for key, value in raw["metadata"].items() if key != "managedFields"}
    conditions = [
        {key: condition[key] for key in ("type", "status", "reason", "message") if key in condition}
        for condition in status.get("conditions") or ()
    ]
    info = {"machineID": (status.get("nodeInfo") or {}).get("machineID", "")}
    texts = [metadata.get("labels") or {}, metadata.get("annotations") or {}, *conditions, *(spec.get("taints") or ())]
    named = {"providerID": spec.get("providerID") or "", **info}
    if not all(isinstance(value, str | None) for found in (*texts, named) for value in found.values()):
        raise TypeError("a label, annotation, condition, taint or id is not a string")
    return {
        "metadata": metadata,
        "spec": spec,
        "status": {"conditions": conditions, "nodeInfo": info},
    }


def _ignore(*_: object) -> None:
    """For a listener that is not needed."""


@dataclass(frozen=True, slots=True)
class ClusterListener:
    """What is called when something happens in a workload cluster, and what guards the writes to it."""

    node: Callable[[Key, Change], None] = _ignore
    """With the cluster and the change, whenever one of its Nodes changes."""
    state: Callable[[Key], None] = _ignore
    """With the cluster, whenever it becomes reachable or unreachable, or the reason changes."""
    restart: Callable[[str, str], None] = _ignore
    """With the kind watched and the reason, whenever a watch broke."""
    defect: Callable[[str, str], None] = _ignore
    """With the kind of an object that cannot be read, and what is wrong with it."""
    call: Callable[[Call], None] = _ignore
    """With every call that was answered or given up."""
    guard: Callable[[], None] = _ignore
    """Before each write; raises to prevent it."""


class WorkloadCluster:
    """One workload cluster. `nodes` is its cache of Nodes, `state` whether that can be relied on now."""

    def __init__(self, key: Key, management: Client, listener: ClusterListener, throttle: WatchThrottle) -> None:
        self.key = key
        self.state = CONNECTING
        self.settled = asyncio.Event()
        """Set as soon as it is known whether the cluster can be reached."""
        self.nodes = Cache(slim=slim_node, budget=NODE_BYTES)
        self._management = management
        self._pace = Limited(throttle)
        self._listener = listener
        self.nodes.listen(partial(listener.node, key))
        self._access: ClusterAccess | None = None
        self._client: Client | None = None
        self._reflector: Reflector | None = None
        self._group: asyncio.TaskGroup | None = None
        self._informers: dict[str, Informer] = {}
        self._informer_tasks: dict[str, asyncio.Task[None]] = {}
        self._access_lock = asyncio.Lock()
        self._unanswered = 0
        self._suspect = asyncio.Event()

    def client(self) -> Client:
        """The client for calls; `WorkloadUnreachable` at once while the cluster is known to be unreachable."""
        if self._client is None or not self.state.reachable:
            raise WorkloadUnreachable(f"cluster {self.key}: {self.state.message}", reason=self.state.reason)
        return self._client

    def watch(self, name: str, make: Callable[[Client], Informer]) -> Informer:
        """The informer of that name, made by `make` on the first call; it runs as long as the connection.

        Its failures do not make the cluster count as unreachable.
        """
        client = self.client()
        informer = self._informers.get(name)
        if informer is None:
            informer = self._informers[name] = make(client)
            informer.on_restart(partial(self._listener.restart, informer.resource.plural))
            informer.on_defect(partial(self._listener.defect, informer.resource.plural))
            if self._group is not None:
                self._informer_tasks[name] = start(self._group, informer.run(), name=f"watch {name} of {self.key}")
        return informer

    def unwatch(self, name: str) -> None:
        """Stops the informer of that name and drops its cache."""
        self._informers.pop(name, None)
        task = self._informer_tasks.pop(name, None)
        if task is not None:
            task.cancel()

    async def run(self) -> None:
        """Keeps the connection until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                group.create_task(self._watch_nodes())
                group.create_task(self._probe_if_suspect())
        finally:
            client = self._client
            self._group = None
            self._informers = {}
            self._informer_tasks = {}
            self._client = None
            self._reflector = None
            self.state = CONNECTING
            if client is not None:
                await client.close()

    def report_broken(self) -> None:
        """Reports an unexpected error as the state of the connection."""
        self._report(BROKEN)

    async def refresh(self) -> bool:
        """Reads the Secret again after a refused token; returns whether its content is new."""
        before = self._access
        await self._apply_access(await self._read_access())
        return self._access != before

    async def _watch_nodes(self) -> None:
        failures = 0
        while True:
            try:
                reflector = await self._apply_access(await self._read_access())
                failures = 0
                await reflector.list_and_watch()
            except KubeError as error:
                failures += 1
                pause = self._reflector.failed(error) if self._reflector else RECONNECT_BACKOFF.seconds(failures, 0.5)
                self._failed(error)
                await asyncio.sleep(pause)

    async def _read_access(self) -> ClusterAccess:
        name = f"{self.key.name}{KUBECONFIG_SECRET_SUFFIX}"
        try:
            secret = await self._management.get(SECRETS, name, namespace=self.key.namespace)
            # In a thread, as parsing YAML would block the event loop for too long.
            return await asyncio.to_thread(read_secret, secret, self.key.name)
        except NotFound as error:
            raise WorkloadUnreachable(f"there is no Secret {name}", reason=Reason.KUBECONFIG_NOT_FOUND) from error
        except KubeconfigRefused as error:
            raise WorkloadUnreachable(f"Secret {name}: {error}", reason=Reason.KUBECONFIG_REFUSED) from error
        except Unavailable:
            if self._access is None:
                raise
            return self._access  # only the management cluster is unavailable: keep the access that is known

    async def _apply_access(self, access: ClusterAccess) -> Reflector:
        async with self._access_lock:
            if self._client is None or self._access is None or self._reflector is None:
                self._reflector = await self._connect(access)
            elif access != self._access:
                await self._swap_access(self._client, self._reflector, self._access, access)
            self._access = access
            return self._reflector

    async def _connect(self, access: ClusterAccess) -> Reflector:
        # A late write is as dangerous here as in the management cluster, so the same limit applies.
        unacknowledged = self._management.transport.limits.unacknowledged_seconds
        limits = replace(LIMITS, unacknowledged_seconds=unacknowledged)
        self._client = Client(await _endpoint(access), _SecretToken(access.token, self), limits=limits)
        self._client.pace = self._pace
        self._client.guard_writes(self._listener.guard)
        self._client.observe_calls(self._observe_call)
        reflector = Reflector(ListWatch(self._client, NODES, page_size=PAGE), self.nodes, backoff=RECONNECT_BACKOFF)
        reflector.on_connected = self._connected
        reflector.on_restart = partial(self._listener.restart, NODES.plural)
        reflector.on_defect = partial(self._listener.defect, NODES.plural)
        return reflector

    async def _swap_access(self, client: Client, reflector: Reflector, old: ClusterAccess, new: ClusterAccess) -> None:
        token = _SecretToken(new.token, self)
        endpoint = client.transport.endpoint if new.only_token_differs(old) else await _endpoint(new)
        await client.transport.replace(endpoint, token)
        if new.server != old.server:
            reflector.relist()
            for informer in self._informers.values():
                informer.relist()

    def _connected(self) -> None:
        self._unanswered = 0
        self._suspect.clear()
        self._report(REACHABLE)

    def _failed(self, error: KubeError) -> None:
        definite = isinstance(error, WorkloadUnreachable | Unauthorized)
        repeated = self._reflector is None or self._reflector.failures > 1
        # A single broken connection is normal: the next try usually succeeds, so the state stays as it is.
        if definite or repeated or not self.state.reachable:
            state = Reachability(reachable=False, reason=_reason(error), message=error.message)
            self._report(state, found=str(error.__cause__ or ""))

    def _observe_call(self, call: Call) -> None:
        self._listener.call(call)
        if call.status:
            self._unanswered = 0
        else:
            self._unanswered += 1
        if self._unanswered >= _MAX_UNANSWERED and self.state.reachable:
            # The watch may take a minute to notice; until then no worker should wait for timeouts.
            self._suspect.set()
            self._report(
                Reachability(reachable=False, reason=Reason.NO_ANSWER, message="the workload cluster does not answer")
            )

    async def _probe_if_suspect(self) -> None:
        """Probes a cluster that left calls unanswered until it answers again, or its watch reconnects."""
        while True:
            await self._suspect.wait()
            failures = 1
            while self._suspect.is_set() and not await self._answers():
                await asyncio.sleep(RECONNECT_BACKOFF.seconds(failures, 0.5))
                failures += 1
            self._unanswered = 0
            self._suspect.clear()
            if self._reflector is not None and self._reflector.error is None:
                self._report(REACHABLE)

    async def _answers(self) -> bool:
        try:
            if self._client is not None:
                await self._client.raw_get("/version")
        except Unavailable as error:
            await self._reread_access(error)
            return False
        except KubeError:
            return True  # an error response is an answer too
        return True

    async def _reread_access(self, why: Unavailable) -> None:
        """Reads the Secret again: CA or address may have changed, and an open watch would not notice for minutes."""
        try:
            if not await self.refresh() and isinstance(why, Untrusted):
                self._failed(why)
        except KubeError as error:
            self._failed(error)

    def _report(self, state: Reachability, found: str = "") -> None:
        """Sets the state; `found` goes to the operator's own log only."""
        changed = state != self.state
        self.state = state
        self.settled.set()
        if changed:
            facts = {"reachable": state.reachable, "reason": state.reason, "found": bounded(found)}
            log.info("the state of a workload cluster changed", cluster=str(self.key), **facts)
            self._listener.state(self.key)


class _SecretToken(Token):
    """The token of a kubeconfig Secret; the Secret is read again when the token is refused."""

    def __init__(self, token: str | None, workload: WorkloadCluster) -> None:
        super().__init__(token)
        self._workload = workload

    async def refresh(self) -> bool:
        """Reads the Secret again; returns whether its content is new."""
        return await self._workload.refresh()


async def _endpoint(access: ClusterAccess) -> Any:
    try:
        return await asyncio.to_thread(access.endpoint)
    except KubeconfigRefused as error:
        raise WorkloadUnreachable(
            f"the kubeconfig cannot be used: {error}", reason=Reason.KUBECONFIG_REFUSED
        ) from error


def _reason(error: KubeError) -> AnyReason:
    match error:
        case WorkloadUnreachable():
            return read_reason(error.reason)
        case Unavailable():
            return Reason.NO_ANSWER  # for an untrusted certificate too, which would reveal an open port
        case _:
            return Reason.for_error(type(error))

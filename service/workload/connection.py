"""The connection to one workload cluster: a client, a Node watch, and whether both can be relied on.

A cluster that cannot be reached says why, is tried again calmly, and keeps nobody waiting but its own machines.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import structlog

from crds.names import KUBECONFIG_SECRET_SUFFIX
from service.decide.reasons import AnyReason, Reason, read_reason
from service.kube.client import Client
from service.kube.credentials import KubeconfigRefused, Token
from service.kube.errors import KubeError, NotFound, Unauthorized, Unavailable, Untrusted, bounded
from service.kube.pace import Limited, WatchThrottle
from service.kube.resource import NODES, SECRETS
from service.kube.transport import Call, Limits
from service.runtime.backoff import Backoff
from service.runtime.cache import Cache
from service.runtime.informer import Informer
from service.runtime.key import Key
from service.runtime.tasks import start
from service.runtime.watch import Objects, Reflector
from service.workload.kubeconfig import ClusterAccess, read_secret

log = structlog.get_logger()

# Short and few: a cluster that does not answer must not hold up the workers that serve others.
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
"""A Node or pod has some hundred values, so a page of them has fewer than are taken in at once."""
PATIENCE = Backoff(base=2.0, cap=60.0, jitter=0.5)
# Some ten thousand Nodes; a server that sends more is up to no good.
NODE_BYTES = 64 * 1024 * 1024
_SILENT_CALLS = 2


class WorkloadUnreachable(Unavailable):
    """The workload cluster is known to be out of reach; nothing was sent. `reason` fits a condition."""


@dataclass(frozen=True, slots=True)
class Reachability:
    """Whether a workload cluster can be reached, and if not, why."""

    reachable: bool
    reason: AnyReason
    message: str


CONNECTING = Reachability(
    reachable=False, reason=Reason.CONNECTING, message="the workload cluster has not answered yet"
)
REACHABLE = Reachability(reachable=True, reason=Reason.REACHABLE, message="")

BROKEN = Reachability(
    reachable=False, reason=Reason.CONNECTION_BROKEN, message="the operator failed to connect; its log says more"
)


def slim_node(raw: dict[str, Any]) -> dict[str, Any]:
    """What decisions look at: without images, volumes, field managers and the times of heartbeats.

    `TypeError` if it is no Node: decisions rely on its shape, and the server is somebody else's.
    """
    status, spec = raw.get("status") or {}, raw.get("spec") or {}
    metadata = {key: value for key, value in raw["metadata"].items() if key != "managedFields"}
    conditions = [
        {key: condition[key] for key in ("type", "status", "reason", "message") if key in condition}
        for condition in status.get("conditions") or ()
    ]
    info = {"machineID": (status.get("nodeInfo") or {}).get("machineID", "")}
    texts = [metadata.get("labels") or {}, metadata.get("annotations") or {}, *conditions, *(spec.get("taints") or ())]
    named = {"providerID": spec.get("providerID") or "", **info}
    if not all(isinstance(value, str | None) for found in (*texts, named) for value in found.values()):
        raise TypeError("what should be text is not")
    return {
        "metadata": metadata,
        "spec": spec,
        "status": {"conditions": conditions, "nodeInfo": info},
    }


class WorkloadCluster:
    """One workload cluster. `nodes` is its cache of Nodes, `state` whether that can be relied on now."""

    def __init__(
        self, key: Key, management: Client, on_state: Callable[[], None], throttle: WatchThrottle | None = None
    ) -> None:
        self.key = key
        self.state = CONNECTING
        self.settled = asyncio.Event()
        """Set as soon as it is known whether the cluster can be reached."""
        self.nodes = Cache(slim=slim_node, budget=NODE_BYTES)
        self.guard: Callable[[], None] | None = None
        self.observer: Callable[[Call], None] | None = None
        self.on_restart: Callable[[str, str], None] = lambda _resource, _reason: None
        """Told the kind watched and the reason whenever a watch broke."""
        self.on_defect: Callable[[str, str], None] = lambda _resource, _defect: None
        """Told the kind of an object that cannot be read, and what is wrong with it."""
        self._management = management
        self._pace = Limited(throttle or WatchThrottle())
        self._on_state = on_state
        self._access: ClusterAccess | None = None
        self._client: Client | None = None
        self._reflector: Reflector | None = None
        self._group: asyncio.TaskGroup | None = None
        self._beside: dict[str, Informer] = {}
        self._beside_tasks: dict[str, asyncio.Task[None]] = {}
        self._adopting = asyncio.Lock()
        self._silent_calls = 0
        self._doubted = asyncio.Event()

    def client(self) -> Client:
        """For calls; `WorkloadUnreachable` at once while the cluster is known to be out of reach."""
        if self._client is None or not self.state.reachable:
            raise WorkloadUnreachable(f"cluster {self.key}: {self.state.message}", reason=self.state.reason)
        return self._client

    def watch(self, name: str, make: Callable[[Client], Informer]) -> Informer:
        """What `make` made the first time, watched beside the Nodes for as long as the connection is kept.

        Its failures are its own: they do not make the cluster count as out of reach.
        """
        client, group, informer = self.client(), self._group, self._beside.get(name)
        if informer is None:
            informer = self._beside[name] = make(client)
            informer.on_restart(partial(self.on_restart, informer.resource.plural))
            informer.on_defect(partial(self.on_defect, informer.resource.plural))
            if group is not None:
                self._beside_tasks[name] = start(group, informer.run(), name=f"watch {name} of {self.key}")
        return informer

    def unwatch(self, name: str) -> None:
        """Ends such a watch and forgets what it has seen."""
        self._beside.pop(name, None)
        task = self._beside_tasks.pop(name, None)
        if task is not None:
            task.cancel()

    async def run(self) -> None:
        """Keeps the connection until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                group.create_task(self._follow())
                group.create_task(self._resolve_doubts())
        finally:
            self._group, self._beside, self._beside_tasks = None, {}, {}
            client, self._client, self._reflector, self.state = self._client, None, None, CONNECTING
            if client is not None:
                await client.close()

    def broke(self) -> None:
        """Takes note that something failed which nobody foresaw: who waits for this cluster is told at least that."""
        self._report(BROKEN)

    async def refresh(self) -> bool:
        """Reads the Secret again, after a refused token; whether it holds something new."""
        before = self._access
        await self._adopt(await self._read_access())
        return self._access != before

    async def _follow(self) -> None:
        failures = 0
        while True:
            try:
                reflector = await self._adopt(await self._read_access())
                failures = 0
                await reflector.follow()
            except KubeError as error:
                failures += 1
                pause = self._reflector.failed(error) if self._reflector else PATIENCE.seconds(failures, 0.5)
                self._failed(error)
                await asyncio.sleep(pause)

    async def _read_access(self) -> ClusterAccess:
        name = f"{self.key.name}{KUBECONFIG_SECRET_SUFFIX}"
        try:
            secret = await self._management.get(SECRETS, name, namespace=self.key.namespace)
            # Parsing YAML takes long enough to be noticed by others.
            return await asyncio.to_thread(read_secret, secret, self.key.name)
        except NotFound as error:
            raise WorkloadUnreachable(f"there is no Secret {name}", reason=Reason.KUBECONFIG_NOT_FOUND) from error
        except KubeconfigRefused as error:
            raise WorkloadUnreachable(f"Secret {name}: {error}", reason=Reason.KUBECONFIG_REFUSED) from error
        except Unavailable:
            if self._access is None:
                raise
            return self._access  # the management cluster is away: that is no reason to give up on this one

    async def _adopt(self, access: ClusterAccess) -> Reflector:
        async with self._adopting:
            if self._client is None or self._access is None or self._reflector is None:
                self._reflector = await self._open(access)
            elif access != self._access:
                await self._swap(self._client, self._reflector, self._access, access)
            self._access = access
            return self._reflector

    async def _open(self, access: ClusterAccess) -> Reflector:
        # How late a write may arrive is the same for all clusters that one process writes to.
        patience = self._management.transport.limits.unacknowledged_seconds
        limits = replace(LIMITS, unacknowledged_seconds=patience)
        self._client = Client(await _endpoint(access), _SecretToken(access.token, self), limits=limits)
        self._client.pace = self._pace
        self._client.guard_writes(self.guard)
        self._client.observe_calls(self._note)
        reflector = Reflector(Objects(self._client, NODES, page_size=PAGE), self.nodes, backoff=PATIENCE)
        reflector.on_connected = self._connected
        reflector.on_restart = partial(self.on_restart, NODES.plural)
        reflector.on_defect = partial(self.on_defect, NODES.plural)
        return reflector

    async def _swap(self, client: Client, reflector: Reflector, old: ClusterAccess, new: ClusterAccess) -> None:
        token = _SecretToken(new.token, self)
        endpoint = client.transport.endpoint if new.only_token_differs(old) else await _endpoint(new)
        await client.transport.replace(endpoint, token)
        if new.server != old.server:
            reflector.start_over()
            for informer in self._beside.values():
                informer.start_over()

    def _connected(self) -> None:
        self._silent_calls = 0
        self._doubted.clear()
        self._report(REACHABLE)

    def _failed(self, error: KubeError) -> None:
        definite = isinstance(error, WorkloadUnreachable | Unauthorized)
        again = self._reflector is None or self._reflector.failures > 1
        # One broken connection is daily business: the next try usually succeeds, and nobody need be told.
        if definite or again or not self.state.reachable:
            state = Reachability(reachable=False, reason=_reason(error), message=error.message)
            self._report(state, found=str(error.__cause__ or ""))

    def _note(self, call: Call) -> None:
        if self.observer is not None:
            self.observer(call)
        self._silent_calls = 0 if call.status else self._silent_calls + 1
        if self._silent_calls >= _SILENT_CALLS and self.state.reachable:
            # The watch may take a minute to notice; who calls in the meantime should not wait for time-outs.
            self._doubted.set()
            self._report(
                Reachability(reachable=False, reason=Reason.NO_ANSWER, message="the workload cluster does not answer")
            )

    async def _resolve_doubts(self) -> None:
        while True:
            await self._doubted.wait()
            failures = 1
            while self._doubted.is_set() and not await self._answers():
                await asyncio.sleep(PATIENCE.seconds(failures, 0.5))
                failures += 1
            self._silent_calls = 0
            self._doubted.clear()
            if self._reflector is not None and self._reflector.error is None:
                self._report(REACHABLE)

    async def _answers(self) -> bool:
        try:
            if self._client is not None:
                await self._client.raw_get("/version")
        except Unavailable as error:
            await self._read_again(error)
            return False
        except KubeError:
            return True  # it says no, so it is there
        return True

    async def _read_again(self, why: Unavailable) -> None:
        """Its CA or address may have changed; the watch, which still stands, would not ask for minutes."""
        try:
            if not await self.refresh() and isinstance(why, Untrusted):
                self._failed(why)
        except KubeError as error:
            self._failed(error)

    def _report(self, state: Reachability, found: str = "") -> None:
        """Takes note of a state; `found` is for the operator's own log only."""
        changed = state != self.state
        self.state = state
        self.settled.set()
        if changed:
            facts = {"reachable": state.reachable, "reason": state.reason, "found": bounded(found)}
            log.info("workload cluster", cluster=str(self.key), **facts)
            self._on_state()


class _SecretToken(Token):
    """The token of a kubeconfig Secret, which is read again when the token is refused."""

    def __init__(self, token: str | None, workload: WorkloadCluster) -> None:
        super().__init__(token)
        self._workload = workload

    async def refresh(self) -> bool:
        """Whether the Secret holds something new."""
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
            return Reason.NO_ANSWER  # an untrusted certificate too: it would tell an open port from a closed one
        case _:
            return Reason.for_error(type(error))

"""A management cluster with a real node, beside a workload cluster with simulated hosts."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from local import access, binaries, pki
from local.binaries import Assets
from local.cluster import LocalCluster, Options, start_on_free_port
from local.crds import FIELD_MANAGER, LOOK_EVERY
from local.errors import LocalError
from local.node import image, packages, programs
from local.node.dns import ENDPOINT_SLICES, SERVICES
from local.node.ground import Ground
from local.node.image import Images
from local.node.kubelet import DNS_ADDRESS, KUBELET_CLIENT, PROXY, SCHEDULER, NodeAgents
from local.node.programs import NodePrograms
from local.node.runtime import Runtime
from local.plane import ControlPlane, in_parallel
from local.ports import ANY_PORTS
from local.processes import Keeper, Server
from local.progress import Progress
from local.provider.workloads import access_kubeconfig, provider_kubeconfig
from service.kube.client import Client, PatchKind
from service.kube.errors import NotFound
from service.kube.resource import NODES, Resource

Work = Callable[[Client], Awaitable[None]]
MANAGEMENT: Final = "management"
"""What a SimulatedControlPlane's `spec.workload` names to have this very cluster as its workload cluster."""
READY_WITHIN: Final = 120.0
BINDINGS: Final = Resource(
    group="rbac.authorization.k8s.io",
    version="v1",
    plural="clusterrolebindings",
    kind="ClusterRoleBinding",
    namespaced=False,
)


@dataclass(frozen=True, slots=True)
class NodeParts:
    """What has to be there before a cluster with a node can start."""

    assets: Assets
    programs: NodePrograms
    images: Images


def ensure(progress: Progress) -> NodeParts:
    """Builds and installs what is missing. Raises LocalError with a sentence if that cannot be."""
    packages.require_machine()
    packages.ensure(progress)
    return NodeParts(binaries.ensure(progress), programs.ensure(progress), image.ensure(progress))


class NodeCluster:
    """`with NodeCluster(parts)` starts everything, with the Node Ready, and leaves nothing behind."""

    keeper: Keeper
    ground: Ground
    plane: ControlPlane
    runtime: Runtime
    agents: NodeAgents
    scheduler: Server
    proxy: Server
    kubelet: Server
    dns: Server

    def __init__(self, parts: NodeParts, patience: float = 0.0) -> None:
        """Waits so many seconds for the end of another node."""
        self.parts = parts
        self._patience = patience
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with self._stack as stack:
            self.keeper = stack.enter_context(Keeper())
            self.ground = stack.enter_context(Ground(self._patience))
            self.runtime = Runtime(self.ground, self.parts.programs, self.keeper)
            self.agents = NodeAgents(self.ground, self.parts.programs, self.keeper, self.runtime.socket)
            self.plane = ControlPlane(self.parts.assets, self.keeper, self._options())
            self.management.authority.client(KUBELET_CLIENT).write(self._client_folder)
            in_parallel(lambda: stack.enter_context(self.plane), lambda: self.runtime.start(self.parts.images))
            stack.callback(self._stop_node)
            self._start_node()
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    @property
    def management(self) -> LocalCluster:
        """The cluster that the node is of."""
        return self.plane.management

    def restart_kubelet(self) -> None:
        """Has the kubelet register its Node again, as after a user deleted the Node."""
        self.kubelet.restart()
        asyncio.run(self._with(self._node_ready))

    @property
    def _client_folder(self) -> Path:
        """Where the API server finds what it shows to the kubelet."""
        return self.keeper.directory / KUBELET_CLIENT

    def _options(self) -> Options:
        flags = (
            "--authorization-mode=Node",
            "--enable-admission-plugins=NodeRestriction",
            "--allow-privileged=true",
            f"--kubelet-client-certificate={self._client_folder}/tls.crt",
            f"--kubelet-client-key={self._client_folder}/tls.key",
            "--kubelet-preferred-address-types=InternalIP",
        )
        users = {SCHEDULER: "", PROXY: "", self.agents.user: "system:nodes"}
        return Options(apiserver_flags=flags, address=self.ground.subnet.bridge, users=users)

    def _start_node(self) -> None:
        self.dns = start_on_free_port(self._dns, ANY_PORTS)
        asyncio.run(self._with(self._prepare))
        self.scheduler, self.kubelet, self.proxy = self.agents.start(self.management)
        asyncio.run(self._with(self._node_ready))
        self._let_hosts_join()

    def _stop_node(self) -> None:
        """Kills the node's programs; what they started, pods included, ends with the ground."""
        for part in ("kubelet", "proxy", "scheduler", "dns"):
            server: Server | None = getattr(self, part, None)
            if server is not None:
                server.kill()
        self.runtime.server.kill()

    def _dns(self, port: int) -> Server:
        ready = self.keeper.directory / f"dns-{port}"
        argv = [
            sys.executable,
            "-m",
            "local.node.dns",
            f"--kubeconfig={self.management.kubeconfig}",
            f"--address={self.ground.subnet.bridge}",
            f"--port={port}",
            f"--ready-file={ready}",
        ]
        self._dns_port = port
        return Server("node-dns", argv, self.keeper, ready.exists)

    async def _with(self, work: Work) -> None:
        async with self.management.client() as client:
            await work(client)

    async def _prepare(self, client: Client) -> None:
        """Cluster DNS as a Service, and the API server's right to fetch logs from the kubelet."""
        name, namespace = "kube-dns", "kube-system"
        port = {"name": "dns", "port": 53, "protocol": "UDP"}
        service = {"clusterIP": DNS_ADDRESS, "ports": [{**port, "targetPort": self._dns_port}]}
        endpoints: dict[str, Any] = {
            "metadata": {"name": name, "labels": {"kubernetes.io/service-name": name}},
            "addressType": "IPv4",
            "ports": [{**port, "port": self._dns_port}],
            "endpoints": [{"addresses": [self.ground.subnet.bridge]}],
        }
        binding: dict[str, Any] = {
            "metadata": {"name": KUBELET_CLIENT},
            "roleRef": {"apiGroup": BINDINGS.group, "kind": "ClusterRole", "name": "system:kubelet-api-admin"},
            "subjects": [{"apiGroup": BINDINGS.group, "kind": "User", "name": KUBELET_CLIENT}],
        }
        await _apply(client, SERVICES, {"metadata": {"name": name}, "spec": service}, namespace)
        await _apply(client, ENDPOINT_SLICES, endpoints, namespace)
        await _apply(client, BINDINGS, binding)

    async def _node_ready(self, client: Client) -> None:
        name = self.agents.host.name
        try:
            async with asyncio.timeout(READY_WITHIN):
                await _becomes_ready(client, name)
        except TimeoutError as error:
            said = "\n".join(f"  {line}" for line in self.kubelet.last_words())
            raise LocalError(
                f"Node {name} was not Ready after {READY_WITHIN:.0f} s; the kubelet says:\n{said}"
            ) from error

    def _let_hosts_join(self) -> None:
        """Makes this cluster one that a Cluster may stand for, so that a Machine can be the real node."""
        folder, reach = self.plane.workloads_folder, self.management.access
        pki.write_private(provider_kubeconfig(folder, MANAGEMENT), reach.kubeconfig(access.PROVIDER))
        pki.write_private(access_kubeconfig(folder, MANAGEMENT), reach.kubeconfig(access.CLUSTER_ACCESS))


async def _apply(client: Client, resource: Resource, body: dict[str, Any], namespace: str | None = None) -> None:
    whole, name = {**resource.envelope(), **body}, body["metadata"]["name"]
    kind = PatchKind.APPLY
    await client.patch(resource, name, whole, kind=kind, namespace=namespace, field_manager=FIELD_MANAGER, force=True)


async def _becomes_ready(client: Client, name: str) -> None:
    while True:
        if await _is_ready(client, name):
            return
        await asyncio.sleep(LOOK_EVERY)


async def _is_ready(client: Client, name: str) -> bool:
    try:
        node = await client.get(NODES, name)
    except NotFound:
        return False
    conditions = node.get("status", {}).get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)

"""The whole throw-away control plane: management and workload cluster, Cluster API, simulated hosts, kwok."""

import asyncio
import shutil
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Self

from local import access, capi, clusters, kwok, pki
from local.binaries import Assets
from local.cluster import LocalCluster, Options, Startable
from local.processes import Keeper, Server
from local.provider import kinds, workloads
from local.provider.workloads import access_kubeconfig, provider_kubeconfig
from local.providers import ProviderFiles

DEMO_CLUSTER = "demo"
DEMO_NAMESPACE = "default"


class ControlPlane(Startable):
    """`with ControlPlane(assets)` starts everything, leaves a Cluster `demo` ready to use, and stops everything.

    Each of `servers` can be stopped, killed, paused and restarted to test faults.
    """

    capi: Server
    provider: Server

    def __init__(self, assets: Assets, keeper: Keeper, management: Options | None = None) -> None:
        self._assets = assets
        self._keeper = keeper
        self._options = management or Options()
        self.workloads_folder = keeper.directory / "workloads"
        definitions = (*kinds.definitions(), *self._options.definitions)
        self.management = LocalCluster("management", assets, keeper, replace(self._options, definitions=definitions))
        self.kwoks: dict[str, Server] = {}
        self.providers: dict[str, Server] = {}
        self.workloads: dict[str, LocalCluster] = {}

    def start(self) -> Self:
        """Brings everything up, both clusters side by side."""
        self.workloads_folder.mkdir()
        in_parallel(self._start_management, lambda: self.add_workload(workloads.DEFAULT))
        self.provider = self._provider()
        self.provider.started()
        in_parallel(lambda: asyncio.run(self._add_demo()))
        return self

    def stop(self) -> None:
        """Stops clients before their API servers, and those before their etcds."""
        ours = (getattr(self, "provider", None), getattr(self, "capi", None))
        clients = (*ours, *self.providers.values(), *self.kwoks.values())
        for server in clients:
            if server is not None:
                server.kill()  # they keep nothing, and Cluster API takes 10 s to say goodbye
        in_parallel(*(cluster.stop for cluster in (self.management, *self.workloads.values())))

    @property
    def _workload_options(self) -> Options:
        return Options(ports=self._options.ports, address=self._options.address)

    @property
    def workload(self) -> LocalCluster:
        """The workload cluster behind `demo`."""
        return self.workloads[workloads.DEFAULT]

    @property
    def servers(self) -> tuple[Server, ...]:
        """All processes."""
        clusters_ = (self.management, *self.workloads.values())
        added = (*self.providers.values(), *self.kwoks.values())
        return (*(s for c in clusters_ for s in c.servers), self.capi, self.provider, *added)

    def add_workload(self, name: str) -> LocalCluster:
        """Starts one more workload cluster, for SimulatedControlPlanes whose `spec.workload` names it."""
        cluster = LocalCluster(name, self._assets, self._keeper, self._workload_options).start()
        pki.write_private(provider_kubeconfig(self.workloads_folder, name), cluster.access.kubeconfig(access.PROVIDER))
        pki.write_private(
            access_kubeconfig(self.workloads_folder, name), cluster.access.kubeconfig(access.CLUSTER_ACCESS)
        )
        self.kwoks[name] = kwok.start(cluster, self._assets, self._keeper, self._options.ports)
        self.workloads[name] = cluster
        return cluster

    def add_provider(self, provider: ProviderFiles) -> Server:
        """Starts one of Cluster API's own providers in the management cluster, once; it ends with the plane."""
        name = provider.program.name
        if name not in self.providers:
            started = capi.start_provider(self.management, provider, self._keeper, self._options.ports)
            self.providers[name] = started
        return self.providers[name]

    def remove_workload(self, name: str) -> None:
        """Stops a workload cluster that `add_workload` started; another of that name may come."""
        self.kwoks.pop(name).kill()
        cluster = self.workloads.pop(name)
        cluster.stop()
        shutil.rmtree(cluster.directory)

    def _start_management(self) -> None:
        self.management.start_api()
        self.capi = capi.start(self.management, self._assets, self._keeper, self._options.ports)
        self.management.start_controllers()

    def _provider(self) -> Server:
        ready = self._keeper.directory / "provider-ready"
        argv = [
            sys.executable,
            "-m",
            "local.provider",
            f"--kubeconfig={self.management.kubeconfig_of(access.PROVIDER)}",
            f"--workloads={self.workloads_folder}",
            f"--ready-file={ready}",
        ]
        return Server("management-provider", argv, self._keeper, lambda: _names(ready, self.provider.pid))

    async def _add_demo(self) -> None:
        async with self.management.client() as client:
            await clusters.add(client, DEMO_NAMESPACE, DEMO_CLUSTER)


def _names(ready: Path, pid: int | None) -> bool:
    """Whether the process that wrote the file is the one that runs now."""
    return ready.exists() and ready.read_text(encoding="utf-8") == str(pid)


def in_parallel(*steps: Callable[[], object]) -> None:
    """Runs all of them in threads of their own; the first failure is raised when all have ended."""
    with ThreadPoolExecutor(len(steps)) as pool:
        for future in [pool.submit(step) for step in steps]:
            future.result()

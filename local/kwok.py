"""kwok stands in for the kubelets of a workload cluster: it keeps Nodes Ready and lets pods run and die."""

from pathlib import Path

from local import access
from local.binaries import Assets
from local.cluster import LocalCluster, start_on_free_port
from local.ports import LOOPBACK, PortRange
from local.processes import Keeper, Server

LEASE_SECONDS = 40


def start(cluster: LocalCluster, assets: Assets, keeper: Keeper, ports: PortRange) -> Server:
    """Looks after all Nodes of the cluster."""
    stages = cluster.directory / "kwok-stages.yaml"
    stages.write_bytes(b"\n---\n".join(path.read_bytes() for path in stage_files(assets.kwok_stages)))

    def make(port: int) -> Server:
        argv = [
            str(assets.kwok),
            f"--kubeconfig={cluster.kubeconfig_of(access.KWOK)}",
            f"--config={stages}",
            "--manage-all-nodes",
            "--node-ip=10.0.0.1",
            f"--node-lease-duration-seconds={LEASE_SECONDS}",
            f"--server-address={LOOPBACK}:{port}",
        ]
        probe = f"http://{LOOPBACK}:{port}/healthz"
        return Server(f"{cluster.name}-kwok", argv, keeper, lambda: access.answers(probe))

    return start_on_free_port(make, ports)


def stage_files(folder: Path) -> list[Path]:
    """The stages that came with kwok's source."""
    return sorted(path for path in folder.glob("*.yaml") if path.name != "kustomization.yaml")

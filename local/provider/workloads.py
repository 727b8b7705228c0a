"""The workload clusters that hosts can join, found by the name in a SimulatedControlPlane's `spec.workload`."""

from pathlib import Path

from service.kube.client import Client
from service.kube.decode import Object

DEFAULT = "workload"


class ProviderWorkloads:
    """A folder with two kubeconfigs per workload cluster: one for the provider itself, one to hand out."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._clients: dict[str, Client] = {}

    async def client(self, control_plane: Object | None) -> Client:
        """A connection to the cluster that the control plane stands for."""
        name = name_of(control_plane)
        if name not in self._clients:
            self._clients[name] = await Client.from_kubeconfig(provider_kubeconfig(self._folder, name))
        return self._clients[name]

    def kubeconfig(self, control_plane: Object) -> str:
        """What goes into the Cluster's kubeconfig Secret."""
        return access_kubeconfig(self._folder, name_of(control_plane)).read_text(encoding="utf-8")

    async def close(self) -> None:
        """Closes all connections."""
        for client in self._clients.values():
            await client.close()


def name_of(control_plane: Object | None) -> str:
    """The workload cluster's name; there is usually one."""
    return str(((control_plane or {}).get("spec") or {}).get("workload") or DEFAULT)


def provider_kubeconfig(folder: Path, name: str) -> Path:
    """Where the provider's own way in is."""
    return folder / f"{name}.provider.kubeconfig"


def access_kubeconfig(folder: Path, name: str) -> Path:
    """Where the kubeconfig to publish is."""
    return folder / f"{name}.access.kubeconfig"

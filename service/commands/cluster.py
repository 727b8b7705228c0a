"""How commands reach a cluster: with the user's own kubeconfig and rights, as kubectl does."""

import os
from pathlib import Path
from typing import Final

from crds import names
from service.clock import Clock, SimulatedClock, SystemClock
from service.commands.options import ClusterChoice
from service.kube.client import Client
from service.kube.credentials import context_of

VARIABLES: Final = ("FIVESPOT_KUBECONFIG", "KUBECONFIG")
HOME_KUBECONFIG: Final = Path("~/.kube/config")
IN_A_POD: Final = "KUBERNETES_SERVICE_HOST"


async def connect(access: ClusterChoice) -> Client:
    """A client for the cluster that the flags and the environment name."""
    path = _kubeconfig(access)
    return Client.in_cluster() if path is None else await Client.from_kubeconfig(path, access.context)


def default_namespace(access: ClusterChoice) -> str:
    """The namespace that kubectl uses: the context's own, else `default`."""
    path = _kubeconfig(access)
    return (context_of(path, access.context).get("namespace") if path else None) or "default"


def clock(access: ClusterChoice) -> Clock:
    """The clock that schedules follow there: the real one, unless the kubeconfig of a local control plane says more."""
    path = _kubeconfig(access)
    extensions = (context_of(path, access.context).get("extensions") if path else None) or ()
    found = (each.get("extension") or {} for each in extensions if each.get("name") == names.CLOCK_EXTENSION)
    return next((SimulatedClock.from_json(each) for each in found), SystemClock())


def _kubeconfig(access: ClusterChoice) -> Path | None:
    """None in a pod without a kubeconfig, which uses its service account. An empty variable counts as unset."""
    named = next((value for name in VARIABLES if (value := os.environ.get(name))), None)
    path = access.kubeconfig or (Path(named) if named else None)
    if path is None and IN_A_POD in os.environ:
        return None
    return path or HOME_KUBECONFIG.expanduser()

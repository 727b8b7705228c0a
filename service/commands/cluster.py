"""How commands reach a cluster: the user's own kubeconfig and rights, as kubectl would; light until it is needed."""

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:  # at run time it comes late: `--help` should not wait for it
    from service.kube.client import Client

VARIABLES: Final = ("FIVESPOT_KUBECONFIG", "KUBECONFIG")
HOME_KUBECONFIG: Final = Path("~/.kube/config")
IN_A_POD: Final = "KUBERNETES_SERVICE_HOST"


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The flags that choose a cluster."""
    parser.add_argument(
        "--kubeconfig",
        type=Path,
        metavar="FILE",
        help=f"default: ${VARIABLES[1]}, or the pod's service account, or {HOME_KUBECONFIG}",
    )
    parser.add_argument("--context", help="context in the kubeconfig; default: its current one")


async def connect(arguments: argparse.Namespace) -> "Client":
    """A client for the cluster that the flags and the environment name."""
    from service.kube.client import Client  # noqa: PLC0415 - see above

    path = _kubeconfig(arguments)
    return Client.in_cluster() if path is None else await Client.from_kubeconfig(path, arguments.context)


def default_namespace(arguments: argparse.Namespace) -> str:
    """The namespace that kubectl would take: the context's own, else `default`."""
    from service.kube.credentials import context_namespace  # noqa: PLC0415 - see above

    path = _kubeconfig(arguments)
    return (context_namespace(path, arguments.context) if path else None) or "default"


def _kubeconfig(arguments: argparse.Namespace) -> Path | None:
    """None in a pod without a kubeconfig: its service account serves there. An empty variable counts as unset."""
    named = next((value for name in VARIABLES if (value := os.environ.get(name))), None)
    path: Path | None = arguments.kubeconfig or (Path(named) if named else None)
    if path is None and IN_A_POD in os.environ:
        return None
    return path or HOME_KUBECONFIG.expanduser()

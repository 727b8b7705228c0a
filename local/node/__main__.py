"""`python -m local.node`, as `make cluster` runs it: a cluster with a real node, until Ctrl-C."""

import argparse
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress

from local import helm
from local.binaries import FAILED, INTERRUPTED
from local.errors import LocalError, NoNodeError
from local.node.cluster import NodeCluster, ensure
from local.progress import Progress
from local.up import Stopped, stopped_by_signals

USAGE = """
A cluster with a real node runs, and a workload cluster with simulated hosts behind Cluster `demo`.
In another terminal:

  export KUBECONFIG={kubeconfig}
  alias kubectl={kubectl} helm={helm}
  kubectl get nodes
  helm install 5spot charts/5spot --namespace 5spot-system --create-namespace --wait \\
    --set image.repository=5spot

The image {image} is on the node. Logs are in {logs}.
Ctrl-C ends it and leaves nothing behind.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Brings the cluster up, prints how to use it, and stays until it is stopped."""
    wanted = _parser().parse_args(argv)
    try:
        with suppress(Stopped), stopped_by_signals():
            task = _prepare if wanted.prepare else _hold
            task(Progress())
    except LocalError as error:
        sys.stderr.write(f"error: {error}\n")
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m local.node",
        description="Starts a Kubernetes cluster with a real node on this machine, with Cluster API, simulated hosts "
        "and the operator's image, until Ctrl-C. Needs Linux and root.",
    )
    prepare = "only install and build what is missing; where no node can run, say why and succeed"
    parser.add_argument("--prepare", action="store_true", help=prepare)
    return parser


def _prepare(progress: Progress) -> None:
    try:
        ensure(progress)
    except NoNodeError as error:
        progress.say(f"there is no real node: {error}")


def _hold(progress: Progress) -> None:
    parts, program = ensure(progress), helm.ensure(progress)
    progress.say("starting the cluster ...")
    with NodeCluster(parts) as cluster:
        sys.stdout.write(
            USAGE.format(
                kubeconfig=cluster.management.kubeconfig,
                kubectl=parts.assets.kubectl,
                helm=program,
                image=parts.images.name,
                logs=cluster.keeper.directory / "logs",
            )
        )
        sys.stdout.flush()
        while True:
            signal.pause()


if __name__ == "__main__":
    sys.exit(main())

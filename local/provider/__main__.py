"""Runs the simulated provider until it is stopped: `python -m local.provider`, started by `local.plane`."""

import argparse
import asyncio
import contextlib
import logging
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from local.provider.app import Provider
from local.provider.workloads import ProviderWorkloads
from service.kube.client import Client


def main(argv: Sequence[str] | None = None) -> int:
    """Parses the command line and runs."""
    parser = argparse.ArgumentParser(prog="python -m local.provider", description=__doc__)
    parser.add_argument("--kubeconfig", type=Path, required=True, help="of the management cluster")
    parser.add_argument("--workloads", type=Path, required=True, help="folder with the workload clusters' kubeconfigs")
    parser.add_argument(
        "--ready-file", type=Path, required=True, help="our process id is written there when all watches have begun"
    )
    args = parser.parse_args(argv)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    asyncio.run(serve(args.kubeconfig, args.workloads, args.ready_file))
    return 0


async def serve(kubeconfig: Path, folder: Path, ready_file: Path) -> None:
    """Follows the management cluster until SIGTERM."""
    async with await Client.from_kubeconfig(kubeconfig) as client:
        workloads = ProviderWorkloads(folder)
        task = asyncio.create_task(Provider(client, workloads).run(lambda: _announce(ready_file)))
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        with contextlib.suppress(asyncio.CancelledError):
            await task
        await workloads.close()


def _announce(ready_file: Path) -> None:
    # Renamed into place, so that no process reads half of it.
    draft = ready_file.with_suffix(".draft")
    draft.write_text(str(os.getpid()), encoding="utf-8")
    draft.rename(ready_file)


if __name__ == "__main__":
    sys.exit(main())

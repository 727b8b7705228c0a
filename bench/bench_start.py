"""How long the throw-away control plane takes to come up once its programs are built.

Run it with `python -m bench.bench_start`: the small one is etcd, API server and controller-manager; the whole one is
both clusters with Cluster API, simulated hosts and kwok, a Cluster `demo` ready to use.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from contextlib import AbstractContextManager

from bench._bars import Bars
from local.binaries import Assets, ensure
from local.cluster import LocalCluster
from local.plane import ControlPlane
from local.processes import Keeper
from local.progress import Progress

SMALL_SECONDS = 6.0
WHOLE_SECONDS = 30.0

Start = Callable[[Keeper], AbstractContextManager[object]]


def seconds(start: Start) -> float:
    """From the first process until everything is ready."""
    began = time.monotonic()
    with Keeper() as keeper, start(keeper):
        return time.monotonic() - began


def measure(name: str, start: Start, rounds: int) -> float:
    """The median of some starts; each is printed."""
    took = [seconds(start) for _ in range(rounds)]
    print(f"{name}: {', '.join(f'{each:.1f}' for each in took)} s", flush=True)
    return statistics.median(took)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.bench_start", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="how often each is started (default: %(default)s)")
    rounds = parser.parse_args().rounds
    assets: Assets = ensure(Progress())
    bars = Bars()
    small = measure("small", lambda keeper: LocalCluster("small", assets, keeper), rounds)
    bars.at_most("small control plane, median", small, SMALL_SECONDS, " s", firm=False)
    whole = measure("whole", lambda keeper: ControlPlane(assets, keeper), rounds)
    bars.at_most("both clusters with Cluster API, median", whole, WHOLE_SECONDS, " s", firm=False)
    bars.settle()


if __name__ == "__main__":
    main()

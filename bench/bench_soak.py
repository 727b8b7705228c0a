"""Half an hour of churn with random kills: nothing lost, nothing doubled, no object forgotten, memory flat.

Three replicas as processes of their own on a clock that is 60 times as fast as real, on a control plane of their own.
All that must hold is looked at twice a second; what does not is printed, and the exit code is 1.
"""

import argparse
import asyncio

import uvloop

from bench._bars import Bars
from bench._plane import Plane, control_plane
from bench._replica import SHORT_LEASE
from bench._soak import Settings, soaking

MOST_FORGOTTEN = SHORT_LEASE + 5.0


async def run(plane: Plane, settings: Settings) -> None:
    async with soaking(plane.cluster, plane.keeper, settings) as soak:
        result = await soak.run()
    bars = Bars()
    print(f"{settings.seconds / 60:g} minutes, {settings.objects} objects, {settings.replicas} replicas")
    print(result.described())
    bars.at_most("longest in the wrong state", max(result.late, default=0.0), MOST_FORGOTTEN, " s", firm=False)
    if result.growth is not None:
        bars.at_most("memory slope, lower bound", result.growth.low, result.most_slope, " MB an hour")
    for violation in result.violations:
        print(f"VIOLATED: {violation}")
    bars.at_most("violations", len(result.violations), 0)
    bars.settle()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30.0, help="how long (default 30)")
    parser.add_argument("--objects", type=int, default=100, help="ScheduledMachines at a time (default 100)")
    parser.add_argument("--replicas", type=int, default=3, help="processes (default 3)")
    args = parser.parse_args()
    settings = Settings(seconds=60 * args.minutes, objects=args.objects, replicas=args.replicas)
    with control_plane() as plane, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run(plane, settings))


if __name__ == "__main__":
    main()

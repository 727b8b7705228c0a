"""`make chaos`: plays all cases, prints which failed, and writes the table of `docs/reliability.md`.

The cases are divided among a few processes, each with an API server of its own.
"""

import argparse
import asyncio
import json
import logging
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import structlog

from local.binaries import ensure
from local.processes import Keeper
from local.progress import Progress
from tests.chaos import table
from tests.chaos.case import Result, arena
from tests.chaos.faults import Fault
from tests.chaos.plan import Selection
from tests.chaos.run import Order, Run
from tests.chaos.scenarios import BY_NAME
from tests.integration.replicas import audited_cluster

PARTS = 2


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="SCENARIO/FAULT",
        help="play these cases alone, such as shutdown, /409 or reclaim/crash-after; may be given more than once. "
        f"Scenarios: {', '.join(BY_NAME)}. Faults: {', '.join(Fault)}.",
    )
    parser.add_argument("--jobs", type=int, default=4, metavar="N", help="cases at a time in each process (default: 4)")
    parser.add_argument("--parts", type=int, default=PARTS, metavar="N", help=f"processes (default: {PARTS})")
    parser.add_argument("--part", type=int, metavar="I", help="play this part of them alone, from 0")
    parser.add_argument("--results", type=Path, metavar="FILE", help="where to put the results as JSON")
    parser.add_argument("--earlier", type=Path, metavar="FILE", help="results of an earlier run, completed by this one")
    parser.add_argument("--no-table", action="store_true", help="leave docs/reliability.md alone")
    parser.add_argument("--verbose", action="store_true", help="show every case, and what operators log")
    return parser.parse_args()


def play(order: Order) -> list[Result]:
    """Plays the cases in this process."""
    if not order.verbose:
        structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))

    async def inside() -> list[Result]:
        async with arena(cluster) as stage:
            return await Run(stage, order, say).all()

    keeper = Keeper()
    try:
        with audited_cluster(ensure(Progress()), keeper) as cluster:
            return asyncio.run(inside())
    finally:
        keeper.close()


def play_parts(args: argparse.Namespace) -> list[Result]:
    """Plays the cases in several processes; if one fails, the run fails."""
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / f"{part}.json" for part in range(args.parts)]
        words = [sys.executable, "-m", "tests.chaos", *sys.argv[1:]]
        children = [
            subprocess.Popen([*words, f"--part={part}", f"--results={file}"]) for part, file in enumerate(files)
        ]
        for child in children:
            child.wait()
        return [Result.from_json(data) for file in files for data in json.loads(file.read_text())]


def main() -> int:
    args, began = arguments(), time.monotonic()
    only = tuple(map(Selection.read, args.only))
    if not all(one.scenario in ("", *BY_NAME) and one.fault in ("", *Fault) for one in only):
        say(f"There is no scenario or fault as in {', '.join(args.only)}; --help lists them.")
        return 2
    if args.part is None and args.parts > 1:
        results = play_parts(args)
    else:
        results = play(Order(only, args.part or 0, args.parts, args.jobs, args.verbose))
    if args.part is None and args.earlier:
        results = completed(args.earlier, results)
    if args.results:
        args.results.write_text(json.dumps([result.to_json() for result in results]))
    if args.part is None:
        conclude(results, time.monotonic() - began)
        if (args.earlier or not only) and not args.no_table:
            table.write(results, completed=args.earlier is not None)
    return 1 if any(result.breaches for result in results) else 0


def completed(earlier: Path, results: list[Result]) -> list[Result]:
    """The results of both; what was played again counts as it went this time."""
    again = {(result.scenario.name, result.strike) for result in results}
    before = [Result.from_json(data) for data in json.loads(earlier.read_text())]
    return [result for result in before if (result.scenario.name, result.strike) not in again] + results


def conclude(results: list[Result], seconds: float) -> None:
    failed = [result for result in results if result.breaches]
    missed = [result for result in results if not result.met]
    for result in failed:
        say(str(result))
    for result in missed:
        say(f"in three attempts, so not counted: {result}")
    say(f"{len(results) - len(missed)} cases, {len(failed)} failed, {seconds:.0f} s")


if __name__ == "__main__":
    sys.exit(main())

"""How long the operator's modules take to import, in processes of their own, with byte code as an image has it."""

import argparse
import os
import statistics
import subprocess
import sys

from bench._bars import Bars

MOST_SECONDS = 0.7
CODE = """
import time
began, used = time.perf_counter(), time.process_time()
from service.imports import import_libraries, without_collection
with without_collection():
    from service.commands import run
    import_libraries()
    import uvloop
    from service import app
print(time.perf_counter() - began, time.process_time() - used)
"""


def imported() -> tuple[float, float]:
    """Seconds by the clock, and of processor time."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run([sys.executable, "-c", CODE], env=environment, capture_output=True, text=True, check=True)
    seconds, cpu = map(float, done.stdout.split())
    return seconds, cpu


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=11, help="how many processes (default 11)")
    runs = parser.parse_args().runs
    imported()  # writes the byte code
    seconds, cpu = zip(*(imported() for _ in range(runs)), strict=True)
    print(f"{min(seconds):.2f} to {max(seconds):.2f} s, {min(cpu):.2f} to {max(cpu):.2f} s of processor time")
    bars = Bars()
    bars.at_most("import, median", statistics.median(seconds), MOST_SECONDS, " s", firm=False)


if __name__ == "__main__":
    main()

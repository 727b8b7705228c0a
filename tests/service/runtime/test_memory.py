"""Memory that is freed goes back: each case runs in a process of its own, as the settings are for good."""

import subprocess
import sys

FRAGMENTED = """
import resource
from pathlib import Path
from service.runtime import memory

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 1e6

if {settled}:
    memory.configure()
first = bytearray(1_000_000)
del first
blocks = [(bytearray(300_000), bytes(600)) for _ in range(80)]
before, kept = resident(), [small for _, small in blocks]
del blocks
after = resident()
print(before - after)
"""


def freed(*, settled: bool) -> float:
    """MB that the kernel gets back when 24 MB of buffers are freed with something small between them."""
    script = FRAGMENTED.format(settled=settled)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return float(done.stdout)


def test_the_buffers_of_closed_connections_go_back_to_the_kernel():
    assert freed(settled=True) > 20


def test_cycles_are_searched_for_within_a_few_thousand_objects():
    settle = "import gc; from service.runtime import memory; memory.configure()"
    script = f"{settle}; print(gc.get_freeze_count() > 0, *gc.get_threshold())"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "5000", "5", "2"]

"""A process that was stopped at the wrong moment does not get to write."""

import asyncio
import signal
import sys
import textwrap
from asyncio.subprocess import Process
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from service.sharding.fence import boottime
from service.sharding.watchdog import EXIT_CODE
from tests.waiting import until

CHILD = """
import asyncio, os, signal
from service.sharding.watchdog import Watchdog
from service.sharding.watchdog import EXIT_CODE
from service.sharding.fence import boottime

async def main():
    watchdog = Watchdog()
    watchdog.watch(boottime() + 1.0)
    {before}
    os.kill(os.getpid(), signal.SIGSTOP)
    os.write(1, b"written")

asyncio.run(main())
"""


ATTEMPTS = 5


async def stopped_for_a_second(before: str) -> tuple[int, bytes]:
    """How a child ends, and what it wrote, that is stopped until its watchdog is over."""
    child = await stopped(CHILD.format(before=before))
    past = boottime() + 1.2
    await until(lambda: boottime() > past)
    child.send_signal(signal.SIGCONT)
    written, _ = await child.communicate()
    assert child.returncode is not None
    return child.returncode, written


async def stopped(code: str) -> Process:
    """A child that has stopped itself; on a slow machine the watchdog may end it before, so it may try again."""
    for _ in range(ATTEMPTS):
        child = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE)
        state = await until(partial(state_of, child))
        if state == "stopped":
            return child
        assert child.returncode == EXIT_CODE
    raise AssertionError(f"in {ATTEMPTS} attempts the watchdog came before the stop")


def state_of(child: Process) -> str:
    return "ended" if child.returncode is not None else stop_of(child.pid)


def stop_of(pid: int) -> str:
    with suppress(FileNotFoundError, ProcessLookupError):
        return "stopped" if "T (stopped)" in Path(f"/proc/{pid}/status").read_text() else ""
    return ""


async def test_a_write_that_was_allowed_before_a_stop_is_not_made_after_it():
    assert await stopped_for_a_second("pass") == (EXIT_CODE, b"")


async def test_a_stop_after_the_writes_have_left_ends_nothing():
    assert await stopped_for_a_second("await asyncio.sleep(0.01)") == (0, b"written")


@pytest.mark.parametrize("seconds", [0.9, 5.0])
async def test_the_earliest_of_several_instants_counts(seconds):
    assert await stopped_for_a_second(f"watchdog.watch(boottime() + {seconds})") == (EXIT_CODE, b"")


ALLOWED_LATER = """
await asyncio.sleep(0.01)
loop = asyncio.get_running_loop()
def write():
    os.kill(os.getpid(), signal.SIGSTOP)
    os.write(1, b"written")
loop.call_soon(watchdog.watch, boottime() + 1.0)
watchdog.watch(boottime() + 1.0)
loop.call_soon(write)
await asyncio.sleep(0.01)
return
"""


async def test_a_write_that_was_allowed_in_the_round_in_which_another_has_left_is_still_watched():
    assert await stopped_for_a_second(textwrap.indent(ALLOWED_LATER, "    ").strip()) == (EXIT_CODE, b"")

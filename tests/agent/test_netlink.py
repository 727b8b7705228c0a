"""The real netlink path where this kernel grants it; where it does not, that the refusal is explained."""

import os
import select
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from agent.netlink import EventSource, EventsUnavailable
from agent.proc import ProcTable
from tests.integration.agents import events_available

GRANTED = events_available()


@pytest.fixture
def source():
    made = EventSource(ProcTable().pids)
    yield made
    made.close()


def readable(source: EventSource, seconds: float = 5.0) -> bool:
    fd = source.fileno()
    assert fd is not None
    return bool(select.select([fd], [], [], seconds)[0])


def test_a_started_program_is_named_or_the_refusal_explained(source: EventSource):
    if not GRANTED:
        with pytest.raises(EventsUnavailable, match="the kernel"):
            source.open()
        assert source.fileno() is None
        return
    source.open()
    child = subprocess.Popen(["sleep", "60"])
    try:
        seen: list[int] = []
        while child.pid not in seen:
            assert readable(source)
            seen += source.candidates(time.monotonic())
    finally:
        child.kill()
        child.wait()


def test_after_an_overrun_every_process_is_named(source: EventSource):
    if not GRANTED:
        with pytest.raises(EventsUnavailable):
            source.open()
        return
    source.open()
    assert source._socket is not None
    source._socket.setsockopt(1, 8, 1)  # SO_RCVBUF at its smallest: a few frames overrun it
    for _ in range(20):
        subprocess.run(["true"], check=True)
    assert readable(source)
    now = time.monotonic()
    assert os.getpid() in source.candidates(now)
    assert source.wait(now) is None


def test_a_storm_of_overruns_is_answered_by_few_rescans(source: EventSource):
    source._overrun = True
    assert os.getpid() in source.candidates(10.0)
    source._overrun = True
    assert source.candidates(10.1) == []
    assert round(source.wait(10.1) or 0, 3) == 0.15
    assert os.getpid() in source.candidates(10.25)


def test_a_closed_source_is_silent(source: EventSource):
    source.close()
    assert source.fileno() is None
    assert source.candidates(0.0) == []
    assert source.wait(0.0) is None


@pytest.mark.parametrize(
    ("namespace", "why"), [("--net", "network namespace"), ("--pid", "pid namespace")], ids=["network", "pid"]
)
def test_outside_the_hosts_namespaces_the_refusal_names_what_is_missing(namespace: str, why: str):
    assert why in refusal(namespace)


def test_the_answer_to_another_agent_is_not_taken_for_ours(source: EventSource):
    """The kernel sends its answers to all listeners."""
    over = threading.Event()

    def subscribe_again_and_again() -> None:
        while not over.wait(0.01):
            with suppress(EventsUnavailable):
                source.open()

    with ThreadPoolExecutor(1) as other:
        subscribing = other.submit(subscribe_again_and_again)
        try:
            assert "pid namespace" in refusal("--pid")
        finally:
            over.set()
        subscribing.result()


def refusal(namespace: str) -> str:
    """What a listener in a namespace of its own receives."""
    code = (
        "from agent.netlink import *\ntry: EventSource(list).open()\nexcept EventsUnavailable as error: print(error)\n"
    )
    command = ["unshare", "--user", "--map-root-user", namespace, "--fork", sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout

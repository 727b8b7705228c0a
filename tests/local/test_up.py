"""What `5spot local up --detach` tells the process that is to hold the control plane."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from local.operator import Pace
from local.ports import PortRange
from local.up import Request


@pytest.mark.parametrize(
    "request_",
    [
        Request(),
        Request(operator=None),
        Request(Path("/a b/config"), None, PortRange(20000, 20100), Pace(datetime(2026, 3, 6, 9, tzinfo=UTC), 720.0)),
    ],
)
def test_a_request_survives_the_way_to_another_process(request_: Request) -> None:
    assert Request.unpacked(request_.packed()) == request_


@pytest.mark.parametrize(
    ("pace", "flags", "words"),
    [
        (Pace(), ["--speed=1.0"], "started at the real time"),
        (Pace(speed=60.0), ["--speed=60.0"], "started at the real time, runs 60 times as fast"),
        (
            Pace(datetime(2026, 3, 6, 9, tzinfo=UTC)),
            ["--at=2026-03-06T09:00:00+00:00", "--speed=1.0"],
            "started at 2026-03-06 09:00+00:00",
        ),
    ],
)
def test_a_pace_as_flags_and_in_words(pace: Pace, flags: list[str], words: str) -> None:
    assert (pace.flags, pace.described()) == (flags, words)

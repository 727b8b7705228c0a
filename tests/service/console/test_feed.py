"""What a page is sent when it begins to listen, and when it listens again."""

from types import SimpleNamespace
from typing import Any

import orjson

from service.clock import ManualClock
from service.console.feed import Feed
from tests.service.decide.builders import MORNING


def seen() -> Any:
    return SimpleNamespace(
        listen=lambda _listener: None,
        unlisten=lambda _listener: None,
        machines=SimpleNamespace(shown={}),
        clock=ManualClock(MORNING),
        problem="",
    )


async def first(feed: Feed) -> list[bytes]:
    return (await anext(feed.messages())).splitlines()


async def test_the_first_message_has_an_id_so_that_the_browser_says_when_it_comes_again() -> None:
    lines = await first(Feed(seen()))
    assert lines[0].startswith(b"id: ")
    assert "all" not in orjson.loads(lines[1].removeprefix(b"data: "))


async def test_a_page_that_listens_again_reads_everything_it_may_have_missed_something() -> None:
    lines = await first(Feed(seen(), resumed=True))
    assert orjson.loads(lines[1].removeprefix(b"data: "))["all"] is True

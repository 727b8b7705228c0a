import io
import json
import logging
from collections.abc import Iterator

import pytest
import structlog

from service import log


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    before = (root.handlers, root.level)
    yield io.StringIO()
    root.handlers, root.level = before
    structlog.reset_defaults()


def lines(stream: io.StringIO) -> list[dict]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_an_event_is_one_json_object_with_its_key(stream: io.StringIO):
    log.configure(stream=stream)
    structlog.get_logger("x").bind(key="default/worker").info("activated", phase="Active")
    (event,) = lines(stream)
    assert event["event"] == "activated"
    assert event["key"] == "default/worker"
    assert event["level"] == "info"
    assert event["timestamp"].endswith("Z")


@pytest.mark.parametrize("style", ["json", "console"])
def test_a_name_with_a_newline_or_escape_code_cannot_forge_a_line(stream: io.StringIO, style):
    log.configure(style=style, stream=stream)
    structlog.get_logger().info("seen", name='a\n{"event":"forged"}\x1b[31m\u2028b')
    logging.getLogger("lib").warning("bad name %s", "x\ny\x1b[0m")
    shown = stream.getvalue()
    assert shown.count("\n") == 2
    assert "\x1b" not in shown
    assert "\u2028" not in shown


@pytest.mark.parametrize("key", ["token", "bearer_token", "Authorization", "private_key", "db_password"])
def test_what_is_called_a_secret_is_hidden(stream: io.StringIO, key: str):
    log.configure(stream=stream)
    structlog.get_logger().info("signed in", **{key: "swordfish"})
    assert "swordfish" not in stream.getvalue()


def test_levels_below_the_threshold_are_dropped_and_libraries_are_quiet(stream: io.StringIO):
    log.configure(level="info", stream=stream)
    structlog.get_logger().debug("detail")
    logging.getLogger("uvicorn.error").info("Started server process")
    logging.getLogger("uvicorn.error").warning("failure")
    assert [event["event"] for event in lines(stream)] == ["failure"]


def test_an_exception_carries_its_traceback_without_local_variables(stream: io.StringIO):
    log.configure(stream=stream)
    password = "".join(("sword", "fish"))
    try:
        int(f"{len(password)} odd")
    except ValueError:
        structlog.get_logger().exception("failed")
    (event,) = lines(stream)
    assert "ValueError: invalid literal" in event["exception"]
    assert "swordfish" not in stream.getvalue()


def test_a_very_long_value_is_cut(stream: io.StringIO):
    log.configure(stream=stream)
    structlog.get_logger().info("long", value="x" * 100_000)
    assert len(stream.getvalue()) < 5000


def test_values_that_json_does_not_know_are_written_as_text(stream: io.StringIO):
    log.configure(stream=stream)
    structlog.get_logger().info("odd", value={1: {2, 3}})
    assert lines(stream)[0]["event"] == "odd"


def test_a_stream_that_takes_no_more_does_not_stop_the_work(stream: io.StringIO):
    log.configure(stream=stream)
    stream.close()
    structlog.get_logger("x").warning("this has no reader")


def test_what_an_error_quotes_cannot_forge_a_line_or_colour_one(stream: io.StringIO):
    log.configure(style="console", stream=stream)
    quoting = ValueError("bad name x\n2026-01-01T00:00:00Z [info] forged\x1b[31m")
    structlog.get_logger().error("failed", exc_info=quoting)
    first, *others = stream.getvalue().splitlines()
    assert "failed" in first
    assert "\x1b" not in stream.getvalue()
    assert [line for line in others if line and not line.startswith("  ")] == []

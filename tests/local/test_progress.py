import io
import threading

import pytest

from local.progress import Progress, duration


class Listener(io.StringIO):
    """A stream that lets a test wait until something has been written to it."""

    def __init__(self, awaited: str, *, terminal: bool) -> None:
        super().__init__()
        self._awaited = awaited
        self._terminal = terminal
        self.heard = threading.Event()

    def isatty(self) -> bool:
        return self._terminal

    def write(self, text: str) -> int:
        written = super().write(text)
        if self._awaited in text:
            self.heard.set()
        return written


@pytest.mark.parametrize("terminal", [True, False])
def test_a_long_step_keeps_saying_what_it_is_at_and_for_how_long(terminal):
    stream = Listener("compiling (0 s): package 3", terminal=terminal)
    with Progress(stream, every=0.01).step("compiling") as update:
        update("package 3")
        assert stream.heard.wait(10)

    assert stream.getvalue().endswith("compiling: done in 0 s\n")


def test_a_terminal_gets_one_line_that_is_rewritten():
    stream = Listener("compiling (0 s)", terminal=True)
    with Progress(stream, every=0.01).step("compiling"):
        assert stream.heard.wait(10)

    assert stream.getvalue().count("\n") == 1


def test_a_live_line_never_wraps(monkeypatch):
    monkeypatch.setenv("COLUMNS", "20")
    stream = Listener("compiling (0 s)", terminal=True)
    with Progress(stream, every=0.01).step("compiling") as update:
        update("x" * 100)
        assert stream.heard.wait(10)

    live = stream.getvalue().split("\r\x1b[2K")[1]
    assert len(live) < 20


def test_a_log_file_gets_no_control_characters():
    stream = io.StringIO()
    with Progress(stream).step("compiling"):
        pass
    assert stream.getvalue() == "compiling ...\ncompiling: done in 0 s\n"


def test_a_step_that_fails_is_not_called_done():
    stream = io.StringIO()
    with pytest.raises(ValueError, match="no"), Progress(stream).step("compiling"):
        raise ValueError("no")
    assert "done" not in stream.getvalue()


def test_a_step_that_fails_leaves_a_clean_line_for_the_error():
    stream = Listener("", terminal=True)
    with pytest.raises(ValueError, match="no"), Progress(stream).step("compiling"):
        raise ValueError("no")
    assert stream.getvalue().endswith("\r\x1b[2K")


@pytest.mark.parametrize(("seconds", "text"), [(0.2, "0 s"), (59.4, "59 s"), (60, "1 min 00 s"), (125, "2 min 05 s")])
def test_durations_read_well(seconds, text):
    assert duration(seconds) == text

"""Says what is being worked on and for how long: a live line on a terminal, a line now and then everywhere else."""

import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Final, Self, TextIO

LIVE_EVERY: Final = 0.5
PLAIN_EVERY: Final = 20.0
CLEAR_LINE: Final = "\r\x1b[2K"


Update = Callable[[str], None]
"""Replaces what a step says it is doing."""


class Progress:
    """Reports to a person, by default on standard error, so that standard output stays for results."""

    def __init__(self, stream: TextIO | None = None, *, every: float | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._live = self._stream.isatty()
        self._every = every or (LIVE_EVERY if self._live else PLAIN_EVERY)
        self._lock = threading.Lock()

    def say(self, line: str) -> None:
        """Prints one line that stays."""
        self._write((CLEAR_LINE if self._live else "") + line + "\n")

    @contextmanager
    def step(self, title: str) -> Iterator[Update]:
        """Shows `title` with its running time while the block works; the block may add details."""
        if not self._live:
            self.say(f"{title} ...")
        try:
            with _Ticker(title, self._every, self._tick) as ticker:
                yield ticker.update
        finally:
            self._write(CLEAR_LINE if self._live else "")
        self.say(f"{title}: done in {duration(ticker.elapsed)}")

    def _tick(self, line: str) -> None:
        if not self._live:
            self.say(line)
            return
        width = shutil.get_terminal_size().columns - 1
        self._write(CLEAR_LINE + line[:width])

    def _write(self, text: str) -> None:
        with self._lock:
            self._stream.write(text)
            self._stream.flush()


class _Ticker:
    """A thread that shows a step's line again and again: a linker can be silent for a minute."""

    def __init__(self, title: str, every: float, show: Callable[[str], None]) -> None:
        self._title = title
        self._every = every
        self._show = show
        self._detail = ""
        self._started = time.monotonic()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, name="progress", daemon=True)

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self._started

    def update(self, detail: str) -> None:
        self._detail = detail

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._done.wait(self._every):
            detail = f": {self._detail}" if self._detail else ""
            self._show(f"{self._title} ({duration(self.elapsed)}){detail}")


def duration(seconds: float) -> str:
    """`8 s` or `2 min 05 s`."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"

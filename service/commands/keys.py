"""Reads single keys from a terminal, without Enter, for full-screen commands."""

import asyncio
import codecs
import os
import sys
import termios
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from service.fleet.board import Press

_SEQUENCES: Final = {
    "\x1b[A": Press.UP,
    "\x1b[B": Press.DOWN,
    "\x1bOA": Press.UP,
    "\x1bOB": Press.DOWN,
    "\x1b[5~": Press.PAGE_UP,
    "\x1b[6~": Press.PAGE_DOWN,
    "\x1b[H": Press.HOME,
    "\x1b[1~": Press.HOME,
    "\x1b[F": Press.END,
    "\x1b[4~": Press.END,
    "\r": Press.ENTER,
    "\n": Press.ENTER,
    "\x7f": Press.BACKSPACE,
    "\x08": Press.BACKSPACE,
    "\x1b": Press.ESCAPE,
}
_LONGEST: Final = max(map(len, _SEQUENCES))


def split(text: str) -> Iterator[str]:
    """The keys in what a terminal sent; an unknown escape sequence is left out."""
    while text:
        found = next((text[:n] for n in range(min(_LONGEST, len(text)), 0, -1) if text[:n] in _SEQUENCES), None)
        if found == "\x1b" and len(text) > 1:
            return
        if found is not None:
            yield _SEQUENCES[found]
        elif text[0].isprintable():
            yield text[0]
        text = text[len(found) if found else 1 :]


@contextmanager
def reading(listener: Callable[[str], None]) -> Iterator[None]:
    """Calls `listener` with each key, and restores the terminal afterwards; without a terminal it does nothing."""
    if not sys.stdin.isatty():
        yield
        return
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def ready() -> None:
        for key in split(decoder.decode(os.read(descriptor, 1024))):
            listener(key)

    tty.setcbreak(descriptor)
    loop = asyncio.get_running_loop()
    loop.add_reader(descriptor, ready)
    try:
        yield
    finally:
        loop.remove_reader(descriptor)
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)

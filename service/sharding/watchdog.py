"""Ends the process if it was stopped between the check of a Lease and the write that the check allowed.

The process itself cannot prevent such a write: a stopped process does not know that it was stopped. So a kernel timer
does: a signal that became due meanwhile is delivered before the process runs another instruction.
"""

import asyncio
import ctypes
import math
import os
import signal
import threading
import time
from collections import deque
from typing import Final

EXIT_CODE: Final = int(signal.SIGALRM)
"""The exit code of a process that the watchdog ends: the number of the signal."""

_ABSOLUTE: Final = 1
_TO_THREAD: Final = 4
_EVENT_BYTES: Final = 64
_NEVER: Final = 0.0


class _TimeSpec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


class _TimerSpec(ctypes.Structure):
    _fields_ = (("interval", _TimeSpec), ("value", _TimeSpec))


class _SignalEvent(ctypes.Structure):
    _fields_ = (
        ("value", ctypes.c_void_p),
        ("number", ctypes.c_int),
        ("notify", ctypes.c_int),
        ("thread", ctypes.c_int),
        ("padding", ctypes.c_byte * _EVENT_BYTES),
    )


class Watchdog:
    """A kernel timer on the clock that runs on while the machine is suspended. Create it in the event loop's thread."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._timer = ctypes.c_void_p()
        self._armed = math.inf
        self._watched: deque[float] = deque()
        # A handler of our own, as the kernel spares process 1 of a container the default action. And one in C, as
        # Python's handlers only record the signal and run later.
        self._libc.signal.argtypes = (ctypes.c_int, ctypes.c_void_p)
        self._libc.signal.restype = ctypes.c_void_p
        self._libc.signal(signal.SIGALRM, ctypes.cast(self._libc["_exit"], ctypes.c_void_p))
        # Signals this thread, which sends the writes: another thread would let it run on for a moment.
        event = _SignalEvent(None, signal.SIGALRM, _TO_THREAD, threading.get_native_id())
        made = self._libc.timer_create(time.CLOCK_BOOTTIME, ctypes.byref(event), ctypes.byref(self._timer))
        self._check(made)

    def watch(self, at: float) -> None:
        """Ends the process at that instant unless the event loop starts its next round: by then the write is sent."""
        self._watched.append(at)
        asyncio.get_running_loop().call_soon(self._sent)
        self._arm()

    def _sent(self) -> None:
        """The oldest write is sent; later ones may not be: they were allowed in the round that begins now."""
        self._watched.popleft()
        self._arm()

    def _arm(self) -> None:
        at = min(self._watched, default=math.inf)
        if at != self._armed:
            self._armed = at
            self._set(at if at < math.inf else _NEVER)

    def _set(self, at: float) -> None:
        setting = _TimerSpec(_TimeSpec(0, 0), _TimeSpec(int(at), int(at % 1 * 1e9)))
        self._check(self._libc.timer_settime(self._timer, _ABSOLUTE, ctypes.byref(setting), None))

    @staticmethod
    def _check(result: int) -> None:
        if result != 0:
            number = ctypes.get_errno()
            raise OSError(number, f"cannot set the timer that guards Leases: {os.strerror(number)}")

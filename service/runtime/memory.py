"""How Python and the C library deal with memory in a process that runs for months; settled once, at the start.

Both have defaults for short programs: the one searches for cycles of garbage too often, the other keeps what was freed.
"""

import ctypes
import gc
from typing import Final

_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
_M_ARENA_MAX: Final = -8
LARGE: Final = 128 * 1024
"""Bytes from which on a block is a mapping of its own and goes back to the kernel when it is freed."""
ARENAS: Final = 2
"""Heaps that threads share; we have few, and each heap keeps its own leftovers."""


def settle() -> None:
    """Everything below."""
    return_large_blocks()
    spare_collections()


def return_large_blocks() -> None:
    """Has glibc give the buffers of closed connections back; other C libraries are left as they are.

    By default it raises the bound as soon as it frees the first such buffer. From then on they come from its heap,
    where anything small behind one keeps all of it.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        for option, value in ((_M_MMAP_THRESHOLD, LARGE), (_M_TRIM_THRESHOLD, LARGE), (_M_ARENA_MAX, ARENAS)):
            mallopt(option, value)


def spare_collections() -> None:
    """Has Python look for cycles of garbage less often, and not among what is loaded by now.

    Nearly all we make is freed without that, and while a full search runs no webhook is answered. But a connection that
    was closed may be such a cycle, and holds half a megabyte: a full search comes after 50,000 objects that stayed,
    which is a matter of minutes. Rarer ones would let memory grow for days.
    """
    gc.freeze()
    gc.set_threshold(5_000, 5, 2)

"""How Python and the C library manage memory in a process that runs for months; configured once, at the start.

Both have defaults for short programs: Python collects garbage too often, and the C library keeps what was freed.
"""

import ctypes
import gc
from typing import Final

_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
_M_ARENA_MAX: Final = -8
LARGE: Final = 128 * 1024
"""From this size in bytes on, a block has its own mapping and goes back to the kernel when it is freed."""
ARENAS: Final = 2
"""The number of heaps that threads share; each keeps its own freed memory, and few threads need few."""


def configure() -> None:
    """Applies all settings below."""
    return_large_blocks()
    reduce_collections()


def return_large_blocks() -> None:
    """Makes glibc return the buffers of closed connections to the kernel; does nothing for other C libraries.

    By default glibc raises its threshold when it frees the first such buffer. From then on they come from its heap,
    where any small block behind a buffer keeps all of it.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        for option, value in ((_M_MMAP_THRESHOLD, LARGE), (_M_TRIM_THRESHOLD, LARGE), (_M_ARENA_MAX, ARENAS)):
            mallopt(option, value)


def reduce_collections() -> None:
    """Makes Python collect garbage less often, and never among the modules that are loaded by now.

    Reference counting frees nearly all objects, and while a full collection runs no webhook is answered. But a closed
    connection may be a reference cycle that holds half a megabyte. So a full collection runs after 50,000 objects that
    survived, which takes some minutes; if it ran more rarely, memory would grow for days.
    """
    gc.freeze()
    gc.set_threshold(5_000, 5, 2)

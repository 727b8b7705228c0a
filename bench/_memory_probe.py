"""`5spot run` with a probe inside: `python _memory_probe.py FILE TRACE_AFTER CLOCK_STARTED run ...`.

A thread writes a line of JSON every few seconds: what the kernel and the allocators say the process uses, how many
objects of which type there are, and how large each collection of our own is. With TRACE_AFTER above 0, tracemalloc
is switched on so many seconds after the start: what it lists later is what has grown since.
"""

import asyncio
import ctypes
import gc
import sys
import threading
import time
import tracemalloc
from collections import Counter, deque
from collections.abc import Iterator
from functools import _lru_cache_wrapper
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from bench import _proc, _replica
from service import metrics

EVERY = 15.0
COUNT_EVERY = 4
"""Objects are counted with every fourth line only: that holds up everything else for some milliseconds."""
OURS = ("service", "webhooks", "crds", "certs")
FRAMES = 10
LISTED = 40
MALLOC_FIELDS = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()  # noqa: SIM905


class MallocInfo(ctypes.Structure):
    """What glibc reports: `arena` and `hblkhd` come from the kernel, `uordblks` are in use, `fordblks` are free."""

    _fields_ = tuple((name, ctypes.c_size_t) for name in MALLOC_FIELDS)


class Probe(threading.Thread):
    def __init__(self, target: Path, trace_after: float) -> None:
        super().__init__(daemon=True, name="memory probe")
        self._target = target
        self._trace_after = trace_after
        self._libc = ctypes.CDLL(None)
        self._libc.mallinfo2.restype = MallocInfo

    def run(self) -> None:
        started, number = time.monotonic(), 0
        with self._target.open("ab", buffering=0) as target:
            while True:
                time.sleep(EVERY)
                at = time.monotonic() - started
                self._write(target, {"at": round(at, 1), **self._sizes(), **self._counts(number)})
                number += 1
                self._trace(target, at)

    def _write(self, target: BinaryIO, line: dict[str, Any]) -> None:
        target.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE | orjson.OPT_NON_STR_KEYS))

    def _sizes(self) -> dict[str, Any]:
        found = self._libc.mallinfo2()
        glibc = {name: getattr(found, name) / 1e6 for name in ("arena", "hblkhd", "uordblks", "fordblks")}
        return {**_proc.memory("self"), "glibc": glibc, "blocks": sys.getallocatedblocks(), "gc": gc.get_count()}

    def _counts(self, number: int) -> dict[str, Any]:
        if number % COUNT_EVERY:
            return {}
        objects = gc.get_objects()
        types = Counter(type(one).__qualname__ for one in objects)
        return {"objects": len(objects), "types": dict(types.most_common(60)), "ours": _collections(objects)}

    def _trace(self, target: BinaryIO, at: float) -> None:
        if not self._trace_after or at < self._trace_after:
            return
        if not tracemalloc.is_tracing():
            tracemalloc.start(FRAMES)
            self._traced_at = at
        elif at - self._traced_at > 300:
            self._traced_at = at
            self._write(target, {"at": at, "traced": _traced()})


def _traced() -> dict[str, Any]:
    snapshot = tracemalloc.take_snapshot()
    hidden = (tracemalloc.Filter(False, tracemalloc.__file__), tracemalloc.Filter(False, __file__))
    statistics = snapshot.filter_traces(hidden).statistics("traceback")[:LISTED]
    by_line = snapshot.filter_traces(hidden).statistics("lineno")[:LISTED]
    return {
        "total": tracemalloc.get_traced_memory()[0],
        "lines": [[str(one.traceback), one.size, one.count] for one in by_line],
        "traces": [[[str(frame) for frame in one.traceback], one.size, one.count] for one in statistics],
    }


def _collections(objects: list[Any]) -> dict[str, int]:
    """How many entries every collection has that an object or a module of ours holds, and every cache."""
    sizes = Counter[str]()
    for one in objects:
        kind = type(one)
        if str(kind.__module__).split(".")[0] in OURS:
            for name, value in _attributes(one):
                if isinstance(value, dict | list | set | deque):
                    sizes[f"{kind.__qualname__}.{name}"] += len(value)
    for module in [module for name, module in sys.modules.items() if name.split(".")[0] in OURS]:
        for name, value in vars(module).items():
            if isinstance(value, _lru_cache_wrapper):
                sizes[f"{value.__module__}.{name}()"] = value.cache_info().currsize
    sizes["asyncio tasks"] = sum(isinstance(one, asyncio.Task) for one in objects)
    sizes["metric series"] = sum(len(getattr(one, "_metrics", ())) for one in metrics.REGISTRY._collector_to_names)  # noqa: SLF001
    return {name: size for name, size in sizes.items() if size}


def _attributes(one: object) -> Iterator[tuple[str, Any]]:
    yield from getattr(one, "__dict__", {}).items()
    for kind in type(one).__mro__:
        for name in getattr(kind, "__slots__", ()):
            yield name, getattr(one, name, None)


def main() -> int:
    Probe(Path(sys.argv[1]), float(sys.argv[2])).start()
    del sys.argv[1:3]
    return _replica.main()


if __name__ == "__main__":
    sys.exit(main())

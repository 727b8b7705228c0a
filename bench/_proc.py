"""What the kernel says a process uses."""

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


def resident(pid: int) -> float:
    """Memory in MB."""
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS")) / 1024


def memory(pid: int | str) -> dict[str, float]:
    """MB by kind: `rss` with what is shared, `pss` with a part of that, `uss` without."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    sizes = {name: int(rest.split()[0]) / 1024 for name, _, rest in (line.partition(":") for line in lines)}
    own = sizes["Private_Clean"] + sizes["Private_Dirty"]
    return {"rss": sizes["Rss"], "pss": sizes["Pss"], "uss": own, "anonymous": sizes["Anonymous"]}


def cpu_seconds(pid: int) -> float:
    """Processor time used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Spent:
    """Seconds by the clock, and processor time of this process and of the servers it works with."""

    seconds: float
    own: float
    servers: float

    @property
    def cpu(self) -> float:
        """Processor time altogether; less touched by what else the machine does than seconds are."""
        return self.own + self.servers


class Stopwatch:
    """Measures what happens from `start` on."""

    def __init__(self, servers: Sequence[int]) -> None:
        """`servers` are process ids."""
        self._servers = servers
        self.start()

    def start(self) -> None:
        self._from = self._now()

    def spent(self) -> Spent:
        now = self._now()
        return Spent(now.seconds - self._from.seconds, now.own - self._from.own, now.servers - self._from.servers)

    def _now(self) -> Spent:
        return Spent(time.perf_counter(), time.process_time(), sum(map(cpu_seconds, self._servers)))

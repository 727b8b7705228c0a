"""The replicas of a soak: killed now and then and started again, as Kubernetes would."""

import asyncio
import random
import time
from contextlib import suppress

import orjson

from bench import _proc
from bench._replica import Crew
from bench._soak_result import Result
from local.processes import Server
from service.runtime.key import Key
from service.sharding.shard import Shard, shard_number
from service.sharding.watchdog import EXIT_CODE

SAMPLE_EVERY = 2.0
STARTED = "controller started"
"""What a replica logs when it can serve."""
TAKEN, GIVEN = "shard acquired", ("shard lost", "shard released")


class Fleet:
    """Several replicas. The first is spared, so that its memory can be followed; it takes over from all others."""

    def __init__(self, crew: Crew, count: int, result: Result) -> None:
        self._crew = crew
        self._result = result
        self._up: set[str] = set()
        self._lost: dict[str, float] = {}
        self.replicas = [crew.replica(number) for number in range(count)]

    def start(self) -> None:
        for replica in self.replicas:
            replica.start()

    async def kill_now_and_then(self, every: float) -> None:
        while True:
            await asyncio.sleep(every * (0.5 + random.random()))
            number = random.randrange(1, len(self.replicas))
            await asyncio.to_thread(self.replicas[number].kill)
            self._result.happened["replicas killed"] += 1
            self._replace(number)

    async def weigh(self) -> None:
        """Follows the memory of the first, from its start; from the beginning again if it ended itself."""
        weighed, started = None, time.monotonic()
        while True:
            self.revive()
            pid = self.replicas[0].pid
            if pid != weighed:
                weighed, started = pid, time.monotonic()
                self._result.memory.clear()
            if pid is not None:
                self._result.memory.append((time.monotonic() - started, _proc.memory(pid)["anonymous"]))
            await asyncio.sleep(SAMPLE_EVERY)

    def lost_at(self, key: Key) -> float:
        """When the replica that served an object was last lost; long ago if none ever was."""
        shard = Shard(shard_number(key.namespace, key.name, self._crew.count), self._crew.count)
        return self._lost.get(str(shard), float("-inf"))

    def any_up(self) -> bool:
        return any(map(self._is_up, self.replicas))

    def _is_up(self, replica: Server) -> bool:
        if replica.pid is None:
            return False
        if replica.name not in self._up and STARTED in replica.log.read_text(errors="replace"):
            self._up.add(replica.name)
        return replica.name in self._up

    def revive(self) -> None:
        """Does as Kubernetes does for a replica that ended itself, as it must if it was held up in mid-write."""
        for number, replica in enumerate(self.replicas):
            if replica.exit_code is None:
                continue
            if replica.exit_code == EXIT_CODE:
                self._result.happened["replicas ended by their own watchdog"] += 1
            else:
                said = "\n".join(replica.last_lines(5))
                self._result.violations.append(f"a replica ended with {replica.exit_code}:\n{said}")
            self._replace(number)

    def _replace(self, number: int) -> None:
        self._lost |= dict.fromkeys(_held(self.replicas[number]), time.monotonic())
        self.replicas[number] = self._crew.replica(number)
        self.replicas[number].start()


def _held(replica: Server) -> set[str]:
    """The shards that a replica had at last, by its log."""
    held = set[str]()
    for line in replica.log.read_bytes().splitlines():
        with suppress(orjson.JSONDecodeError):  # it was killed in the middle of a line
            entry = orjson.loads(line)
            if entry.get("event") == TAKEN:
                held.add(entry["shard"])
            elif entry.get("event") in GIVEN:
                held.discard(entry["shard"])
    return held

"""A replica that was stopped for longer than its lease writes nothing once another has taken over.

Proven by the API server's audit log while both are kept busy. `FENCING_RUNS=100` stops one a hundred times.
"""

import os
import signal
from datetime import UTC, datetime

import pytest

from service.sharding.watchdog import EXIT_CODE
from tests.integration.replicas import SHORT_LEASES, USERS, arena, restless
from tests.waiting import until

RUNS = int(os.environ.get("FENCING_RUNS", "1"))
OBJECTS = 16
PATIENCE = 180.0


@pytest.mark.timeout(600 + 60 * RUNS)
async def test_a_replica_that_was_stopped_writes_nothing_after_its_successor(audited):
    async with arena(audited, flags=SHORT_LEASES) as stage:
        await stage.store(restless(OBJECTS))
        for user in USERS:
            await stage.start(user)
        for run in range(RUNS):
            try:
                late = await written_after_a_stop(stage)
            except TimeoutError:
                pytest.fail(f"stuck in run {run + 1} of {RUNS}:\n{await stage.described()}")
            assert late == [], f"in run {run + 1} of {RUNS}"


async def written_after_a_stop(stage):
    """Stops the active replica, waits for the other, resumes the first; returns the late writes that were accepted.

    Not what it wrote after it got the shard back in its turn: the other may be slow, or have ended.
    """
    before = stage.audit()
    user = await until(lambda: busiest(stage, before), within=PATIENCE)
    stopped = stage.replicas[user]
    successor = next(other for other in USERS if other != user)
    stopped.signal(signal.SIGSTOP)
    since = stage.audit()
    first = (await until(lambda: written_by(successor, since, stage), within=PATIENCE))[0]
    logged, seen, resumed = len(stopped.process.events), len(since.read()), datetime.now(UTC)
    if stopped.alive:  # else it had ended by itself just before
        stopped.signal(signal.SIGCONT)
    # It has noticed, or is no more; and whatever it had under way has had time to arrive.
    await until(lambda: not stopped.alive or stopped.lost_since(logged), within=PATIENCE)
    await until(lambda: more_than(seen + OBJECTS, since, stage, successor), within=PATIENCE)
    late = [write for write in since.by(user) if write.at > first.at]
    again = stopped.acquired_since(resumed)
    return [write for write in late if again is None or datetime.fromisoformat(write.at) < again]


async def all_alive(stage):
    """Starts replicas that ended again."""
    for user in USERS:
        await alive(stage, user)


async def alive(stage, user):
    """Does as a kubelet does for a replica that was held up in mid-write, and ended rather than let it go out."""
    replica = stage.replicas[user]
    if not replica.alive:
        assert await replica.process.ended() == EXIT_CODE
        await stage.start(user)


async def written_by(successor, audit, stage):
    """What it has written so far. It may end at any moment, and only it is brought back.

    A new replica under the name of the one that was stopped could get the shard in its stead, or pass for it.
    """
    await alive(stage, successor)
    return audit.by(successor)


async def more_than(count, audit, stage, successor):
    """Whether so much was written, by whomever."""
    await alive(stage, successor)
    return len(audit.read()) > count


async def busiest(stage, audit):
    """Who works and has not ended by itself meanwhile."""
    await all_alive(stage)
    user = audit.busiest()
    return user if user and stage.replicas[user].alive else None

"""Connections to workload clusters belong to all who need them, and so does what they log."""

import asyncio
from typing import Any

import structlog

from service.runtime.key import Key
from service.workload.clusters import WorkloadClusters
from service.workload.connection import WorkloadCluster
from tests.waiting import running, until


async def test_what_a_cluster_logs_is_not_said_of_the_object_that_needed_it_first(monkeypatch):
    bound = []

    async def run(_workload):
        bound.append(structlog.contextvars.get_contextvars())
        await asyncio.Event().wait()

    monkeypatch.setattr(WorkloadCluster, "run", run)
    nowhere: Any = None
    workloads = WorkloadClusters(nowhere)
    async with running(workloads.run()):
        await asyncio.sleep(0)
        with structlog.contextvars.bound_contextvars(object="a/desk"):
            workloads.hold(Key("a", "prod"), Key("a", "desk"))
        await until(lambda: bound)
        workloads.release(Key("a", "desk"))
    assert bound == [{}]

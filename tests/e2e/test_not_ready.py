"""A host that never joins: one Event, in Cluster API's own words, and left to a MachineHealthCheck."""

from collections.abc import AsyncIterator

import pytest

from local.provider.kinds import MACHINES
from service import metrics
from service.kube.client import Client
from tests.e2e.manifests import MINUTE, NINE, condition, machine
from tests.e2e.operator import Operator, operating
from tests.waiting import until

LATE = {"simulate": {"failure": "NodeNeverJoins"}}


@pytest.fixture(params=["v1beta1", "v1beta2"])
async def op(request: pytest.FixtureRequest, management: Client, namespace: str) -> AsyncIterator[Operator]:
    async with operating(management, namespace, NINE, capi_contract=request.param) as operator:
        yield operator


def gauges() -> tuple[float, float]:
    found = (metrics.OBJECTS_READY, metrics.OBJECTS_NOT_READY_IN_TIME)
    ready, late = (next(iter(one.collect())).samples[0].value for one in found)
    return ready, late


async def test_a_host_that_never_joins_is_reported_when_its_time_is_up(op: Operator) -> None:
    await op.apply(machine("good"))
    await op.apply(machine("late", infrastructure=LATE, provisioningTimeout="20m"))
    good = await op.ready("good")
    assert good["firstReadyTime"]
    waiting = await op.until("late", lambda status: "providerID" in status.get("message", ""))
    assert condition(waiting, "Ready")["reason"] == "MachineProvisioning"
    uid = (await op.read(MACHINES, "late-machine"))["metadata"]["uid"]

    op.clock.advance(19 * MINUTE)
    await op.at_rest()
    assert (await op.events("late"))["NotReadyInTime"] == 0

    op.clock.advance(2 * MINUTE)
    status = await op.phase("late", "Active", "NotReadyInTime")
    ready = condition(status, "Ready")
    assert ready["status"] == "False"
    assert "not Ready 20m after its creation" in ready["message"]
    assert "NodeReady: Waiting for a Node with spec.providerID" in ready["message"]
    await until(lambda: gauges() == (1, 1))  # they count what the cache has, which a watch fills
    events = [one for one in await op.event_objects("late") if one["reason"] == "NotReadyInTime"]
    assert [one["type"] for one in events] == ["Warning"]
    assert (await op.read(MACHINES, "late-machine"))["metadata"]["uid"] == uid
    assert "firstReadyTime" not in status


async def test_a_restart_in_between_neither_loses_the_time_nor_repeats_the_event(
    management: Client, namespace: str
) -> None:
    async with operating(management, namespace, NINE) as first:
        await first.apply(machine("late", infrastructure=LATE))
        await first.phase("late", "Active")
    async with operating(management, namespace, NINE + 14 * MINUTE) as second:
        await second.at_rest()
        second.clock.advance(2 * MINUTE)
        await second.phase("late", "Active", "NotReadyInTime")
    async with operating(management, namespace, NINE + 20 * MINUTE) as third:
        assert (await third.events("late"))["NotReadyInTime"] == 1

"""Overrides cost no request while nothing begins or ends: the controller has timers, and polls nothing."""

from datetime import datetime, timedelta

from crds.base import rfc3339
from local.cluster import LocalCluster
from service.kube.resource import SCHEDULE_OVERRIDES, SCHEDULED_MACHINES
from tests.e2e.manifests import EIGHT, machine, says
from tests.integration.guarded import Guarded, guarded, home
from tests.waiting import until

MACHINES, OVERRIDES = 30, 12
HOUR = timedelta(hours=1)
NIGHT = EIGHT - 7 * HOUR


async def test_a_day_of_overrides_that_neither_begin_nor_end_costs_no_request(audited: LocalCluster) -> None:
    async with audited.client() as client:
        namespace = await home(client, "rest")
    async with guarded(audited, (namespace,), NIGHT) as found:
        for number in range(MACHINES):
            body = machine(f"m{number}", infrastructure={"address": f"host-{number}"})
            await found.client.create(SCHEDULED_MACHINES, body, namespace=namespace)
        for number in range(OVERRIDES):
            await override(found, namespace, number, NIGHT + 60 * HOUR)
        await until(lambda: found.phases("Inactive") == MACHINES, within=120)
        await until(lambda: all_accepted(found, namespace), within=120)
        await at_rest(found)
        before = len(found.requests)
        for _ in range(6):
            found.clock.advance(HOUR)
            await at_rest(found)
        assert [request.path for request in found.requests[before:]] == []

        written = len(found.writes)
        found.clock.move_to(EIGHT + HOUR)
        await until(lambda: len(found.writes) > written, within=60)


async def override(found: Guarded, namespace: str, number: int, ends: datetime) -> None:
    """Some close machines that are closed anyway, some are to begin later, some select several."""
    spec: dict[str, object] = {"machines": [f"m{number}"], "state": "Closed", "until": rfc3339(ends)}
    if number % 3 == 1:
        spec["from"] = rfc3339(ends - HOUR)
    if number % 3 == 2:
        del spec["machines"]
        spec["selector"] = {"matchLabels": {"room": str(number)}}
    body = {**SCHEDULE_OVERRIDES.envelope(), "metadata": {"name": f"o{number}"}, "spec": spec}
    await found.client.create(SCHEDULE_OVERRIDES, body, namespace=namespace)


async def all_accepted(found: Guarded, namespace: str) -> bool:
    listed = await found.client.list(SCHEDULE_OVERRIDES, namespace=namespace)
    return all(says(raw.get("status") or {}, "Accepted", "True") for raw in listed)


async def at_rest(found: Guarded) -> None:
    found.controller.overrides._queue.wake_due()
    await until(lambda: not found.controller.overrides.busy, within=60)
    await found.at_rest()

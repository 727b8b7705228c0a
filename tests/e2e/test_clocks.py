"""Replicas whose clocks differ by seconds, one after the other on the same objects."""

from datetime import timedelta

from local.provider.kinds import MACHINES
from service.kube.client import Client
from tests.e2e.manifests import NINE, machine
from tests.e2e.operator import operating

A_LITTLE = timedelta(seconds=40)


async def test_a_successor_whose_clock_is_behind_keeps_the_machine_that_was_just_made(
    management: Client, namespace: str
) -> None:
    async with operating(management, namespace, NINE) as first:
        await first.apply(machine(infrastructure={"simulate": {"failure": "NodeNeverJoins"}}))
        await first.phase("worker", "Active")
        made = await first.children("worker")
    async with operating(management, namespace, NINE - A_LITTLE) as second:
        await second.at_rest()
        status = (await second.get("worker"))["status"]
        kept = await second.children("worker")
        assert (status["phase"], status["inSchedule"]) == ("Active", True)
        assert {end: raw["metadata"]["uid"] for end, raw in kept.items()} == {
            end: raw["metadata"]["uid"] for end, raw in made.items()
        }
        assert "deletionTimestamp" not in (await second.read(MACHINES, "worker-machine"))["metadata"]
        second.clock.move_to(NINE - timedelta(minutes=6))
        await second.phase("worker", "Inactive")

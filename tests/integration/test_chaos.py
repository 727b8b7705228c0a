"""A case of every fault and of every scenario; `make chaos` plays them all."""

import asyncio
from dataclasses import replace

import pytest

from crds import names
from local.cluster import LocalCluster
from local.provider.kinds import HOSTS, MACHINES
from service.kube.resource import NODES, PODS
from tests.chaos.case import Result, arena, play
from tests.chaos.faults import Fault, Moment, Strike
from tests.chaos.scenarios import BY_NAME, SCENARIOS, Scenario, Step, phase
from tests.chaos.stage import NAME, NEIGHBOUR, Stage

CASES = {
    ("activation", Fault.CRASH_AFTER): "POST machines worker-machine",
    ("activation", Fault.CRASH_STALE): "POST remotemachines worker-infra",
    ("activation", Fault.CONFLICT): "POST k0sworkerconfigs worker-bootstrap",
    ("activation", Fault.KILL_AFTER): "POST remotemachines worker-infra",
    ("early", Fault.STALE_LIST): "POST machines worker-machine",
    ("shutdown", Fault.CRASH_BEFORE): "POST pods/eviction one",
    ("shutdown", Fault.THROTTLED): "PATCH machines worker-machine",
    ("shutdown", Fault.KILL_BEFORE): "DELETE machines worker-machine",
    ("kill-switch", Fault.SILENT): "DELETE machines worker-machine",
    ("deletion", Fault.CUT): "PATCH scheduledmachines worker",
    ("taints", Fault.FAILED): "PATCH nodes host-worker-NAMESPACE",
    ("taints", Fault.EXPIRED): "PATCH nodes host-worker-NAMESPACE",
    ("reclaim", Fault.STALE_LIST): "PATCH scheduledmachines worker",
    ("cancelled", Fault.WATCH_DROPPED): "PATCH nodes host-worker-NAMESPACE",
    ("agent", Fault.CRASH_AFTER): "PATCH configmaps reclaim-agent-host-worker-NAMESPACE",
    ("calendar-edited", Fault.CRASH_AFTER): "PUT schedulecalendars/status shutdown",
    ("calendar-broken", Fault.CRASH_STALE): "PUT schedulecalendars/status shutdown",
    ("calendar-restored", Fault.KILL_BEFORE): "DELETE machines worker-machine",
    ("override-opens", Fault.CRASH_AFTER): "PUT scheduleoverrides/status a-tonight",
    ("override-closes", Fault.CRASH_BEFORE): "DELETE machines worker-machine",
    ("override-ends", Fault.CONFLICT): "PUT scheduleoverrides/status a-tonight",
    ("override-overlaps", Fault.WATCH_DROPPED): "PUT scheduleoverrides/status b-newer",
    ("override-begins", Fault.CRASH_STALE): "PUT scheduleoverrides/status a-tonight",
    ("override-ends-early", Fault.CRASH_AFTER): "PATCH nodes host-worker-NAMESPACE",
    ("override-expires", Fault.SILENT): "DELETE scheduleoverrides a-tonight",
}


async def sabotage(stage: Stage) -> None:
    """All that must never happen, at once."""
    await stage.client.delete(MACHINES, f"{NAME}-machine-2", namespace=stage.namespace)
    await stage.client.delete(PODS, "at-home", namespace=stage.namespace)
    cordon = {"metadata": {"annotations": {names.ANNOTATION_CORDONED: "true"}}}
    await stage.client.patch(NODES, f"{stage.node}-2", cordon)
    await stage.create(HOSTS, {"metadata": {"name": f"{NAME}-infra-without-owner"}, "spec": {}})
    stage.clock.move_to(stage.clock.now().replace(hour=18))


SABOTAGED = replace(BY_NAME["shutdown"], name="sabotaged", steps=(Step(sabotage, phase("Inactive")),), runs=True)


@pytest.mark.timeout(900)  # a dozen operators at once: a busy machine needs its time
async def test_a_fault_of_every_kind_is_survived_in_every_scenario(audited: LocalCluster) -> None:
    """A dozen at the same time: it is the waiting that takes long."""
    async with arena(audited) as stage:
        free = asyncio.Semaphore(12)

        async def played(scenario: Scenario, strike: Strike) -> Result:
            async with free:
                return await play(stage, scenario, strike)

        strikes = [(BY_NAME[name], Strike(fault, Moment(label, 1))) for (name, fault), label in CASES.items()]
        results = await asyncio.gather(*(played(scenario, strike) for scenario, strike in strikes))
    assert [str(result) for result in results if not result.survived] == []


def test_every_fault_and_every_scenario_is_among_them() -> None:
    assert {fault for _, fault in CASES} == set(Fault)
    assert {name for name, _ in CASES} == {scenario.name for scenario in SCENARIOS}


async def test_what_must_never_happen_would_be_noticed(audited: LocalCluster) -> None:
    async with arena(audited) as stage:
        breaches = "\n".join((await play(stage, SABOTAGED, None)).breaches)
    for text in (
        f"Machine {NAME}-machine-2 was deleted",
        f"no foreign object touched: Node host-{NAME}-",
        f"RemoteMachine {NAME}-infra-without-owner has no owner",
        f"the pod of {NEIGHBOUR} was taken away",
        "one Machine or none: there should be",
    ):
        assert text in breaches

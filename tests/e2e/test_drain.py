"""The drain with real budgets: careful while there is time, and never in the way of a removal."""

from dataclasses import replace
from datetime import timedelta

from crds import names
from local.provider.kinds import MACHINES
from service.kube.client import Client
from service.kube.resource import NODES, PODS
from service.kube.transport import Call
from service.runtime.key import Key
from tests.e2e.manifests import MONDAY_NINE, NINE, SIX, condition
from tests.e2e.operator import Operator, operating
from tests.e2e.pods import BUDGETS, Tenants, is_going, was_evicted
from tests.e2e.workload import WorkloadSide

SECOND = timedelta(seconds=1)
HOOK = "pre-drain.delete.hook.machine.cluster.x-k8s.io/test"


async def left_the_machine_to_cluster_api(op: Operator) -> dict:
    return await op.until_object(MACHINES, "worker-machine", lambda raw: "deletionTimestamp" in raw["metadata"])


# Budgets


async def test_a_budget_that_allows_one_at_a_time_is_honoured_and_named(op: Operator, tenants: Tenants) -> None:
    node = await op.in_service()
    for name in ("one", "two"):
        await tenants.run(name, node)
    budget = await tenants.budget("web", minAvailable=1)

    op.clock.move_to(SIX)
    status = await op.until("worker", lambda status: budget in status["message"] and "1 pod(s)" in status["message"])
    (left,) = await tenants.names()
    assert f"default/{tenants.app}-{left}" in status["message"]
    assert condition(status, "Ready")["message"] == status["message"]
    assert "deletionTimestamp" not in (await op.read(MACHINES, "worker-machine"))["metadata"]

    await tenants.run("replacement")
    await op.phase("worker", "Inactive")
    assert await tenants.names() == {"replacement"}
    emitted = await op.events("worker")
    assert (emitted["NodeDrained"], emitted["DrainTimedOut"]) == (1, 0)


async def test_when_the_drain_timeout_is_up_a_budget_that_never_allows_is_overruled(
    op: Operator, tenants: Tenants
) -> None:
    node = await op.in_service(nodeDrainTimeout="2m", gracefulShutdownTimeout="10m")
    await tenants.run("one", node)
    budget = await tenants.budget("never", maxUnavailable=0)

    op.clock.move_to(SIX)
    status = await op.until("worker", lambda status: budget in status["message"])
    assert status["nextCleanup"].startswith("2026-03-06T18:10:")
    op.clock.move_to(SIX + 100 * SECOND)
    assert await tenants.names() == {"one"}
    assert "deletionTimestamp" not in (await op.read(MACHINES, "worker-machine"))["metadata"]

    op.clock.move_to(SIX + 150 * SECOND)
    leaving = await left_the_machine_to_cluster_api(op)
    bounds = leaving["spec"]["deletion"]
    assert bounds["nodeDrainTimeoutSeconds"] == 1
    assert 400 < bounds["nodeVolumeDetachTimeoutSeconds"] < 480
    await op.childless("worker")
    warnings = [event["reason"] for event in await op.event_objects("worker") if event["type"] == "Warning"]
    assert warnings == ["DrainBlocked", "DrainTimedOut"]


async def test_when_the_grace_is_up_first_cluster_api_does_not_drain_either(op: Operator, tenants: Tenants) -> None:
    node = await op.in_service(nodeDrainTimeout="10m", gracefulShutdownTimeout="1m")
    await tenants.run("one", node)
    budget = await tenants.budget("never", maxUnavailable=0)
    op.clock.move_to(SIX)
    await op.until("worker", lambda status: budget in status["message"])

    op.clock.move_to(SIX + 120 * SECOND)
    leaving = await left_the_machine_to_cluster_api(op)
    assert {names.ANNOTATION_EXCLUDE_DRAIN, names.ANNOTATION_EXCLUDE_VOLUME_DETACH} <= leaving["metadata"][
        "annotations"
    ].keys()
    await op.childless("worker")
    assert (await op.events("worker"))["DrainTimedOut"] == 1


async def test_two_budgets_over_one_pod_are_named_and_waited_for(op: Operator, tenants: Tenants) -> None:
    node = await op.in_service()
    await tenants.run("one", node)
    budgets = [await tenants.budget(name, minAvailable=0) for name in ("first", "second")]

    op.clock.move_to(SIX)
    status = await op.until("worker", lambda status: "more than one PodDisruptionBudget" in status["message"])
    assert f"default/{tenants.app}-one" in status["message"]
    assert status["phase"] == "ShuttingDown"

    await tenants.drop(BUDGETS, budgets[0])
    await op.phase("worker", "Inactive")
    assert await tenants.names() == set()


# Pods


async def test_daemonset_mirror_and_finished_pods_stay_and_all_others_are_evicted(
    op: Operator, tenants: Tenants
) -> None:
    node = await op.in_service()
    daemon = await tenants.daemon(node)
    await tenants.run("mirror", node, mirror=True)
    await tenants.run("finished", node)
    await tenants.report("finished", phase="Succeeded")
    await tenants.run("unmanaged", node, hold=True)
    await op.change(MACHINES, "worker-machine", {"metadata": {"annotations": {HOOK: ""}}})

    op.clock.move_to(SIX)
    assert was_evicted(await tenants.until("unmanaged", is_going))
    await op.until("worker", lambda status: f"default/{tenants.app}-unmanaged" in status["message"])
    await tenants.let_go("unmanaged")
    await left_the_machine_to_cluster_api(op)
    assert await tenants.names() == {"mirror", "finished"}
    assert not is_going(await tenants.client.get(PODS, daemon, namespace="default"))

    await op.until("worker", lambda status: HOOK in status["message"])
    await op.change(MACHINES, "worker-machine", {"metadata": {"annotations": {HOOK: None}}})
    await op.childless("worker")


async def test_a_pod_that_ignores_its_termination_is_named_and_does_not_outstay_the_grace(
    op: Operator, tenants: Tenants
) -> None:
    node = await op.in_service(gracefulShutdownTimeout="1m")
    await tenants.run("deaf", node, hold=True)

    op.clock.move_to(SIX)
    status = await op.until("worker", lambda status: "terminating" in status["message"])
    assert f"default/{tenants.app}-deaf" in status["message"]
    assert was_evicted(await tenants.pod("deaf"))

    op.clock.move_to(SIX + 120 * SECOND)
    await op.phase("worker", "Inactive")
    assert (await op.events("worker"))["DrainTimedOut"] == 1


async def test_a_drain_that_waits_for_a_pod_asks_for_nothing_and_hears_of_its_end(
    op: Operator, tenants: Tenants
) -> None:
    node = await op.in_service()
    await tenants.run("slow", node, hold=True)
    op.clock.move_to(SIX)
    await op.until("worker", lambda status: "terminating" in status["message"])
    await op.at_rest()
    calls: list[Call] = []
    connection = op.controller.workloads.get(Key(op.namespace, "demo"))
    assert connection is not None
    connection._listener = replace(connection._listener, call=calls.append)

    await tenants.let_go("slow")
    await left_the_machine_to_cluster_api(op)
    assert [call for call in calls if call.resource == PODS.plural and call.verb != "watch"] == []
    await op.phase("worker", "Inactive")
    assert op.controller.observer.workload.drains._shared.names(connection.key) == frozenset()


async def test_a_node_that_is_already_gone_needs_no_drain(op: Operator, workload: WorkloadSide) -> None:
    node = await op.in_service()
    await workload.client.delete(NODES, node)
    await op.phase("worker", "Active", "WaitingForNode")

    op.clock.move_to(SIX)
    await op.phase("worker", "Inactive")
    await op.childless("worker")
    assert (await op.events("worker"))["DrainTimedOut"] == 0


# Cordon


async def test_evictions_stop_when_the_shutdown_is_cancelled(op: Operator, tenants: Tenants) -> None:
    node = await op.in_service()
    await tenants.run("one", node)
    budget = await tenants.budget("never", maxUnavailable=0)
    op.clock.move_to(SIX)
    await op.until("worker", lambda status: budget in status["message"])

    op.clock.move_to(MONDAY_NINE)
    await op.ready("worker")
    calls: list[Call] = []
    connection = op.controller.workloads.get(Key(op.namespace, "demo"))
    assert connection is not None
    connection._listener = replace(connection._listener, call=calls.append)
    await tenants.drop(BUDGETS, budget)
    await op.edit_spec("worker", nodeTaints=[{"key": "example.com/seen", "effect": "NoSchedule"}])
    await op.until("worker", lambda status: status.get("appliedNodeTaints"))
    assert await tenants.names() == {"one"}
    # The drain's watches of pods and budgets may end, with their first list, only now: what acts, acts on the Node.
    acting = {(call.verb, call.resource) for call in calls if call.verb not in ("list", "watch")}
    assert {resource for _, resource in acting} == {NODES.plural}, acting


async def test_an_administrators_cordon_is_left_alone(op: Operator, workload: WorkloadSide) -> None:
    node = await op.in_service()
    await workload.client.patch(NODES, node, {"spec": {"unschedulable": True}}, field_manager="kubectl-cordon")
    await workload.occupy(node)
    op.clock.move_to(SIX)
    await op.phase("worker", "ShuttingDown", "Draining")

    op.clock.move_to(MONDAY_NINE)
    await op.ready("worker")
    seen = await workload.node(node)
    assert seen["spec"]["unschedulable"]
    assert names.ANNOTATION_CORDONED not in seen["metadata"]["annotations"]


async def test_a_cordon_left_over_from_a_controller_that_died_is_undone_when_the_node_comes_back(
    management: Client, namespace: str, workload: WorkloadSide
) -> None:
    async with operating(management, namespace, NINE) as op:
        node = await op.in_service()
        await workload.occupy(node)
        op.clock.move_to(SIX)
        await op.phase("worker", "ShuttingDown", "Draining")
        # Another writer of the Node may be quicker than the first cordon: the controller must live until it is there.
        left = await workload.until_node(node, lambda raw: raw["spec"].get("unschedulable"))
    assert left["metadata"]["annotations"][names.ANNOTATION_CORDONED]
    await workload.client.delete(NODES, node)

    async with operating(management, namespace, MONDAY_NINE) as op:
        await op.phase("worker", "Active", "WaitingForNode")
        again = {key: value for key, value in left["metadata"].items() if key in ("name", "labels", "annotations")}
        await workload.client.create(NODES, {"metadata": again, "spec": left["spec"]})
        seen = await workload.until_node(node, lambda raw: not raw["spec"].get("unschedulable"))
        assert names.ANNOTATION_CORDONED not in seen["metadata"]["annotations"]
        await op.ready("worker")

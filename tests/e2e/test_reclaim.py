"""Emergency reclaim with both clusters, Cluster API, and the agent as a real process that sees a match."""

import asyncio
import json
import secrets
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from crds import names
from local.binaries import Assets
from local.plane import ControlPlane
from local.provider.kinds import HOSTS, MACHINES
from service import metrics
from service.act import reclaim
from service.kube.resource import CONFIG_MAPS, DAEMON_SETS, NODES, PODS, SCHEDULED_MACHINES
from service.runtime.key import Key
from tests import watching
from tests.e2e.manifests import MONDAY_NINE, SIX, condition, machine, says
from tests.e2e.operator import Operator
from tests.e2e.pods import Tenants
from tests.e2e.reclaims import REQUEST, Workstations, config_name, is_labelled
from tests.e2e.scenes import shutting_down
from tests.e2e.workload import WorkloadSide
from tests.integration.agents import Host, agent, document, install, lookalike, owner_starts
from tests.waiting import until

Raw = dict[str, Any]
PODS_ON_NODE = 30


@pytest.fixture(scope="module", autouse=True)
def installed(plane: ControlPlane, assets: Assets) -> None:
    """The agent's own manifests in the workload cluster."""
    install(plane.workload, assets.kubectl)


@pytest.fixture
async def desks(op: Operator, workload: WorkloadSide) -> Workstations:
    return Workstations(op, workload.client)


# The whole story


async def test_the_owner_starts_an_ide_and_the_machine_leaves_and_comes_back_when_enabled(
    op: Operator, desks: Workstations, plane: ControlPlane, tmp_path: Path
) -> None:
    program, machine_id = lookalike(tmp_path), secrets.token_hex(16)
    simulate = {"simulate": {"machineID": machine_id}}
    node = await desks.serve(killIfCommands=[program.name], infrastructure=simulate)
    host = Host(desks.client, plane.workload, node, machine_id)
    with agent(host, await host.token(), tmp_path) as running:
        await running.says("config")
        with owner_starts(program):
            status = await desks.ejected()
    assert program.name in status["lastReclaim"]["reason"]
    assert status["lastReclaim"]["node"] == node
    await watching.until_gone(desks.client, NODES, node)
    await desks.without_config(node)
    await op.childless("worker")
    assert (await op.get("worker"))["spec"]["schedule"]["enabled"] is False
    assert says(status, "Scheduled", "False", "EmergencyReclaim")
    assert f"kubectl -n {op.namespace} patch scheduledmachine worker" in condition(status, "Scheduled")["message"]

    await op.edit_spec("worker", schedule={"enabled": True})
    status = await op.ready("worker")
    assert "lastReclaim" not in status
    await desks.until_equipped(node)
    emitted = await op.events("worker")
    assert (emitted["EmergencyReclaim"], emitted["EmergencyReclaimDisabledSchedule"]) == (1, 1)
    assert (emitted["ScheduleResumed"], emitted["ReclaimReverted"], emitted["MachineCreated"]) == (1, 0, 2)


async def test_an_owner_who_still_works_when_the_schedule_is_enabled_reclaims_the_machine_again(
    op: Operator, desks: Workstations, plane: ControlPlane, tmp_path: Path
) -> None:
    program, machine_id = lookalike(tmp_path), secrets.token_hex(16)
    node = await desks.serve(killIfCommands=[program.name], infrastructure={"simulate": {"machineID": machine_id}})
    host = Host(desks.client, plane.workload, node, machine_id)
    with owner_starts(program):
        for _ in range(2):
            with agent(host, await host.token(), tmp_path):
                await desks.ejected()
            await op.edit_spec("worker", schedule={"enabled": True})
            await op.ready("worker")
            await desks.until_equipped(node)
    assert (await op.events("worker"))["EmergencyReclaim"] == 2


def timed_drain(patch: pytest.MonkeyPatch) -> list[float]:
    """How long each forced drain takes."""
    original, seconds = reclaim._force_drain, list[float]()

    async def timed(*arguments: Any) -> None:
        started = time.monotonic()
        await original(*arguments)
        seconds.append(time.monotonic() - started)

    patch.setattr(reclaim, "_force_drain", timed)
    return seconds


def forced_deletions() -> float:
    return metrics.REGISTRY.get_sample_value("fivespot_forced_pod_deletions_total", {"result": "accepted"}) or 0.0


async def test_thirty_pods_do_not_delay_a_reclaim(
    op: Operator,
    desks: Workstations,
    tenants: Tenants,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    node = await desks.serve()
    await op.hold(HOSTS, "worker-infra")
    await asyncio.gather(*(tenants.run(f"pod-{number}", node) for number in range(PODS_ON_NODE)))
    daemon = await tenants.daemon(node)
    await tenants.budget("none", minAvailable=PODS_ON_NODE)

    drained = timed_drain(monkeypatch)
    counted = forced_deletions()
    asked = time.monotonic()
    await desks.ask_back(node)
    await op.until_object(MACHINES, "worker-machine", lambda raw: "deletionTimestamp" in raw["metadata"])
    took = time.monotonic() - asked
    with capsys.disabled():
        figures = f"{took:.2f} s, of which {drained[0]:.2f} s deleted {PODS_ON_NODE} pods"
        sys.stdout.write(f"\nfrom annotation to Machine deletion: {figures}\n")
    assert took - drained[0] < 20
    assert drained[0] < reclaim.DRAIN_SECONDS
    assert await tenants.names() == set()
    assert forced_deletions() - counted == PODS_ON_NODE
    assert "deletionTimestamp" not in (await desks.client.get(PODS, daemon, namespace="default"))["metadata"]
    annotations = (await op.read(MACHINES, "worker-machine"))["metadata"]["annotations"]
    assert {names.ANNOTATION_EXCLUDE_DRAIN, names.ANNOTATION_EXCLUDE_VOLUME_DETACH} <= annotations.keys()
    await op.let_go(HOSTS, "worker-infra")
    await desks.ejected()


# Other rules beside it


async def test_a_reclaim_in_the_middle_of_a_shutdown_removes_the_machine_at_once(
    op: Operator, desks: Workstations, workload: WorkloadSide
) -> None:
    await desks.serve()
    node = await shutting_down(op, workload)
    await op.hold(HOSTS, "worker-infra")
    await desks.ask_back(node)
    await op.phase("worker", "EmergencyRemove")
    await op.until_object(MACHINES, "worker-machine", lambda raw: "deletionTimestamp" in raw["metadata"])
    await op.let_go(HOSTS, "worker-infra")
    await desks.ejected()
    await op.childless("worker")


async def test_a_reclaim_removes_a_machine_whose_schedule_is_disabled(op: Operator, desks: Workstations) -> None:
    node = await desks.serve()
    await op.edit_spec("worker", schedule={"enabled": False})
    await op.phase("worker", "Disabled")
    await desks.ask_back(node)
    await desks.ejected()
    await op.childless("worker")


async def paused_and_asked(op: Operator, desks: Workstations) -> None:
    """A request that the controller may not act upon yet."""
    node = await desks.serve()
    await op.edit("worker", {"metadata": {"annotations": {names.ANNOTATION_PAUSED: "true"}}})
    await op.until("worker", lambda status: says(status, "Paused", "True"))
    await desks.ask_back(node)
    await until(lambda: has_heard_of_request(op, node))
    await op.at_rest()
    assert "reclaim" not in (await op.get("worker"))["status"]


def has_heard_of_request(op: Operator, node: str) -> bool:
    connected = op.controller.workloads.get(Key(op.namespace, "demo"))
    seen = connected.nodes.get(Key("", node)) if connected else None
    return seen is not None and REQUEST.items() <= seen["metadata"]["annotations"].items()


async def test_nothing_happens_while_it_is_paused(op: Operator, desks: Workstations) -> None:
    await paused_and_asked(op, desks)
    await op.edit("worker", {"metadata": {"annotations": {names.ANNOTATION_PAUSED: None}}})
    await desks.ejected()


async def test_the_kill_switch_outranks_it(op: Operator, desks: Workstations) -> None:
    await paused_and_asked(op, desks)
    resumed = {"metadata": {"annotations": {names.ANNOTATION_PAUSED: None}}, "spec": {"killSwitch": True}}
    await op.edit("worker", resumed)
    await op.phase("worker", "Terminated", "KillSwitch")
    seen = await op.get("worker")
    assert (seen["status"].get("reclaim"), seen["status"].get("lastReclaim")) == (None, None)
    assert seen["spec"]["schedule"].get("enabled") is not False
    assert (await op.events("worker"))["EmergencyReclaim"] == 0


async def test_a_scheduledmachine_that_is_being_deleted_goes_at_once(
    op: Operator, desks: Workstations, workload: WorkloadSide
) -> None:
    node = await desks.serve()
    await workload.occupy(node)
    await op.delete("worker")
    await op.phase("worker", "ShuttingDown")
    await desks.ask_back(node)
    await op.gone("worker")


# Who asks


async def test_a_request_on_an_unowned_node_is_ignored_and_logged_once(op: Operator, desks: Workstations) -> None:
    await desks.serve()
    name = f"unowned-{secrets.token_hex(4)}"
    body = {"metadata": {"name": name, "annotations": REQUEST}}
    seen = await desks.client.create(NODES, {**NODES.envelope(), **body})
    uid = seen["metadata"]["uid"]
    unowned = op.controller.triggers.unowned_nodes
    await until(lambda: uid in unowned._reported)
    await desks.client.patch(NODES, name, {"metadata": {"labels": {"look": "again"}}})
    await op.at_rest()
    assert (await op.get("worker"))["status"]["phase"] == "Active"
    assert set(REQUEST) <= set((await desks.client.get(NODES, name))["metadata"]["annotations"])
    await desks.client.delete(NODES, name)


async def test_a_request_left_over_from_an_earlier_machine_is_cleared_and_not_acted_upon(
    op: Operator, desks: Workstations
) -> None:
    """The Node is there before its Machine, as after a host that was never deregistered."""
    await op.apply(machine("first", infrastructure={"address": f"shared.{op.namespace}"}))
    status = await op.ready("first")
    name = status["nodeRef"]["name"]
    op.clock.move_to(SIX)
    await op.phase("first", "Inactive")
    await watching.until_gone(desks.client, NODES, name)
    body = {"metadata": {"name": name, "annotations": REQUEST}, "spec": {"providerID": status["providerID"]}}
    await desks.client.create(NODES, {**NODES.envelope(), **body})

    op.clock.move_to(MONDAY_NINE)
    await op.ready("first")
    seen = await desks.client.get(NODES, name)
    assert not set(REQUEST) & set(seen["metadata"]["annotations"])
    assert (await op.events("first"))["EmergencyReclaim"] == 0
    await desks.ask_back(name)
    await op.phase("first", "EmergencyRemove")


@pytest.mark.parametrize(("manager", "warnings"), [("argocd-controller", 1), ("k9s", 0)])
async def test_a_gitops_tool_that_enables_the_schedule_soon_after_a_reclaim_is_named_a_person_is_not(
    op: Operator, desks: Workstations, manager: str, warnings: int
) -> None:
    node = await desks.serve()
    await desks.ask_back(node)
    await desks.ejected()
    enabled = {"spec": {"schedule": {"enabled": True}}}
    await op.change(SCHEDULED_MACHINES, "worker", enabled, field_manager=manager)
    await op.ready("worker")
    emitted = [event for event in await op.event_objects("worker") if event["reason"] == "ReclaimReverted"]
    assert len(emitted) == warnings
    assert all(event["type"] == "Warning" and manager in event["note"] for event in emitted)


# The agent's equipment


async def test_label_and_configmap_follow_the_list(op: Operator, desks: Workstations) -> None:
    node = await desks.serve(killIfCommands=["idea", "gnome-session"])
    assert await desks.commands(node) == ["idea", "gnome-session"]

    await op.edit_spec("worker", killIfCommands=["code"])
    name, place = config_name(node), names.RECLAIM_NAMESPACE
    await watching.until(
        desks.client, CONFIG_MAPS, name, lambda raw: json.loads(raw["data"]["killIfCommands"]) == ["code"],
        namespace=place,
    )  # fmt: skip

    await op.edit_spec("worker", killIfCommands=None)
    await watching.until(desks.client, NODES, node, lambda raw: not is_labelled(raw))
    await desks.without_config(node)
    await op.until("worker", lambda status: not condition(status, "ReclaimAgentReady"))


async def test_a_label_that_a_user_removes_is_restored(op: Operator, desks: Workstations) -> None:
    node = await desks.serve()
    await op.at_rest()
    await desks.client.patch(NODES, node, {"metadata": {"labels": {names.LABEL_RECLAIM_AGENT: None}}})
    await watching.until(desks.client, NODES, node, is_labelled)


@pytest.mark.parametrize("data", [{"killIfCommands": "[]"}, None], ids=["changed", "emptied"])
async def test_a_configmap_that_another_client_changed_is_restored(
    op: Operator, desks: Workstations, data: dict[str, str] | None
) -> None:
    node = await desks.serve()
    await op.at_rest()
    name, place = config_name(node), names.RECLAIM_NAMESPACE
    spoilt = await desks.client.patch(CONFIG_MAPS, name, {"data": data}, namespace=place)
    version = spoilt["metadata"]["resourceVersion"]
    await watching.until(
        desks.client, CONFIG_MAPS, name, lambda raw: raw["metadata"]["resourceVersion"] != version, namespace=place
    )
    assert await desks.commands(node) == ["idea"]


async def test_the_configmap_goes_with_the_machine(op: Operator, desks: Workstations) -> None:
    node = await desks.serve()
    op.clock.move_to(SIX)
    await op.phase("worker", "Inactive")
    await desks.without_config(node)


async def start_agent_pod(desks: Workstations, node: str) -> None:
    """What the DaemonSet's controller and a scheduler would do; there is no scheduler here."""
    template = document("DaemonSet")["spec"]["template"]
    metadata = {"name": f"agent-{secrets.token_hex(4)}", "labels": template["metadata"]["labels"]}
    body = {"metadata": metadata, "spec": {**template["spec"], "nodeName": node}}
    await desks.client.create(PODS, {**PODS.envelope(), **body}, namespace=names.RECLAIM_NAMESPACE)


async def test_the_condition_says_whether_the_agent_is_there(op: Operator, desks: Workstations) -> None:
    node = await desks.serve()
    status = await op.until("worker", lambda status: says(status, "ReclaimAgentReady", "False", "AgentNotReady"))
    assert says(status, "Ready", "True")

    await start_agent_pod(desks, node)
    await op.until("worker", lambda status: says(status, "ReclaimAgentReady", "True"))


async def test_a_workload_cluster_without_the_agent_is_reported(
    op: Operator, desks: Workstations, plane: ControlPlane, assets: Assets
) -> None:
    await desks.client.delete(DAEMON_SETS, names.RECLAIM_DAEMON_SET, namespace=names.RECLAIM_NAMESPACE)
    await op.apply(machine(killIfCommands=["idea"]))
    await op.until("worker", lambda status: says(status, "ReclaimAgentReady", "False", "AgentDaemonSetMissing"))
    assert (await op.events("worker"))["AgentDaemonSetMissing"] == 1
    node = (await op.ready("worker"))["nodeRef"]["name"]
    install(plane.workload, assets.kubectl)
    await desks.client.patch(NODES, node, {"metadata": {"labels": {"look": "again"}}})
    await op.until("worker", lambda status: says(status, "ReclaimAgentReady", "False", "AgentNotReady"))

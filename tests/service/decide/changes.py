"""Everything that may change around a ScheduledMachine between two passes, by name; each safe in any situation."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

from crds import names
from service.decide import plan as actions
from service.decide.world import Contract, Role
from tests.service.decide import builders
from tests.service.decide.simulation import Simulation, merge

Change = Callable[[Simulation], object]

PODS = (
    builders.pod("web"),
    builders.pod("guarded"),
    builders.pod("log", controller_kind="DaemonSet"),
    builders.pod("static", mirror=True),
    builders.pod("done", finished=True),
)


def nothing(_: Simulation) -> None:
    """Another pass, no more."""


def passes(seconds: int, sim: Simulation) -> None:
    sim.after(timedelta(seconds=seconds))


def boundary(sim: Simulation) -> None:
    sim.now = sim.intent.effective.next_change(sim.now) or sim.now + timedelta(hours=1)


def edit(changes: dict[str, Any], sim: Simulation) -> None:
    sim.edit(**changes)


def setting(name: str, value: Any, sim: Simulation) -> None:
    setattr(sim, name, value)


def delete(sim: Simulation) -> None:
    sim.deleting_since = sim.deleting_since or sim.now


def host_joins(sim: Simulation) -> None:
    machine = sim.world().our_machine
    if machine is not None and not machine.deleting and machine.provider_id is None:
        sim.provision()
        sim.pods, sim.guarded = list(PODS), {"guarded"}


def budget_allows(sim: Simulation) -> None:
    sim.guarded = set()


def ask_deletion(role: Role, sim: Simulation) -> None:
    if role in sim.objects:
        sim.ask_deletion_of(role)


def vanishes(role: Role, sim: Simulation) -> None:
    sim.objects.pop(role, None)


def foreign_comes(role: Role, sim: Simulation) -> None:
    if role not in sim.objects:
        sim.put_foreign(role)


def foreign_goes(sim: Simulation) -> None:
    for child in sim.world().foreign:
        del sim.objects[child.role]


def meddle(sim: Simulation) -> None:
    for raw in sim.objects.values():
        merge(raw, {"metadata": {"labels": {names.LABEL_MANAGED_BY: "me"}}})


def health_check(result: str, sim: Simulation) -> None:
    """A MachineHealthCheck marks where there is no mark, and never takes one back: that is the owner's business."""
    found = {**_conditions(sim), "HealthCheckSucceeded": result}
    if result == "False":
        found.setdefault("OwnerRemediated", "False")
    if Role.MACHINE in sim.objects:
        sim.objects[Role.MACHINE].setdefault("status", {})["conditions"] = [
            {"type": kind, "status": status} for kind, status in found.items()
        ]


def _conditions(sim: Simulation) -> dict[str, str]:
    status = sim.objects.get(Role.MACHINE, {}).get("status") or {}
    return {one["type"]: one["status"] for one in status.get("conditions", [])}


def machine_fails(sim: Simulation) -> None:
    if Role.MACHINE in sim.objects:
        failed = {"failureReason": "CreateError", "failureMessage": "no quota"}
        merge(sim.objects[Role.MACHINE], {"status": {**failed, "deprecated": {"v1beta1": failed}}})


def contradicts(sim: Simulation) -> None:
    if sim.world().our_machine is not None:
        merge(sim.objects[Role.MACHINE], {"spec": {"providerID": "remote://192.0.2.99"}})


def node(changes: dict[str, Any], sim: Simulation) -> None:
    if sim.node is not None:
        sim.change_node(**changes)


def asks_back(sim: Simulation) -> None:
    if sim.node is not None:
        sim.ask_back()


def enabled_by(manager: str, sim: Simulation) -> None:
    sim.enabled_by = manager
    sim.edit(schedule={"enabled": True})


def tainted(*values: str) -> dict[str, Any]:
    return {"nodeTaints": [{"key": "workload", "value": value, "effect": "NoSchedule"} for value in values]}


COMMON: dict[str, Change] = {
    "nothing": nothing,
    "a second": partial(passes, 1),
    "half a minute": partial(passes, 30),
    "a minute": partial(passes, 61),
    "the grace": partial(passes, 301),
    "the boundary": boundary,
    "the host joins": host_joins,
    "deletions finish": Simulation.finish_deletion,
    "pods go": Simulation.let_pods_go,
    "the budget allows": budget_allows,
}
RARE: dict[str, Change] = {
    "a quarter of an hour": partial(passes, 960),
    "a small step back": partial(passes, -200),
    "a large step back": partial(passes, -7200),
    "disable": partial(edit, {"schedule": {"enabled": False}}),
    "enable": partial(edit, {"schedule": {"enabled": True}}),
    "kill": partial(edit, {"killSwitch": True}),
    "revive": partial(edit, {"killSwitch": False}),
    "always": partial(edit, {"schedule": {"hoursOfDay": ["0-23"]}}),
    "office hours": partial(edit, {"schedule": {"hoursOfDay": ["9-17"]}}),
    "early": partial(edit, {"schedule": {"hoursOfDay": ["3"]}}),
    "unreadable": partial(edit, {"schedule": {"hoursOfDay": ["late"]}}),
    "broken": partial(edit, {"priority": "high"}),
    "mended": partial(edit, {"priority": 50}),
    "shorter grace": partial(edit, {"gracefulShutdownTimeout": "2m"}),
    "shorter drain": partial(edit, {"nodeDrainTimeout": "1m"}),
    "other provider spec": partial(edit, {"bootstrapSpec": {**builders.SPEC["bootstrapSpec"], "spec": {}}}),
    "other bootstrap kind": partial(
        edit, {"bootstrapSpec": {**builders.SPEC["bootstrapSpec"], "kind": "KubeadmConfig"}}
    ),
    "other host": partial(
        edit, {"infrastructureSpec": {**builders.SPEC["infrastructureSpec"], "spec": {"address": "192.0.2.8"}}}
    ),
    "taint batch": partial(edit, tainted("batch")),
    "taint ml": partial(edit, tainted("ml")),
    "no taints": partial(edit, tainted()),
    "template": partial(edit, {"machineTemplate": {"labels": {"rack": "4"}, "annotations": {"note": "x"}}}),
    "no template": partial(edit, {"machineTemplate": None}),
    "pause": partial(setting, "paused", True),
    "resume": partial(setting, "paused", False),
    "delete": delete,
    "Machine deleted by hand": partial(ask_deletion, Role.MACHINE),
    "infrastructure deleted by hand": partial(ask_deletion, Role.INFRASTRUCTURE),
    "bootstrap vanishes": partial(vanishes, Role.BOOTSTRAP),
    "infrastructure vanishes": partial(vanishes, Role.INFRASTRUCTURE),
    "Machine vanishes": partial(vanishes, Role.MACHINE),
    "foreign bootstrap": partial(foreign_comes, Role.BOOTSTRAP),
    "foreign Machine": partial(foreign_comes, Role.MACHINE),
    "foreign objects go": foreign_goes,
    "a user edits the Machine": meddle,
    "health check": partial(health_check, "False"),
    "health check succeeds": partial(health_check, "True"),
    "Machine fails": machine_fails,
    "other providerID": contradicts,
    "Cluster gone": partial(setting, "cluster", None),
    "Cluster deleting": partial(setting, "cluster", builders.cluster(deleting=True)),
    "Cluster paused": partial(setting, "cluster", builders.cluster(paused=True)),
    "Cluster back": partial(setting, "cluster", builders.cluster()),
    "CAPI is not served": partial(setting, "contract", None),
    "CAPI is served": partial(setting, "contract", Contract.V1BETA2),
    "unreachable": partial(setting, "reachable", False),
    "reachable": partial(setting, "reachable", True),
    "pods cannot be listed": partial(setting, "pods_listed", False),
    "pods can be listed": partial(setting, "pods_listed", True),
    "Node not ready": partial(node, {"ready": False}),
    "Node ready": partial(node, {"ready": True}),
    "Node registers again": partial(node, {"uid": "again", "taints": (), "annotations": {}, "unschedulable": False}),
    "admin taints": partial(node, {"taints": (builders.taint(value="admin"),)}),
    "admin wipes taints": partial(node, {"taints": ()}),
    "the owner is back": asks_back,
    "commands": partial(edit, {"killIfCommands": ["idea"]}),
    "other commands": partial(edit, {"killIfCommands": ["idea", "code"]}),
    "no commands": partial(edit, {"killIfCommands": None}),
    "Nodes outlive Machines": partial(setting, "node_stays", True),
    "GitOps enables": partial(enabled_by, "argocd-controller"),
    "a user removes the label": partial(node, {"labels": {}}),
    "clearing fails": partial(setting, "fails", actions.ClearReclaimRequest),
    "disabling fails": partial(setting, "fails", actions.DisableSchedule),
    "recording a reclaim fails": partial(setting, "fails", actions.RecordReclaim),
    "equipping fails": partial(setting, "fails", actions.BestEffort),
    "creations fail": partial(setting, "fails", actions.Create),
    "patches fail": partial(setting, "fails", actions.Patch),
    "deletions fail": partial(setting, "fails", actions.Delete),
    "status writes fail": partial(setting, "fails", actions.RecordShutdown),
    "taints fail": partial(setting, "fails", actions.ApplyTaints),
    "nothing fails": partial(setting, "fails", None),
}
CHANGES = {**COMMON, **RARE}

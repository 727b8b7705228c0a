"""What must hold after every case; each breach names the objects that it concerns."""

from collections.abc import Iterator
from typing import Any

from crds import names
from local.provider.kinds import BOOTSTRAPS, HOSTS, MACHINES
from service.kube.resource import CONFIG_MAPS, NODES, PODS
from tests.chaos.calendars import CALENDAR
from tests.chaos.requests import Target, Write
from tests.chaos.scenarios import NEWER, TONIGHT, Scenario
from tests.chaos.stage import CHILDREN, NAME, NEIGHBOUR, Stage
from tests.e2e.manifests import says
from tests.e2e.reclaims import config_name

Raw = dict[str, Any]
Verdict = tuple[str, ...]
Conditions = dict[str, tuple[str, str]]
Conclusion = tuple[str, Conditions]
NOT_COMPARED = {"shard"}
"""Only operators with a Lease report it."""
OVERRIDES = {TONIGHT, NEWER}
OWN = {f"{owner}-{end}" for owner in (NAME, NEIGHBOUR) for end in CHILDREN}


async def breaches(stage: Stage, scenario: Scenario, neighbours: dict[str, str], since: int) -> list[str]:
    """All that is wrong; `since` is how many writes there were before the scenario began."""
    return [
        *await _machines(stage, scenario),
        *await _orphans(stage, scenario),
        *await _foreign(stage),
        *await _neighbour(stage, neighbours),
        *_evictions(stage, scenario, since),
        *_strays(stage, since),
    ]


def uids(children: dict[str, Raw]) -> dict[str, str]:
    return {end: raw["metadata"]["uid"] for end, raw in children.items()}


def brief(raw: Raw | None) -> Raw | None:
    """An object without its managedFields."""
    if raw is None:
        return None
    return {**raw, "metadata": {key: value for key, value in raw["metadata"].items() if key != "managedFields"}}


def conclusion(raw: Raw | None) -> Conclusion:
    """What the status says in the end, without names and times, and which fields it has.

    A field too many would be a fact that is not true any more, such as a shutdown that never ends.
    """
    status = (raw or {}).get("status") or {}
    fields = {f"status.{name}": ("set", "") for name in status if name not in NOT_COMPARED}
    return status.get("phase", "gone"), fields | {
        one["type"]: (one["status"], one.get("reason", "")) for one in status.get("conditions") or ()
    }


async def _machines(stage: Stage, scenario: Scenario) -> list[str]:
    """Exactly one Machine or none, and never a second one on the way."""
    children = await stage.children()
    wanted = set(CHILDREN) if scenario.runs else set()
    found = []
    if set(children) != wanted:
        found.append(f"one Machine or none: there should be {sorted(wanted)}, there are {sorted(children)}")
    deleting = [end for end, raw in children.items() if "deletionTimestamp" in raw["metadata"]]
    if deleting:
        found.append(f"one Machine or none: {deleting} of {NAME} are being deleted")
    made = stage.actor.machines.get(stage.namespace, set())
    if len(made) != 2:  # its own and the neighbour's
        found.append(f"one Machine or none: {len(made) - 1} Machines were made for {NAME}, not one: {sorted(made)}")
    return found


async def _orphans(stage: Stage, scenario: Scenario) -> list[str]:
    found = []
    for kind in (MACHINES, BOOTSTRAPS, HOSTS):
        for raw in await stage.client.list(kind, namespace=stage.namespace):
            name = raw["metadata"]["name"]
            if name not in OWN and (kind, name) not in stage.foreign:
                found.append(f"no orphan: {kind.kind} {name} has no owner")
    node, machine = await stage.find(NODES, stage.node), await stage.machine()
    if (node is not None) != scenario.runs:
        found.append(f"no orphan: Node {stage.node} {'is left' if node else 'is missing'}")
    if node is not None and (node["spec"].get("unschedulable") or _ours(node) & CORDON):
        found.append(f"no orphan: Node {stage.node} is still cordoned: {node['metadata']} {node['spec']}")
    listed = await stage.client.list(
        CONFIG_MAPS, namespace=names.RECLAIM_NAMESPACE, fields=f"metadata.name={config_name(stage.node)}"
    )
    if bool(listed) != scenario.has_agent:
        found.append(f"no orphan: ConfigMap {config_name(stage.node)} {'is left' if listed else 'is missing'}")
    if (machine is not None) != scenario.exists:
        found.append(f"no orphan: ScheduledMachine {NAME} {'is left' if machine else 'is missing'}")
    if scenario.runs and machine and names.FINALIZER not in (machine["metadata"].get("finalizers") or ()):
        found.append(f"no orphan: ScheduledMachine {NAME} has a Machine and no finalizer")
    return found


CORDON = {names.ANNOTATION_CORDONED}


def _ours(raw: Raw) -> set[str]:
    return {key for key in raw["metadata"].get("annotations") or {} if key.startswith(names.GROUP)}


async def _foreign(stage: Stage) -> list[str]:
    found = []
    for (kind, name), before in stage.foreign.items():
        now = await stage.find(kind, name)
        if now is None or now["metadata"]["uid"] != before["metadata"]["uid"]:
            found.append(f"no foreign object touched: {kind.kind} {name} was deleted")
        elif _comparable(kind.kind, now) != _comparable(kind.kind, before):
            found.append(f"no foreign object touched: {kind.kind} {name} was {brief(before)}, is {brief(now)}")
    return found


def _comparable(kind: str, raw: Raw) -> Any:
    """The fields that no other controller changes; the node controller marks a Node that does not report."""
    meta = raw["metadata"]
    if kind not in ("Node", "Pod"):
        return meta["resourceVersion"]
    return _ours(raw), meta.get("labels"), meta.get("deletionTimestamp"), raw["spec"].get("unschedulable")


async def _neighbour(stage: Stage, before: dict[str, str]) -> list[str]:
    """A machine in service, in its window, that no event of the scenario concerns."""
    found = []
    now, raw = uids(await stage.children(NEIGHBOUR)), await stage.machine(NEIGHBOUR)
    if now != before:
        found.append(f"no healthy machine touched: the objects of {NEIGHBOUR} were {before}, are {now}")
    if raw is None or not says(raw.get("status") or {}, "Ready", "True"):
        found.append(f"no healthy machine touched: {NEIGHBOUR} is not in service any more: {brief(raw)}")
    node, tenant = await stage.find(NODES, stage.node_of(NEIGHBOUR)), await stage.find(PODS, "at-home")
    if node is None or node["spec"].get("unschedulable"):
        found.append(
            f"no eviction of a healthy node: Node {stage.node_of(NEIGHBOUR)} is cordoned or gone: {brief(node)}"
        )
    if tenant is None or "deletionTimestamp" in tenant["metadata"]:
        found.append(f"no eviction of a healthy node: the pod of {NEIGHBOUR} was taken away: {brief(tenant)}")
    return found


def _evictions(stage: Stage, scenario: Scenario, since: int) -> Iterator[str]:
    for write in stage.proxy.writes[since:]:
        if write.target.resource == "pods" and not scenario.may_evict:
            yield f"no eviction of a healthy node: {write}"


def _strays(stage: Stage, since: int) -> Iterator[str]:
    """Every write must be to something of the machine's own."""
    for write in stage.proxy.writes[since:]:
        if not _expected(stage, write):
            yield f"no foreign object touched: {write}"


def _expected(stage: Stage, write: Write) -> bool:
    target = write.target
    match target.resource:
        case "nodes":
            return target.name == stage.node
        case "configmaps":
            return (target.namespace, target.name) == (names.RECLAIM_NAMESPACE, config_name(stage.node))
        case "pods":
            return target.namespace == stage.namespace and target.name in ("one", "two", "held")
        case "events":
            return target.namespace == stage.namespace
        case "schedulecalendars":
            return target == Target(target.resource, stage.namespace, CALENDAR, "status")
        case "scheduleoverrides":
            return target.namespace == stage.namespace and target.name in OVERRIDES
        case "scheduledmachines":
            # The operator may write a neighbour's status, such as when its cluster was unreachable for a moment.
            return target.namespace == stage.namespace and (target.name == NAME or target.subresource == "status")
        case _:
            return target.namespace == stage.namespace and target.name in {f"{NAME}-{end}" for end in CHILDREN}

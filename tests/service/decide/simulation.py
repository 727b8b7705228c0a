"""A small model of everything around `decide`: an API server, Cluster API, a workload cluster, a reconciler.

It performs plans as `service.act` would, and lets tests make things happen in between.
"""

import json
from copy import deepcopy
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from crds import names
from crds.overrides import Override
from crds.scheduledmachine import NO_STATUS
from crds.status import Remediation, ScheduledMachineStatus
from service.decide import contracts, manifests, reclaim_agent
from service.decide import plan as actions
from service.decide.closing import with_closes_at
from service.decide.drain import must_leave
from service.decide.events import new_events
from service.decide.hosts import DEFAULT_IDENTITIES, host_of
from service.decide.intent import Intent
from service.decide.lifecycle import decide
from service.decide.outcome import Blocker, Failure, Outcome
from service.decide.plan import Action, Event, Plan
from service.decide.reasons import Reason
from service.decide.reclaim import needs_author
from service.decide.report import report
from service.decide.situation import Situation
from service.decide.world import (
    Child,
    Cluster,
    Contract,
    Machine,
    Node,
    Owner,
    Pod,
    Reachability,
    ReclaimAgent,
    Role,
    World,
)
from tests.service.decide import builders
from tests.service.decide.builders import CONNECTED, DISCONNECTED, MORNING, PROVIDER_ID, UNLISTED

Raw = dict[str, Any]


class Crash(Exception):
    """The process died."""


@dataclass
class Pass:
    """One turn of the reconciler."""

    world: World
    plan: Plan
    outcome: Outcome
    status: ScheduledMachineStatus
    events: list[Event]

    @property
    def done(self) -> tuple[Action, ...]:
        return self.outcome.done


@dataclass
class Simulation:
    """One ScheduledMachine and its world; fields may be set by hand between passes."""

    spec: Raw = field(default_factory=builders.raw_spec)
    now: datetime = MORNING
    status: ScheduledMachineStatus = field(default_factory=ScheduledMachineStatus)
    contract: Contract | None = Contract.V1BETA2
    cluster: Cluster | None = field(default_factory=builders.cluster)
    objects: dict[Role, Raw] = field(default_factory=dict)
    node: Node | None = None
    pods: list[Pod] = field(default_factory=list)
    guarded: set[str] = field(default_factory=set)
    """Pods that a budget protects."""
    agent_config: tuple[str, ...] | None = None
    enabled_by: str = "kubectl-edit"
    node_stays: bool = False
    """Whether the Node outlives its Machine."""
    reachable: bool = True
    pods_listed: bool = True
    """Whether the workload cluster says which pods a Node has."""
    finalized: bool = False
    deleting_since: datetime | None = None
    paused: bool = False
    overrides: tuple[Override, ...] = ()
    generation: int = 1
    gone: bool = False
    fails: type[Action] | None = None
    """Actions of this class fail."""
    events: list[Event] = field(default_factory=list)
    log: list[tuple[World, Action]] = field(default_factory=list)
    uids: int = 0

    # The reconciler

    def step(self, *, crash_after: int | None = None) -> Pass:
        """Look, decide, act, report; a crash after so many actions leaves the rest undone."""
        world = self.world()
        plan = with_closes_at(decide(self.intent, world, self.now), Situation.at(self.intent, world, self.now))
        outcome = self._perform(plan, world, crash_after)
        after = report(Situation.at(self.intent, replace(self.world(), status=world.status), self.now), plan, outcome)
        emitted = new_events(world.status, after, plan, outcome)
        self.status = stored(after)
        self.events += emitted
        return Pass(world, plan, outcome, self.status, emitted)

    def settle(self, limit: int = 12) -> Pass:
        """Passes at one instant until nothing changes any more."""
        for _ in range(limit):
            before = self.status
            last = self.step()
            if self.gone or (last.status == before and not _does_something(last)):
                return last
        raise AssertionError(f"never comes to rest: {last.plan}")

    def plan(self) -> Plan:
        return decide(self.intent, self.world(), self.now)

    def event_reasons(self) -> list[str]:
        """The reasons of all events so far."""
        return [event.reason for event in self.events]

    def _perform(self, plan: Plan, world: World, crash_after: int | None) -> Outcome:
        done: list[Action] = []
        blockers: list[Blocker] = []
        left: list[Action] = []
        failure: Failure | None = None
        for action in plan.actions:
            if crash_after is not None and len(done) >= crash_after:
                raise Crash
            fails = self.fails is not None and isinstance(action, self.fails)
            if fails and isinstance(action, actions.BestEffort):
                left.append(action)
                continue
            if fails:
                failure = Failure(action, Reason.FORBIDDEN, "the API server says no")
                if isinstance(action, actions.ApplyTaints):
                    continue
                break
            self.log.append((replace(world, status=self.status, me=self.me), action))
            blockers += self._do(action)
            done.append(action)
        if crash_after is not None and failure is None:
            raise Crash
        return Outcome(tuple(done), failure, tuple(blockers), postponed=tuple(left))

    # What it sees

    @property
    def intent(self) -> Intent:
        learnt = ScheduledMachineStatus(leads=self.status.leads, history=self.status.history)
        known = learnt if "Auto" in self.spec["schedule"].values() else NO_STATUS
        return replace(_intent(json.dumps(self.spec), json.dumps(known.to_json())), overrides=self.overrides)

    @property
    def me(self) -> Any:
        return builders.identity(
            generation=self.generation,
            deleting_since=self.deleting_since,
            finalized=self.finalized,
            paused=self.paused,
        )

    def world(self) -> World:
        seen = World(
            me=self.me,
            status=self.status,
            contract=self.contract,
            cluster=self.cluster if self.contract else None,
            bootstrap=self._child(Role.BOOTSTRAP),
            infrastructure=self._child(Role.INFRASTRUCTURE),
            machine=self._machine(),
        )
        seen = replace(seen, host=host_of(DEFAULT_IDENTITIES, self.intent.spec, seen))
        if needs_author(self.intent, self.status, self.now):
            seen = replace(seen, enabled_by=self.enabled_by)
        ours = seen.our_machine
        if ours is None or ours.node_name is None:
            return replace(seen, workload=self._workload(), node=self._asking_node()) if self.status.reclaim else seen
        node = self.node if self.reachable else None
        draining = self.status.shutdown_started_at is not None and not ours.deleting and node is not None
        seen = replace(seen, workload=self._workload(), node=node)
        if draining:
            seen = replace(seen, pods=tuple(self.pods)) if self.pods_listed else replace(seen, workload=UNLISTED)
        agent = ReclaimAgent(commands=self.agent_config) if reclaim_agent.wanted_commands(self.intent, seen) else None
        return replace(seen, reclaim_agent=agent)

    def _workload(self) -> Reachability:
        return CONNECTED if self.reachable else DISCONNECTED

    def _asking_node(self) -> Node | None:
        asked = self.status.reclaim
        there = self.reachable and asked is not None and self.node is not None and self.node.name == asked.node
        return self.node if there else None

    def _child(self, role: Role) -> Child | None:
        raw = self.objects.get(role)
        if raw is None:
            return None
        metadata = raw["metadata"]
        owners = tuple(Owner(one["uid"], one.get("controller", False), one) for one in metadata["ownerReferences"])
        return Child(
            role=role,
            api_version=raw["apiVersion"],
            kind=raw["kind"],
            namespace=metadata["namespace"],
            name=metadata["name"],
            uid=metadata["uid"],
            ours=any(owner.uid == builders.UID for owner in owners) or metadata["uid"] in self._recorded(),
            deleting="deletionTimestamp" in metadata,
            labels=metadata.get("labels", {}),
            annotations=metadata.get("annotations", {}),
            owners=owners,
            spec=raw.get("spec", {}),
        )

    def _recorded(self) -> set[str | None]:
        refs = (self.status.machine_ref, self.status.bootstrap_ref, self.status.infrastructure_ref)
        return {ref.uid for ref in refs if ref}

    def _machine(self) -> Machine | None:
        seen = self._child(Role.MACHINE)
        if seen is None or self.contract is None:
            return None
        return contracts.read_machine(self.contract, seen, self.objects[Role.MACHINE])

    # What it does

    def _do(self, action: Action) -> list[Blocker]:
        match action:
            case actions.AddFinalizer():
                self.finalized = True
            case actions.ReleaseFinalizer():
                self.finalized, self.gone = False, self.deleting_since is not None
            case actions.RecordShutdown() | actions.RecordRemediation() | actions.RecordReclaim():
                self.status = stored(self.status.model_copy(update=recorded(action)))
            case actions.Create(role=role, manifest=manifest):
                self._create(role, manifest)
            case actions.Patch(role=role, uid=uid) | actions.Delete(role=role, uid=uid):
                assert self.objects[role]["metadata"]["uid"] == uid
                deleted = {"metadata": {"deletionTimestamp": "now"}}
                merge(self.objects[role], action.body if isinstance(action, actions.Patch) else deleted)
            case actions.Cordon() | actions.Uncordon() | actions.ApplyTaints() | actions.AnnotateClose():
                self._write_node(action)
            case actions.DisableSchedule() | actions.ForceDrain():
                self._eject(action)
            case actions.ClearReclaimRequest() | actions.InstallAgent() | actions.RemoveAgent():
                self._write_agent(action)
            case actions.Evict(pods=pods):
                return self._evict(pods)
        return []

    def _create(self, role: Role, manifest: Any) -> None:
        assert role not in self.objects, f"a second {role} object"
        if role is Role.MACHINE:
            refs = manifest["spec"]["bootstrap"]["configRef"], manifest["spec"]["infrastructureRef"]
            there = self.objects[Role.BOOTSTRAP], self.objects[Role.INFRASTRUCTURE]
            assert [ref["kind"] for ref in refs] == [raw["kind"] for raw in there], "it points at what is not there"
            assert manifests.outdated(builders.spec_of(self.spec), self.world()) == (), "it gets what was edited since"
        self.uids += 1
        raw = deepcopy(dict(manifest))
        raw["metadata"]["uid"] = f"uid-{self.uids}"
        self.objects[role] = raw

    def _write_node(self, action: Action) -> None:
        node = self.node
        assert node is not None
        notes = dict(node.annotations)
        match action:
            case actions.Cordon(closed=closed):
                notes[names.ANNOTATION_CORDONED] = builders.UID
                if closed:
                    del notes[names.ANNOTATION_CLOSES_AT]
                self.change_node(unschedulable=True, annotations=notes)
            case actions.Uncordon():
                del notes[names.ANNOTATION_CORDONED]
                self.change_node(unschedulable=False, annotations=notes)
            case actions.AnnotateClose(closes_at=closes_at):
                notes.pop(names.ANNOTATION_CLOSES_AT, None)
                if closes_at is not None:
                    notes[names.ANNOTATION_CLOSES_AT] = closes_at
                self.change_node(annotations=notes)
            case actions.ApplyTaints(resource_version=seen, taints=whole, note=note):
                assert seen == node.resource_version
                notes[names.ANNOTATION_APPLIED_TAINTS] = note
                if action.closes_at is not None:
                    notes[names.ANNOTATION_CLOSES_AT] = action.closes_at
                self.change_node(taints=whole, annotations=notes)

    def _eject(self, action: actions.DisableSchedule | actions.ForceDrain) -> None:
        match action:
            case actions.DisableSchedule():
                self.edit(schedule={"enabled": False})
            case actions.ForceDrain(provider_id=host):
                assert self.node is None or self.node.provider_id == host
                self.pods = [pod for pod in self.pods if not must_leave(pod)]

    def _write_agent(self, action: actions.BestEffort) -> None:
        node = self.node
        assert node is not None
        assert node.uid == action.uid
        labels = {key: value for key, value in node.labels.items() if key != names.LABEL_RECLAIM_AGENT}
        match action:
            case actions.ClearReclaimRequest():
                assert self.status.reclaim is None or not self.intent.enabled, "disabled before the request is cleared"
                kept = {key: text for key, text in node.annotations.items() if key not in names.RECLAIM_ANNOTATIONS}
                self.change_node(annotations=kept)
            case actions.InstallAgent(commands=commands):
                self.change_node(labels={**labels, names.LABEL_RECLAIM_AGENT: names.RECLAIM_AGENT_ENABLED})
                self.agent_config = commands
            case actions.RemoveAgent():
                self.change_node(labels=labels)
                self.agent_config = None

    def _evict(self, pods: tuple[Pod, ...]) -> list[Blocker]:
        asked = {pod.uid for pod in pods if pod.name not in self.guarded}
        self.pods = [replace(pod, deleting=pod.deleting or pod.uid in asked) for pod in self.pods]
        return [Blocker(pod, "the budget allows no disruption") for pod in pods if pod.name in self.guarded]

    # What others do

    def edit(self, **changes: Any) -> None:
        """Change the spec; `schedule` is merged."""
        schedule = {**self.spec["schedule"], **changes.pop("schedule", {})}
        self.spec = {**self.spec, **changes, "schedule": schedule}
        self.generation += 1

    def after(self, span: timedelta) -> None:
        self.now += span

    def change_node(self, **changes: Any) -> None:
        assert self.node is not None
        version = str(int(self.node.resource_version) + 1)
        self.node = replace(self.node, resource_version=version, **changes)

    def provision(self) -> None:
        """The host gets its identifier and joins as a Ready Node."""
        raw = self.objects[Role.MACHINE]
        merge(raw, {"spec": {"providerID": PROVIDER_ID}, "status": {"nodeRef": {"name": "node-7"}}})
        raw["status"]["conditions"] = [{"type": "InfrastructureReady", "status": "True"}]
        raw["status"]["infrastructureReady"] = True
        self.uids += 1
        self.node = builders.node(uid=f"node-uid-{self.uids}")

    def finish_deletion(self) -> None:
        """CAPI and the providers let go of everything whose deletion was asked for."""
        if Role.MACHINE in self.objects and "deletionTimestamp" in self.objects[Role.MACHINE]["metadata"]:
            self.objects.clear()
            self.pods = []
            if not self.node_stays:
                self.node, self.agent_config = None, None
            return
        leaving = [role for role, raw in self.objects.items() if "deletionTimestamp" in raw["metadata"]]
        for role in leaving:
            del self.objects[role]

    def ask_back(self, reason: str = "idea") -> None:
        """The agent on the Node asks for it."""
        assert self.node is not None
        texts = ("true", reason, "2026-03-02T10:00:00Z")
        asked = dict(zip(names.RECLAIM_ANNOTATIONS, texts, strict=True))
        self.change_node(annotations={**self.node.annotations, **asked})

    def let_pods_go(self) -> None:
        self.pods = [pod for pod in self.pods if not pod.deleting]

    def delete(self) -> None:
        self.deleting_since = self.now

    def ask_deletion_of(self, role: Role) -> None:
        """A user deletes a child; a finalizer holds it."""
        self.objects[role]["metadata"]["deletionTimestamp"] = "now"

    def put_foreign(self, role: Role) -> None:
        """Another owner has an object of that name."""
        self.uids += 1
        name = {Role.BOOTSTRAP: "desk-bootstrap", Role.INFRASTRUCTURE: "desk-infra", Role.MACHINE: "desk-machine"}[role]
        self.objects[role] = {
            "apiVersion": "cluster.x-k8s.io/v1beta2",
            "kind": "Machine",
            "metadata": {"name": name, "namespace": "team", "uid": f"foreign-{self.uids}", "ownerReferences": []},
        }


@lru_cache(maxsize=512)
def _intent(spec: str, status: str) -> Intent:
    return builders.legible(json.loads(spec), json.loads(status))


def stored(given: ScheduledMachineStatus) -> ScheduledMachineStatus:
    """A status as it comes back from the API server."""
    back = ScheduledMachineStatus.read(given.to_json())
    assert back == given, "what is written is not what is read"
    return back


def recorded(action: actions.RecordShutdown | actions.RecordRemediation | actions.RecordReclaim) -> dict[str, Any]:
    """The fact that an action stores in the status."""
    match action:
        case actions.RecordShutdown(started_at=started):
            return {"shutdown_started_at": started}
        case actions.RecordRemediation(count=count, at=at, machine_uid=uid):
            return {"remediation": Remediation(count=count, at=at, machine_uid=uid)}
        case actions.RecordReclaim(reclaim=asked):
            return {"reclaim": asked}


def merge(target: Raw, patch: Any) -> None:
    """A JSON merge patch."""
    for key, value in patch.items():
        if value is None:
            target.pop(key, None)
        elif isinstance(value, dict):
            merge(target.setdefault(key, {}), value)
        else:
            target[key] = value


def _does_something(last: Pass) -> bool:
    """Asking again for evictions that a budget refuses is no progress."""
    refused = {blocker.pod for blocker in last.outcome.blockers}
    return any(not (isinstance(one, actions.Evict) and set(one.pods) <= refused) for one in last.done)


def running(**fields: Any) -> Simulation:
    """A machine that runs as a Ready Node in the morning."""
    sim = Simulation(**fields)
    sim.settle()
    sim.provision()
    sim.settle()
    return sim

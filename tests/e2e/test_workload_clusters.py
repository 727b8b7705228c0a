"""Workload clusters that are missing, refused, cut off or frozen: only their own machines suffer."""

import base64
import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from crds import names
from local import clusters
from local.access import ADMIN
from local.plane import ControlPlane
from local.provider.kinds import MACHINES
from service import metrics
from service.decide import removal
from service.kube.credentials import Token
from service.kube.resource import NODES, SECRETS
from service.kube.transport import Call, Limits
from service.runtime.backoff import Backoff
from service.runtime.key import Key
from service.workload import connection
from service.workload.connection import WorkloadCluster
from tests.e2e.kubeconfigs import known_to_cluster_api, kubeconfig, store
from tests.e2e.manifests import SIX, condition, machine, says
from tests.e2e.operator import Operator
from tests.e2e.workload import WorkloadSide
from tests.integration.wires import Wire, wire
from tests.waiting import until

Raw = dict[str, Any]
SPARE = "spare"
GRACE: Raw = {"gracefulShutdownTimeout": "4m"}
"""Less than a drain may take by default, and more than a slow machine takes to get there."""
DELETED_AT = re.compile(r"deleted at 18:0[45]:")
GRACE_IS_UP = SIX + timedelta(minutes=6)
TAINT = {"key": "example.com/spot", "effect": "NoSchedule"}


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Real behaviour, with pauses that a test can wait for; a server that answers is given time to."""
    monkeypatch.setattr(connection, "RECONNECT_BACKOFF", Backoff(base=0.05, cap=0.3, jitter=0.5))
    monkeypatch.setattr(connection, "LIMITS", Limits(calls=8, call_seconds=10.0, connect_seconds=10.0))
    monkeypatch.setattr(removal, "RETRY_PAUSE", timedelta(seconds=0.5))


@pytest.fixture
async def line(plane: ControlPlane, op: Operator) -> AsyncIterator[Wire]:
    """The operator's only way to the cluster `demo`, which a test can cut."""
    async with wire(plane.workload.url) as to_demo:
        await store(op, kubeconfig(plane.workload, url=to_demo.url))
        yield to_demo


@pytest.fixture(scope="module")
def spare(plane: ControlPlane) -> Iterator[ControlPlane]:
    """A second workload cluster, whose servers may be frozen."""
    plane.add_workload(SPARE)
    yield plane
    plane.remove_workload(SPARE)


def connected(op: Operator, cluster: str = "demo") -> WorkloadCluster:
    found = op.controller.workloads.get(Key(op.namespace, cluster))
    assert found is not None, "no process holds it"
    return found


def unreachable(status: Raw, reason: str) -> bool:
    return says(status, "WorkloadClusterReachable", "False", reason)


def watches_of_nodes_broken() -> float:
    """How many the metrics count, over all reasons."""
    (family,) = metrics.WATCH_RESTARTS.collect()
    counted = (one for one in family.samples if one.name.endswith("_total"))
    return sum(one.value for one in counted if one.labels["resource"] == NODES.plural)


# The Secret


async def test_without_a_kubeconfig_a_machine_comes_all_the_same_and_leaves_within_its_timeouts(op: Operator) -> None:
    await known_to_cluster_api(op)
    await op.remove(SECRETS, "demo-kubeconfig")
    await op.apply(machine(**GRACE))
    status = await op.until("worker", lambda status: unreachable(status, "KubeconfigNotFound"))
    assert status["phase"] == "Active"
    assert says(status, "Ready", "False", "WorkloadClusterUnreachable")
    assert "demo-kubeconfig" in status["message"]
    await op.until("worker", lambda status: status.get("nodeRef"))

    op.clock.move_to(SIX)
    status = await op.phase("worker", "ShuttingDown", "WorkloadClusterUnreachable")
    assert DELETED_AT.search(status["message"])
    op.clock.move_to(GRACE_IS_UP)
    await op.phase("worker", "Inactive")
    await op.childless("worker")
    emitted = await op.events("worker")
    assert (emitted["KubeconfigNotFound"], emitted["DrainTimedOut"]) == (1, 1)


@pytest.mark.parametrize("wrong", ["type", "label", "exec"])
async def test_a_secret_that_is_not_what_it_should_be_is_refused_until_it_is(
    op: Operator, plane: ControlPlane, wrong: str
) -> None:
    await known_to_cluster_api(op)
    good = await op.read(SECRETS, "demo-kubeconfig")
    await op.remove(SECRETS, "demo-kubeconfig")
    await op.client.create(SECRETS, spoiled(good, wrong, plane), namespace=op.namespace)
    await op.apply(machine())
    status = await op.until("worker", lambda status: unreachable(status, "KubeconfigRefused"))
    assert wrong in condition(status, "WorkloadClusterReachable")["message"]

    await op.remove(SECRETS, "demo-kubeconfig")
    await op.client.create(SECRETS, spoiled(good, "nothing", plane), namespace=op.namespace)
    assert says(await op.ready("worker"), "WorkloadClusterReachable", "True")


def spoiled(secret: Raw, what: str, plane: ControlPlane) -> Raw:
    """The Secret with one thing wrong."""
    owner = {"name": secret["metadata"]["name"], "labels": dict(secret["metadata"]["labels"])}
    copy = {"metadata": owner, "type": secret["type"], "data": dict(secret["data"])}
    match what:
        case "type":
            copy["type"] = "Opaque"
        case "label":
            owner["labels"][names.LABEL_CLUSTER_NAME] = "another"
        case "exec":
            text = kubeconfig(plane.workload, user={"exec": {"command": "sh"}})
            copy["data"]["value"] = base64.b64encode(text.encode()).decode()
    return copy


async def test_a_rotated_token_is_taken_up_without_a_new_list(op: Operator, plane: ControlPlane) -> None:
    await op.apply(machine())
    await op.ready("worker")
    demo, calls = connected(op), list[Call]()
    demo._listener = replace(demo._listener, call=calls.append)
    credentials = demo.client().transport.credentials
    assert isinstance(credentials, Token)
    credentials.token = "expired meanwhile"

    await store(op, kubeconfig(plane.workload, token=plane.workload.access.tokens[ADMIN]))
    await op.edit_spec("worker", nodeTaints=[TAINT])
    status = await op.until("worker", lambda status: says(status, "NodeTainted", "True", "Applied"))
    assert says(status, "WorkloadClusterReachable", "True")
    assert ("patch", 401) in [(call.verb, call.status) for call in calls]
    # The Node is read again if another client wrote to it at that moment, such as Cluster API removing its first taint.
    assert {call.verb for call in calls} <= {"patch", "get"}


# The connection


async def test_one_watch_serves_all_machines_of_a_cluster_and_is_closed_when_none_is_left(
    op: Operator, line: Wire
) -> None:
    calls = list[Call]()
    workloads = op.controller.workloads
    workloads.subscribe(replace(workloads._listener, call=calls.append))
    workloads._linger = 0.05
    workers = [f"worker-{n}" for n in range(4)]
    for name in workers:
        await op.apply(machine(name))
    for name in workers:
        await op.ready(name)
    demo = Key(op.namespace, "demo")
    assert workloads.holders(demo) == {Key(op.namespace, name) for name in workers}
    assert [call.verb for call in calls].count("list") == 1
    assert [call.verb for call in calls].count("watch") == 1

    op.clock.move_to(SIX)
    for name in workers:
        await op.phase(name, "Inactive")
    await until(lambda: workloads.get(demo) is None)


async def test_a_cluster_that_is_away_at_first_is_taken_up_when_it_answers(op: Operator, line: Wire) -> None:
    line.refusing = True
    await op.apply(machine(nodeTaints=[TAINT]))
    status = await op.until("worker", lambda status: unreachable(status, "NoAnswer"))
    assert says(status, "NodeTainted", "Unknown", "NoNodeYet")
    await op.children("worker")

    line.refusing = False
    status = await op.ready("worker")
    assert says(status, "WorkloadClusterReachable", "True")
    await op.until("worker", lambda status: says(status, "NodeTainted", "True", "Applied"))


async def test_a_cluster_cut_off_during_the_drain_for_ever_holds_up_only_its_own_machine_and_not_for_ever(
    op: Operator, line: Wire, workload: WorkloadSide
) -> None:
    await clusters.add(op.client, op.namespace, "steady")
    await op.apply(machine("cut", **GRACE))
    await op.apply(machine("fine", clusterName="steady"))
    node = (await op.ready("cut"))["nodeRef"]["name"]
    await op.ready("fine")
    await workload.occupy(node)
    op.clock.move_to(SIX)
    await op.phase("cut", "ShuttingDown", "Draining")

    broken = watches_of_nodes_broken()
    line.refusing = True
    line.cut()
    status = await op.phase("cut", "ShuttingDown", "WorkloadClusterUnreachable")
    assert DELETED_AT.search(status["message"])
    assert watches_of_nodes_broken() > broken
    await op.phase("fine", "Inactive")
    assert "deletionTimestamp" not in (await op.read(MACHINES, "cut-machine"))["metadata"]
    op.calls.clear()

    op.clock.move_to(GRACE_IS_UP)
    await op.phase("cut", "Inactive")
    await op.childless("cut")
    assert (await op.events("cut"))["DrainTimedOut"] == 1
    # Each try to connect reads the Secret again; everything else is what a removal takes.
    others = [call for call in op.calls if (call.verb, call.resource) != ("get", "secrets")]
    assert len(others) < 40


# Frozen servers


async def test_a_node_that_is_not_ready_waits_for_its_taints(op: Operator, spare: ControlPlane) -> None:
    await clusters.add(op.client, op.namespace, SPARE, workload=SPARE)
    spare.kwoks[SPARE].pause()
    try:
        await op.apply(machine(clusterName=SPARE, nodeTaints=[TAINT]))
        status = await op.until("worker", lambda status: says(status, "NodeTainted", "False", "NodeNotReady"))
        assert says(status, "Ready", "False", "NodeNotReady")
        assert "appliedNodeTaints" not in status
    finally:
        spare.kwoks[SPARE].resume()
    await op.until("worker", lambda status: says(status, "NodeTainted", "True", "Applied"))
    op.clock.move_to(SIX)
    await op.childless("worker")


async def test_a_cluster_frozen_during_the_drain_is_drained_when_it_thaws(
    op: Operator, spare: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "LIMITS", Limits(calls=8, call_seconds=3.0, connect_seconds=3.0))
    await clusters.add(op.client, op.namespace, SPARE, workload=SPARE)
    await op.apply(machine(clusterName=SPARE, gracefulShutdownTimeout="2h"))
    await op.apply(machine("fine"))
    node = (await op.ready("worker"))["nodeRef"]["name"]
    await op.ready("fine")
    async with spare.workloads[SPARE].client() as client:
        side = WorkloadSide(client)
        await side.occupy(node)
        op.clock.move_to(SIX)
        await op.phase("worker", "ShuttingDown", "Draining")
        spare.workloads[SPARE].apiserver.pause()
        try:
            await op.until("worker", lambda status: unreachable(status, "NoAnswer"))
            await op.phase("fine", "Inactive")
        finally:
            spare.workloads[SPARE].apiserver.resume()
        await op.phase("worker", "ShuttingDown", "Draining")
        await side.vacate(node)
        await op.phase("worker", "Inactive")
        await op.childless("worker")
        assert not [raw for raw in await client.list(NODES) if raw["metadata"]["name"] == node]
    assert (await op.events("worker"))["DrainTimedOut"] == 0

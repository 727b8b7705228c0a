"""Cluster API's drain label and MachineDrainRules, on real servers: our drain and Cluster API's own agree."""

from datetime import timedelta
from typing import Any

import pytest

from crds import names
from local.provider.kinds import MACHINES
from service.decide.drainrules import DRAIN_LABEL
from service.kube.client import Client
from service.kube.resource import PODS, Resource
from tests.e2e.manifests import NINE, SIX, condition, says
from tests.e2e.operator import Operator, operating
from tests.e2e.pods import DAEMON_SETS, Tenants, is_going

Raw = dict[str, Any]
SECOND = timedelta(seconds=1)
WAIT = {DRAIN_LABEL: "wait-completed"}
SKIP = {DRAIN_LABEL: "Skip"}
HOOK = "pre-drain.delete.hook.machine.cluster.x-k8s.io/test"


def rules_of(contract: str) -> Resource:
    return Resource(names.CAPI_GROUP, contract, "machinedrainrules", "MachineDrainRule")


DRAIN_RULES = rules_of("v1beta2")


async def rule(op: Operator, name: str, drain: Raw, resource: Resource = DRAIN_RULES, **spec: Any) -> None:
    body = {**resource.envelope(), "metadata": {"name": name}, "spec": {"drain": drain, **spec}}
    await op.client.create(resource, body, namespace=op.namespace)


def labelled(**labels: str) -> list[Raw]:
    return [{"selector": {"matchLabels": labels}}]


async def a_house(op: Operator, tenants: Tenants, node: str, resource: Resource = DRAIN_RULES) -> None:
    """Pods for every kind of rule and label; `first` and `plain` terminate when a test lets them."""
    cluster = {"clusterSelector": {"matchExpressions": [{"key": "stage", "operator": "NotIn", "values": ["x"]}]}}
    ours = {"selector": {"matchLabels": {names.LABEL_OWNER: "worker"}}, **cluster}
    here = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}}}
    await rule(op, "a-storage", {"behavior": "Skip"}, resource, pods=[{**labelled(role="storage")[0], **here}])
    await rule(op, "b-first", {"behavior": "Drain", "order": -10}, resource, pods=labelled(role="first"))
    await rule(op, "c-last", {"behavior": "Drain", "order": 10}, resource, machines=[ours], pods=labelled(role="last"))
    elsewhere = {"selector": {"matchLabels": {names.LABEL_OWNER: "another"}}}
    await rule(op, "0-not-ours", {"behavior": "Skip"}, resource, machines=[elsewhere])
    await tenants.run("storage", node, labels={"role": "storage"})
    await tenants.run("kept", node, labels=SKIP)
    await tenants.run("job", node, labels=WAIT)
    await tenants.run("first", node, labels={"role": "first"}, hold=True)
    await tenants.run("plain", node, hold=True)
    await tenants.run("last", node, labels={"role": "last"})


ALL = {"storage", "kept", "job", "first", "plain", "last"}


@pytest.mark.parametrize("contract", ["v1beta1", "v1beta2"])
async def test_pods_stay_leave_in_order_or_are_waited_for_as_rules_and_labels_say(
    management: Client, namespace: str, tenants: Tenants, contract: str
) -> None:
    async with operating(management, namespace, NINE, capi_contract=contract) as op:
        node = await op.in_service()
        await a_house(op, tenants, node, rules_of(contract))

        op.clock.move_to(SIX)
        await tenants.until("first", is_going)
        status = await op.until("worker", lambda status: "terminating" in status["message"])
        assert "4 pod(s) left" in status["message"]
        assert f"waiting for completion: default/{tenants.app}-job" in status["message"]
        assert "deleted at 18:05:00 UTC anyway" in status["message"]
        assert await tenants.names() == ALL - {"first"}

        await tenants.let_go("first")
        await tenants.until("plain", is_going)
        assert await tenants.names() == ALL - {"first", "plain"}
        await tenants.let_go("plain")
        await op.until("worker", lambda status: "2 pod(s) left" in status["message"])
        assert await tenants.names() == ALL - {"first", "plain"}

        await tenants.report("job", phase="Succeeded")
        machines = Resource(names.CAPI_GROUP, contract, "machines", "Machine")
        leaving = await op.until_object(machines, "worker-machine", lambda raw: "deletionTimestamp" in raw["metadata"])
        assert await tenants.names() == {"storage", "kept", "job"}
        # Cluster API would wait for the completed pod until a user deletes it.
        assert names.ANNOTATION_EXCLUDE_DRAIN in leaving["metadata"]["annotations"]
        assert names.ANNOTATION_EXCLUDE_VOLUME_DETACH not in leaving["metadata"]["annotations"]
        await op.phase("worker", "Inactive")
        emitted = await op.events("worker")
        assert (emitted["NodeDrained"], emitted["DrainTimedOut"], emitted["DrainBlocked"]) == (1, 0, 0)


async def test_cluster_api_treats_the_same_pods_the_same_way(op: Operator, tenants: Tenants) -> None:
    """A user deletes the Machine, so that Cluster API alone drains."""
    node = await op.in_service()
    await a_house(op, tenants, node)
    await op.client.delete(MACHINES, "worker-machine", namespace=op.namespace)

    said = await op.until_object(MACHINES, "worker-machine", lambda raw: "After above Pods" in _deleting(raw))
    await tenants.until("first", is_going)
    assert await tenants.names() == ALL - {"first"}
    waits, _, later = _deleting(said).partition("After above Pods")
    assert f"{tenants.app}-first" in waits
    for name in ("plain", "last", "job"):
        assert f"{tenants.app}-{name}" in later
    for name in ("storage", "kept"):
        assert f"{tenants.app}-{name}" not in _deleting(said)
    await op.change(MACHINES, "worker-machine", {"metadata": {"annotations": {names.ANNOTATION_EXCLUDE_DRAIN: ""}}})


async def test_cluster_api_itself_waits_for_a_pod_that_has_completed(op: Operator, tenants: Tenants) -> None:
    node = await op.in_service()
    await tenants.run("job", node, labels=WAIT)
    await tenants.report("job", phase="Succeeded")
    await op.client.delete(MACHINES, "worker-machine", namespace=op.namespace)
    said = await op.until_object(MACHINES, "worker-machine", lambda raw: "waiting for completion" in _deleting(raw))
    assert f"{tenants.app}-job" in _deleting(said)
    await op.change(MACHINES, "worker-machine", {"metadata": {"annotations": {names.ANNOTATION_EXCLUDE_DRAIN: ""}}})


def _deleting(raw: Raw) -> str:
    return str(condition(raw.get("status") or {}, "Deleting").get("message", ""))


async def test_a_blocked_drain_warns_once_after_a_third_of_its_time_and_a_changed_rule_lets_it_go_on(
    op: Operator, tenants: Tenants
) -> None:
    node = await op.in_service(nodeDrainTimeout="6m", gracefulShutdownTimeout="10m")
    await rule(op, "jobs", {"behavior": "WaitCompleted"}, pods=labelled(app=tenants.app))
    await tenants.run("job", node)

    op.clock.move_to(SIX)
    status = await op.until("worker", lambda status: says(status, "Drained", "False", "Draining"))
    assert "The Machine is deleted at 18:06:00 UTC anyway." in status["message"]
    op.clock.move_to(SIX + 125 * SECOND)
    status = await op.until("worker", lambda status: says(status, "Drained", "False", "DrainBlocked"))
    assert f"default/{tenants.app}-job" in condition(status, "Drained")["message"]
    op.clock.move_to(SIX + 200 * SECOND)
    await tenants.run("other", node, labels=SKIP)
    (warning,) = [event for event in await op.event_objects("worker") if event["reason"] == "DrainBlocked"]
    assert warning["type"] == "Warning"
    assert f"default/{tenants.app}-job" in warning["note"]
    assert "18:06:00" in warning["note"]

    await op.change(DRAIN_RULES, "jobs", {"spec": {"drain": {"behavior": "Drain"}}})
    await op.phase("worker", "Inactive")
    assert await tenants.names() == {"other"}
    emitted = await op.events("worker")
    assert (emitted["DrainBlocked"], emitted["NodeDrained"], emitted["DrainTimedOut"]) == (1, 1, 0)


async def test_a_pod_whose_daemonset_is_gone_is_evicted(op: Operator, tenants: Tenants) -> None:
    node = await op.in_service()
    name = await tenants.daemon(node)
    await tenants.client.delete(DAEMON_SETS, f"{tenants.app}-daemon", namespace="default", propagation="Orphan")
    await op.change(MACHINES, "worker-machine", {"metadata": {"annotations": {HOOK: ""}}})
    op.clock.move_to(SIX)
    await op.until("worker", lambda status: says(status, "Drained", "True"))
    left = await tenants.client.list(PODS, namespace="default", labels=f"daemon={tenants.app}")
    assert name not in {raw["metadata"]["name"] for raw in left if not is_going(raw)}
    await op.change(MACHINES, "worker-machine", {"metadata": {"annotations": {HOOK: None}}})

"""A tenant who may create ScheduledMachines in one namespace can do nothing to other tenants through the operator.

No webhooks here, so that whatever the CRD alone does not refuse reaches the controller.
"""

import asyncio
import base64
import io
import json
import logging
from contextlib import asynccontextmanager
from typing import Any

import pytest
import structlog
from prometheus_client import generate_latest

from crds import names
from local import access
from local.provider.kinds import BOOTSTRAPS, CLUSTERS, HOSTS, MACHINES
from service import log, metrics
from service.kube.client import PatchKind
from service.kube.errors import Rejected
from service.kube.resource import CUSTOM_RESOURCE_DEFINITIONS, EVENTS, SCHEDULED_MACHINES, SECRETS
from tests.e2e.manifests import EIGHT, NINE, condition, machine
from tests.integration.guarded import guarded, home
from tests.waiting import until

BY_OURSELVES = {"scheduledmachines", "events"}
MARK = "ev1l"
"""In whatever the tenant makes up, so that it can be found again."""
LINES = f'{MARK}\n{{"event":"forged"}}\r\n2026-01-01T00:00:00Z [info] forged\x1b[31m\u2028\u202e語'

KIND_OF_ALL: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "sharedmachines.infrastructure.cluster.x-k8s.io"},
    "spec": {
        "group": "infrastructure.cluster.x-k8s.io",
        "scope": "Cluster",
        "names": {
            "kind": "SharedMachine",
            "plural": "sharedmachines",
            "singular": "sharedmachine",
            "listKind": "SharedMachineList",
        },
        "versions": [
            {
                "name": "v1beta1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}


def envelope(api_version, kind, **more):
    return {"apiVersion": api_version, "kind": kind, "spec": {"stringData": {MARK: MARK}}, **more}


def overreaching(victim):
    """What a tenant might write to reach further than a machine of their own."""
    boot, infra = ("bootstrap.cluster.x-k8s.io/v1beta1", "K0sWorkerConfig"), (HOSTS.api_version, HOSTS.kind)
    return {
        "boot-elsewhere": {"bootstrapSpec": envelope(*boot, namespace=victim)},
        "infra-elsewhere": {"infrastructureSpec": envelope(*infra, namespace=victim)},
        "infra-traversal": {"infrastructureSpec": envelope(*infra, namespace=f"../{victim}")},
        "secret": {"bootstrapSpec": envelope("v1", "Secret")},
        "binding": {"infrastructureSpec": envelope("rbac.authorization.k8s.io/v1", "ClusterRoleBinding")},
        "deployment": {"bootstrapSpec": envelope("apps/v1", "Deployment")},
        "another-machine": {"infrastructureSpec": envelope("cluster.x-k8s.io/v1beta2", "Machine")},
        "a-cluster": {"infrastructureSpec": envelope("cluster.x-k8s.io/v1beta2", "Cluster")},
        "one-of-us": {"bootstrapSpec": envelope(names.API_VERSION, names.KIND)},
        "join-token": {"bootstrapSpec": envelope("k0smotron.io/v1beta1", "JoinTokenRequest")},
        "template": {"infrastructureSpec": envelope(HOSTS.api_version, "RemoteMachineTemplate")},
        "whole-cluster": {"infrastructureSpec": envelope(HOSTS.api_version, "RemoteCluster")},
        "not-namespaced": {"infrastructureSpec": envelope(HOSTS.api_version, "SharedMachine")},
        "path-in-version": {"infrastructureSpec": envelope(f"{HOSTS.group}/v1beta1/../../../api/v1", "Secret")},
        "metadata": {"bootstrapSpec": envelope(*boot, metadata={"namespace": victim, "name": "worker-machine"})},
        "cluster-elsewhere": {"clusterName": f"{victim}/demo"},
        "cluster-traversal": {"clusterName": f"../{victim}/demo"},
        "cluster-label": {"machineTemplate": {"labels": {names.LABEL_CLUSTER_NAME: "other"}}},
        "owner-label": {"machineTemplate": {"labels": {names.LABEL_OWNER: "worker"}}},
        "drain-hook": {"machineTemplate": {"annotations": {"pre-drain.delete.hook.machine.cluster.x-k8s.io/x": ""}}},
        "newline-in-kind": {"infrastructureSpec": envelope(HOSTS.api_version, f"RemoteMachine\n{MARK}")},
        "newline-in-days": {"schedule": {"daysOfWeek": [LINES]}},
        "newline-in-taint": {"nodeTaints": [{"key": f"example.com/{LINES}", "effect": "NoSchedule"}]},
    }


IGNORED = "metadata"
"""Says it in a field that no controller reads: a machine like any other, in the tenant's own namespace."""
OUTCOMES = {IGNORED: "Active", "cluster-elsewhere": "Inactive", "cluster-traversal": "Inactive"}
"""All others are errors; of a cluster that is not there it is said that it is not there."""
OWN = {f"{IGNORED}-{end}" for end in ("bootstrap", "infra", "machine")} | {"not-namespaced-bootstrap"}
"""All that may come of it; of a host that is not namespaced it turns out only when the rest is there."""


async def belongings(client, namespace):
    """Everything of a namespace that is worth attacking, in the version in which it is now."""
    found = {}
    for resource in (MACHINES, CLUSTERS, HOSTS, BOOTSTRAPS, SECRETS, SCHEDULED_MACHINES):
        for raw in await client.list(resource, namespace=namespace):
            found[resource.plural, raw["metadata"]["name"]] = raw["metadata"]["resourceVersion"]
    return found


async def another_tenants_machine(client, namespace, name="worker"):
    """A Machine with its host, of a cluster that is none of ours."""
    for resource, end in ((HOSTS, "infra"), (BOOTSTRAPS, "bootstrap")):
        body = {**resource.envelope(), "metadata": {"name": f"{name}-{end}"}, "spec": {}}
        await client.create(resource, body, namespace=namespace)
    refs = {
        "infrastructureRef": {"apiGroup": HOSTS.group, "kind": HOSTS.kind, "name": f"{name}-infra"},
        "bootstrap": {
            "configRef": {"apiGroup": BOOTSTRAPS.group, "kind": BOOTSTRAPS.kind, "name": f"{name}-bootstrap"}
        },
    }
    body = {**MACHINES.envelope(), "metadata": {"name": f"{name}-machine"}, "spec": {"clusterName": "other", **refs}}
    await client.create(MACHINES, body, namespace=namespace)


def kubeconfig_secret(cluster):
    return {
        "metadata": {"name": "demo-kubeconfig", "labels": {names.LABEL_CLUSTER_NAME: "demo"}},
        "type": names.KUBECONFIG_SECRET_TYPE,
        "data": {"value": base64.b64encode(cluster.access.kubeconfig(access.ADMIN).encode()).decode()},
    }


@pytest.fixture
async def tenant(admin):
    return await home(admin, "tenant")


@pytest.fixture
async def victim(admin, audited):
    """Another tenant with a running machine and a kubeconfig."""
    name = await home(admin, "victim")
    await another_tenants_machine(admin, name)
    await admin.create(SECRETS, kubeconfig_secret(audited), namespace=name)
    return name


@pytest.fixture
async def without_rules(admin):
    """The CRD lets everything in, as one of an older version might; what was let in is gone at the end."""
    name = f"{names.PLURAL}.{names.GROUP}"
    rules = (await admin.get(CUSTOM_RESOURCE_DEFINITIONS, name))["spec"]["versions"][0]["schema"]
    probe = machine("probe", infrastructureSpec=envelope("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"))

    async def serve(schema):
        crd = await admin.get(CUSTOM_RESOURCE_DEFINITIONS, name)
        crd["spec"]["versions"][0]["schema"] = schema
        await admin.replace(CUSTOM_RESOURCE_DEFINITIONS, name, crd)

    async def lets_in():
        try:
            return await admin.create(SCHEDULED_MACHINES, probe, namespace="default", dry_run=True)
        except Rejected:
            return None

    await serve({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}})
    await until(lets_in)
    yield
    for raw in await admin.list(SCHEDULED_MACHINES):
        where = raw["metadata"]
        if where["namespace"].startswith("tenant-"):
            await admin.patch(
                SCHEDULED_MACHINES, where["name"], {"metadata": {"finalizers": None}}, namespace=where["namespace"]
            )
            await admin.delete(SCHEDULED_MACHINES, where["name"], namespace=where["namespace"])
    await serve(rules)
    await until(lambda: refuses(lets_in))


async def refuses(lets_in):
    return await lets_in() is None


async def try_to_store(client, namespace, bodies):
    """Those that the CRD lets in; it refuses most by itself."""
    stored = []
    for body in bodies:
        try:
            await client.create(SCHEDULED_MACHINES, body, namespace=namespace)
        except Rejected:
            continue
        stored.append(body["metadata"]["name"])
    return stored


@pytest.mark.usefixtures("without_rules")
async def test_no_spec_reaches_beyond_the_tenants_own_machine_even_where_the_crd_lets_it_in(
    audited, admin, tenant, victim
):
    await admin.patch(
        CUSTOM_RESOURCE_DEFINITIONS, KIND_OF_ALL["metadata"]["name"], KIND_OF_ALL, kind=PatchKind.APPLY, force=True
    )
    attacks = overreaching(victim)
    bodies = [machine(name, infrastructure={"address": name}, **spec) for name, spec in attacks.items()]
    stored = await try_to_store(admin, tenant, bodies)
    assert stored == list(attacks)
    before = await belongings(admin, victim)
    async with guarded(audited, (tenant, victim), NINE) as op:
        for name in stored:
            status = await op.until(tenant, name, lambda status: status.get("phase"))
            assert status["phase"] == OUTCOMES.get(name, "Error"), name
        await op.at_rest()
        made = {json.loads(one.body or "")["metadata"]["name"] for one in op.writes if one.resource not in BY_OURSELVES}
        assert made == OWN
        assert [one.what for one in op.writes if f"/namespaces/{tenant}/" not in one.path] == []
        assert [request.what for request in op.requests if "secrets" in request.path] == []
    assert await belongings(admin, victim) == before


async def test_a_name_that_collides_with_another_tenants_machine_gives_no_power_over_it(audited, admin, tenant):
    await another_tenants_machine(admin, tenant)
    resources = (MACHINES, HOSTS, BOOTSTRAPS)

    async def theirs():
        return [await admin.list(resource, namespace=tenant) for resource in resources]

    before = await theirs()
    async with guarded(audited, (tenant,), NINE) as op:
        await admin.create(SCHEDULED_MACHINES, machine("worker", infrastructure={"address": "x"}), namespace=tenant)
        status = await op.until(tenant, "worker", lambda status: status.get("phase") == "Error")
        assert condition(status, "ReferencesValid")["reason"] == "ForeignObject"
        await admin.patch(SCHEDULED_MACHINES, "worker", {"spec": {"killSwitch": True}}, namespace=tenant)
        await op.until(tenant, "worker", lambda status: status.get("phase") == "Terminated")
        await admin.delete(SCHEDULED_MACHINES, "worker", namespace=tenant)
        await until(lambda: emptied(admin, tenant))
        await op.at_rest()
        # That it exists is learnt by trying to create it; nothing is asked of it beyond that.
        assert {one.verb for one in op.writes if one.resource not in BY_OURSELVES} <= {"create"}
    assert await theirs() == before


async def emptied(client, namespace):
    return not await client.list(SCHEDULED_MACHINES, namespace=namespace)


async def test_the_kubeconfig_of_a_cluster_of_the_same_name_in_another_namespace_is_never_read(
    audited, admin, tenant, victim
):
    async with guarded(audited, (tenant, victim), NINE) as op:
        await admin.create(SCHEDULED_MACHINES, machine("worker", infrastructure={"address": "x"}), namespace=tenant)
        await op.until(tenant, "worker", lambda status: status.get("phase") == "Active")
        await admin.patch(MACHINES, "worker-machine", {"spec": {"providerID": "remote://x"}}, namespace=tenant)
        status = await op.until(tenant, "worker", lambda status: condition(status, "WorkloadClusterReachable"))
        assert condition(status, "WorkloadClusterReachable")["reason"] == "KubeconfigNotFound"
        asked = {request.path for request in op.requests if "secrets" in request.path}
        assert asked == {f"/api/v1/namespaces/{tenant}/secrets/demo-kubeconfig"}


@asynccontextmanager
async def logging_to(stream):
    root = logging.getLogger()
    before = (root.handlers, root.level)
    log.configure(level="debug", stream=stream)
    try:
        yield
    finally:
        root.handlers, root.level = before
        structlog.reset_defaults()


async def test_text_from_a_tenant_or_a_provider_forges_no_log_line_no_event_and_no_metric(audited, admin, tenant):
    stream = io.StringIO()
    async with logging_to(stream), guarded(audited, (tenant,), NINE) as op:
        loud = machine(
            "loud", infrastructure={"address": LINES}, machineTemplate={"annotations": {"example.com/a": LINES}}
        )
        unknown = [
            machine(f"unknown-{n}", infrastructureSpec=envelope(HOSTS.api_version, f"{MARK.title()}{n}Machine"))
            for n in range(20)
        ]
        stored = await try_to_store(admin, tenant, [loud, *unknown])
        assert len(stored) == 21
        await op.until(tenant, "loud", lambda status: status.get("phase") == "Active")
        failure = {"failureReason": LINES, "failureMessage": LINES + "語" * 2000}
        body = {"status": {"deprecated": {"v1beta1": failure}}}
        await admin.patch(MACHINES, "loud-machine", body, namespace=tenant, subresource="status")
        status = await op.until(tenant, "loud", lambda status: status.get("phase") == "Error")
        for name in stored[1:]:
            await op.until(tenant, name, lambda status: status.get("phase") == "Error")
        await op.at_rest()
        events = await admin.list(EVENTS, namespace=tenant)
    said = [status["message"], *(one["message"] for one in status["conditions"]), *(event["note"] for event in events)]
    assert any(MARK in text for text in said)
    assert all(text.isprintable() and len(text.encode()) <= 4096 for text in said)
    lines = stream.getvalue().splitlines()
    assert all(line.isprintable() and json.loads(line)["event"] != "forged" for line in lines)
    assert any(MARK in line for line in lines)
    assert MARK not in generate_latest(metrics.REGISTRY).decode().lower()


CROWD = 300
AHEAD = 60
"""What the workers had in hand, and a burst or two; bench/bench_neighbour.py has ten thousand, and measures."""


@pytest.mark.parametrize("hosts", ["each its own host", "all the same host"])
async def test_a_crowd_of_one_namespace_does_not_hold_up_one_of_another(audited, admin, hosts):
    crowd, alone = await home(admin, "crowd"), await home(admin, "alone")
    slots = asyncio.Semaphore(16)

    async def store(namespace, name, address, priority):
        async with slots:
            body = machine(name, infrastructure={"address": address}, priority=priority)
            body["metadata"]["finalizers"] = [names.FINALIZER]
            await admin.create(SCHEDULED_MACHINES, body, namespace=namespace)

    def address(number):
        return f"{crowd}-{number if hosts == 'each its own host' else 0}"

    await asyncio.gather(*(store(crowd, f"m{n}", address(n), 255) for n in range(CROWD)))
    async with guarded(audited, (crowd, alone), EIGHT) as op:
        await store(alone, "patient", "mine", 0)
        await op.until(alone, "patient", lambda status: status.get("phase") == "Inactive")
        await until(lambda: op.controller.queue.depth == 0 and op.controller.queue.running == 0, within=120)
        op.requests.clear()
        op.clock.move_to(NINE)
        await until(lambda: [one for one in op.writes if "/machines" in one.path and alone in one.path], within=120)
        served = {one.path for one in op.writes if f"/namespaces/{crowd}/{names.PLURAL}/" in one.path}
        assert len(served) < AHEAD

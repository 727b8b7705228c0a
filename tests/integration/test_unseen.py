"""A provider whose conversion webhook is dead: its objects cannot be listed, and other objects do not wait."""

from contextlib import suppress
from datetime import timedelta

import pytest

from local.crds import apply
from local.provider.kinds import MACHINES
from service.kube.errors import KubeError, NotFound, Unavailable
from service.kube.resource import CUSTOM_RESOURCE_DEFINITIONS, EVENTS, SCHEDULED_MACHINES, Resource
from service.observe import watches
from service.runtime.backoff import Backoff
from tests.e2e.manifests import MINUTE, NINE, condition, machine
from tests.integration.guarded import guarded, home
from tests.waiting import until
from tests.watching import until_gone

OLD = Resource("infrastructure.cluster.x-k8s.io", "v1beta1", "frailmachines", "FrailMachine")
NEW = Resource("infrastructure.cluster.x-k8s.io", "v1beta2", "frailmachines", "FrailMachine")
"""Stored as OLD, so that a request for NEW needs the conversion."""
NO_SERVER = {"clientConfig": {"url": "https://127.0.0.1:1/convert"}, "conversionReviewVersions": ["v1"]}
DEAD = {"strategy": "Webhook", "webhook": NO_SERVER}
NONE_NEEDED = {"strategy": "None", "webhook": None}
GRACE, LET_GO = 5 * MINUTE, 10 * MINUTE


def definition():
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    versions = [
        {"name": one.version, "served": True, "storage": one is OLD, "schema": schema, "subresources": {"status": {}}}
        for one in (OLD, NEW)
    ]
    words = {"kind": OLD.kind, "plural": OLD.plural, "singular": "frailmachine", "listKind": "FrailMachineList"}
    return {
        **CUSTOM_RESOURCE_DEFINITIONS.envelope(),
        "metadata": {"name": OLD.label, "labels": {"cluster.x-k8s.io/v1beta2": "v1beta1_v1beta2"}},
        "spec": {"group": OLD.group, "scope": "Namespaced", "names": words, "versions": versions},
    }


class Provider:
    """The kind, whose webhook a test lets die."""

    def __init__(self, client):
        self.client = client

    async def convert_by(self, conversion):
        await self.client.patch(CUSTOM_RESOURCE_DEFINITIONS, OLD.label, {"spec": {"conversion": conversion}})

    async def listed(self):
        with suppress(KubeError):
            await self.client.list(NEW)
            return True
        return False

    async def dead(self):
        try:
            await self.client.list(NEW)
        except Unavailable:
            return True
        return False


@pytest.fixture
async def provider(admin):
    made = Provider(admin)
    await apply(admin, definition())
    await until(made.listed)
    yield made
    await made.convert_by(NONE_NEEDED)
    await until(made.listed)
    await admin.delete(CUSTOM_RESOURCE_DEFINITIONS, OLD.label)
    await until_gone(admin, CUSTOM_RESOURCE_DEFINITIONS, OLD.label)


@pytest.fixture
async def tenant(audited, admin, provider):
    """A namespace with a machine whose infrastructure object cannot be seen any more."""
    name = await home(admin, "unseen")
    infrastructure = {**NEW.envelope(), "spec": {"address": name}}
    async with guarded(audited, (name,), NINE) as op:
        body = machine("worker", infrastructureSpec=infrastructure)
        await admin.create(SCHEDULED_MACHINES, body, namespace=name)
        await op.until(name, "worker", lambda status: status.get("phase") == "Active")
        await op.at_rest()
    await provider.convert_by(DEAD)
    await until(provider.dead)
    return name


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(watches, "SYNC_SECONDS", 2.0)


async def is_gone(client, resource, name, namespace):
    try:
        await client.get(resource, name, namespace=namespace)
    except NotFound:
        return True
    return False


async def test_a_machine_whose_infrastructure_cannot_be_seen_stays_and_says_why(audited, tenant):
    async with guarded(audited, (tenant,), NINE) as op:
        op.controller.queue._failures.backoff = Backoff(base=0.5, cap=2.0)
        status = await op.until(tenant, "worker", lambda seen: "webhook" in condition(seen, "Ready").get("message", ""))
        assert (status["phase"], condition(status, "Ready")["reason"]) == ("Active", "APIUnavailable")
        assert status["infrastructureRef"]["name"] == "worker-infra"
        assert {one.verb for one in op.writes if one.resource not in {"events", "scheduledmachines"}} == set()


async def test_the_kill_switch_removes_it_all_the_same(audited, admin, tenant):
    async with guarded(audited, (tenant,), NINE) as op:
        await admin.patch(SCHEDULED_MACHINES, "worker", {"spec": {"killSwitch": True}}, namespace=tenant)
        await until(lambda: is_gone(admin, MACHINES, "worker-machine", tenant))
        status = await op.until(tenant, "worker", lambda seen: "cannot tell whether" in seen.get("message", ""))
        assert (status["phase"], condition(status, "Ready")["reason"]) == ("Terminated", "Terminating")


async def test_its_deletion_removes_what_can_be_seen_and_lets_go_ten_minutes_after_the_grace(audited, admin, tenant):
    async with guarded(audited, (tenant,), NINE) as op:
        await admin.delete(SCHEDULED_MACHINES, "worker", namespace=tenant)
        await until(lambda: is_gone(admin, MACHINES, "worker-machine", tenant))
        await op.until(tenant, "worker", lambda seen: "cannot tell whether" in seen.get("message", ""))
        op.clock.advance(GRACE + LET_GO + timedelta(seconds=5))
        await until(lambda: is_gone(admin, SCHEDULED_MACHINES, "worker", tenant))
        await op.at_rest()
        warnings = {one["reason"] for one in await admin.list(EVENTS, namespace=tenant) if one["type"] == "Warning"}
        assert "FinalizerReleased" in warnings
    assert not await is_gone(admin, OLD, "worker-infra", tenant), "left behind, as was said"

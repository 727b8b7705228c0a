"""Objects that a tenant can store and that our decoder does not take, beside good ones: they cost only themselves."""

import json

import pytest
from prometheus_client import generate_latest

from local.provider.kinds import CLUSTERS, HOSTS, MACHINES
from service import metrics
from service.kube.errors import NotFound
from service.kube.resource import SCHEDULED_MACHINES
from service.kube.transport import Request
from service.runtime.key import Key
from tests.e2e.manifests import NINE, condition, machine
from tests.integration.guarded import guarded, home
from tests.integration.wires import wire
from tests.waiting import until

LEVELS = 1_500
"""More than orjson decodes (1,024), fewer than the API server stores."""


def deep(levels=LEVELS):
    return '{"more":' * levels + "1" + "}" * levels


async def store_raw(client, resource, body, marked, namespace, name=None):
    """Stores a manifest in which `marked`, a text, stands for JSON that no serialiser of ours would write."""
    text = json.dumps({**resource.envelope(), **body}).replace(f'"{marked}"', deep()).encode()
    method, path = ("PUT", resource.item(name, namespace)) if name else ("POST", resource.collection(namespace))
    request = Request("create", method, path, resource.plural, text, {"Content-Type": "application/json"})
    return await client.transport.call(request)


def poisoned(name):
    return machine(name, infrastructure={"address": name, "deep": "DEEP"})


@pytest.fixture
async def tenant(admin):
    return await home(admin, "poison")


async def works(op, tenant, name):
    await op.client.create(SCHEDULED_MACHINES, machine(name, infrastructure={"address": name}), namespace=tenant)
    await op.until(tenant, name, lambda status: status.get("phase") == "Active")


async def test_an_object_too_deep_to_decode_is_in_error_and_its_neighbours_are_served(audited, admin, tenant):
    await store_raw(admin, SCHEDULED_MACHINES, poisoned("before"), "DEEP", tenant)
    async with wire(audited.url) as line, guarded(audited, (tenant,), NINE, url=line.url) as op:
        await works(op, tenant, "one")
        await store_raw(admin, SCHEDULED_MACHINES, poisoned("during"), "DEEP", tenant)
        await works(op, tenant, "two")
        for name in ("before", "during"):
            status = await raw_status(op, tenant, name, "Error")
            assert "nested deeper than 100 levels" in condition(status, "Ready")["message"]
        line.cut()
        await works(op, tenant, "three")
        op.controller.watches.scheduled.relist()
        line.cut()
        await works(op, tenant, "four")
        # It can be deleted, and it can be mended.
        await admin.transport.call(
            Request("delete", "DELETE", SCHEDULED_MACHINES.item("before", tenant), SCHEDULED_MACHINES.plural)
        )
        await until(lambda: Key(tenant, "before") not in op.controller.watches.scheduled)
        fixed = [{"op": "remove", "path": "/spec/infrastructureSpec/spec/deep"}]
        await patch_raw(admin, SCHEDULED_MACHINES, "during", tenant, fixed)
        await op.until(tenant, "during", lambda status: status.get("phase") == "Active")
    assert 'fivespot_watch_objects_unreadable_total{reason="TooDeep",resource="scheduledmachines"} 2.0' in (
        generate_latest(metrics.REGISTRY).decode()
    )


async def test_a_cluster_or_provider_object_that_became_too_deep_to_read_removes_no_machine(audited, admin, tenant):
    async with wire(audited.url) as line, guarded(audited, (tenant,), NINE, url=line.url) as op:
        await works(op, tenant, "one")
        spoil = [{"op": "add", "path": "/spec/deep", "value": "DEEP"}]
        await patch_raw(admin, HOSTS, "one-infra", tenant, spoil)
        variables = [{"op": "add", "path": "/spec/topology", "value": TOPOLOGY}]
        await patch_raw(admin, CLUSTERS, "demo", tenant, variables)
        for informer in (op.controller.watches.clusters, op.controller.watches.informer_of(HOSTS)):
            assert informer is not None
            informer.relist()
        line.cut()
        await works(op, tenant, "two")
        await op.at_rest()
        status = await op.status(tenant, "one")
        assert (status["phase"], status["infrastructureRef"]["name"]) == ("Active", "one-infra")
        assert await admin.get(MACHINES, "one-machine", namespace=tenant)
        deleted = [request.path for request in op.writes if request.method == "DELETE"]
        assert deleted == []


TOPOLOGY = {
    "class": "x",
    "classRef": {"name": "x"},
    "version": "v1.30.0",
    "variables": [{"name": "v", "value": "DEEP"}],
}


async def patch_raw(client, resource, name, namespace, operations):
    text = json.dumps(operations).replace('"DEEP"', deep()).encode()
    headers = {"Content-Type": "application/json-patch+json"}
    await client.transport.call(
        Request("patch", "PATCH", resource.item(name, namespace), resource.plural, text, headers)
    )


async def raw_status(op, namespace, name, phase):
    async def there():
        try:
            status = await op.status(namespace, name)
        except NotFound:
            return None
        return status if status.get("phase") == phase else None

    return await until(there, within=60)

"""What is watched in the management cluster, on a real API server whose kinds come and go."""

import asyncio
import secrets
from contextlib import asynccontextmanager, suppress

import pytest

from crds import names
from crds.schema import custom_resource_definition
from local.crds import apply
from service.kube.discovery import Discovery
from service.kube.errors import NotFound, Rejected, Unavailable
from service.kube.resource import CUSTOM_RESOURCE_DEFINITIONS, SCHEDULED_MACHINES, Resource
from service.kube.transport import Call
from service.observe.informers import WatchListener
from service.observe.watches import Watches
from service.runtime.cache import Change
from service.runtime.key import Key
from tests.e2e.manifests import machine
from tests.waiting import until


@pytest.fixture
async def client(small_cluster):
    async with small_cluster.client() as admin:
        await apply(admin, custom_resource_definition())
        yield admin


class Reported:
    """Everything that the watches report."""

    def __init__(self):
        self.scheduled: list[Change] = []
        self.clusters: list[Change] = []
        self.children: list[Change] = []
        self.restarts: list[tuple[str, ...]] = []
        self.listener = WatchListener(
            scheduled=self.scheduled.append,
            cluster=self.clusters.append,
            child=self.children.append,
            restart=lambda *call: self.restarts.append(call),
        )


@asynccontextmanager
async def watching(client, namespace):
    reported = Reported()
    watches = Watches(client, Discovery(client), (namespace,))
    watches.subscribe(reported.listener)
    with suppress(asyncio.CancelledError):
        async with asyncio.TaskGroup() as group:
            await asyncio.wait_for(watches.start(group), 30)
            yield watches, reported
            for task in group._tasks:
                task.cancel()


@pytest.fixture
async def gadgets(client):
    """A provider's kind that is not installed yet; gone after the test."""
    group = f"g{secrets.token_hex(4)}.example.com"
    resource = Resource(group, "v1", "gadgets", "Gadget")
    yield resource
    with suppress(NotFound):
        await client.delete(CUSTOM_RESOURCE_DEFINITIONS, resource.label)


def definition(resource, scope="Namespaced"):
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    words = {"kind": resource.kind, "plural": resource.plural, "singular": "gadget", "listKind": "GadgetList"}
    versions = [{"name": resource.version, "served": True, "storage": True, "schema": schema}]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": resource.label},
        "spec": {"group": resource.group, "scope": scope, "names": words, "versions": versions},
    }


async def test_without_cluster_api_all_other_kinds_are_listed(client, namespace):
    async with watching(client, namespace) as (watches, _):
        assert watches.is_synced
        assert (watches.contract, watches.machines, watches.clusters) == (None, None, None)


async def test_a_scheduled_machine_is_found_by_its_cluster_and_its_phase(client, namespace):
    async with watching(client, namespace) as (watches, reported):
        await client.create(SCHEDULED_MACHINES, machine("desk", infrastructure={"address": "a"}), namespace=namespace)
        key = Key(namespace, "desk")
        await until(lambda: key in watches.scheduled)
        assert reported.scheduled[0].key == key
        assert watches.scheduled.keys_by("cluster", "demo") == {key}
        assert watches.scheduled.keys_by("phase", "Pending") == {key}


async def test_a_kind_is_watched_as_soon_as_it_is_installed_and_only_what_carries_our_label(client, namespace, gadgets):
    async with watching(client, namespace) as (watches, reported):
        assert await watches.providers.kind(gadgets.api_version, gadgets.kind) is None
        with pytest.raises(NotFound, match="not served"):
            await watches.resolve(gadgets.api_version, gadgets.kind)
        groups: list[str] = []
        watches.listen_to_definitions(groups.append)
        await apply(client, definition(gadgets))
        await until(lambda: gadgets.group in groups)

        await until(lambda: served(watches, gadgets))
        informer = await watches.providers.kind(gadgets.api_version, gadgets.kind)
        assert watches.informer_of(gadgets) is informer
        assert await watches.providers.kind(gadgets.api_version, gadgets.kind) is informer
        for name, labels in (("theirs", {}), ("ours", {names.LABEL_OWNER: "desk"})):
            body = {**gadgets.envelope(), "metadata": {"name": name, "labels": labels}}
            await client.create(gadgets, body, namespace=namespace)
        await until(lambda: Key(namespace, "ours") in informer)
        assert [change.key.name for change in reported.children] == ["ours"]
        assert Key(namespace, "theirs") not in informer


async def test_a_kind_that_is_not_namespaced_can_be_no_machines_own(client, namespace, gadgets):
    async with watching(client, namespace) as (watches, _):
        await apply(client, definition(gadgets, scope="Cluster"))
        await until(lambda: refused(watches, gadgets))


async def test_a_kind_whose_definition_is_deleted_costs_no_request_until_it_is_installed_again(
    client, namespace, gadgets
):
    async with watching(client, namespace) as (watches, reported):
        await apply(client, definition(gadgets))
        await until(lambda: served(watches, gadgets))
        body = {**gadgets.envelope(), "metadata": {"name": "ours", "labels": {names.LABEL_OWNER: "desk"}}}
        await client.create(gadgets, body, namespace=namespace)
        await until(lambda: reported.children)
        await client.delete(CUSTOM_RESOURCE_DEFINITIONS, gadgets.label)
        await until(lambda: len(watches.providers.informers) == 0)
        assert reported.children[-1].key == Key(namespace, "ours")

        calls: list[Call] = []
        client.observe_calls(calls.append)
        await asyncio.sleep(3)  # longer than a broken watch waits before it lists again
        assert [call for call in calls if call.resource == gadgets.plural] == []
        client.observe_calls(None)

        await apply(client, definition(gadgets))
        await until(lambda: served(watches, gadgets))
        assert len(watches.providers.informers) == 1


async def served(watches, resource):
    try:
        return await watches.providers.kind(resource.api_version, resource.kind) is not None
    except Unavailable:  # defined, and not served yet
        return False


async def refused(watches, resource):
    """Whether it is known by now, and turned down."""
    try:
        await watches.resolve(resource.api_version, resource.kind)
    except (NotFound, Unavailable):
        return False
    except Rejected as error:
        return "not namespaced" in error.message
    raise AssertionError("it was accepted")

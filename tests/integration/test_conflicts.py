"""A watch that lags behind the API server, as after an outage: conflicts are met once, not until it has caught up."""

import time
from itertools import pairwise
from typing import Any

import pytest

from crds import names
from crds.providers import DEFAULT_POLICY
from local.provider.kinds import HOSTS, MACHINES
from service.clock import ManualClock
from service.decide.intent import read_intent
from service.kube.client import Client
from service.kube.errors import Conflict, NotFound
from service.kube.resource import SCHEDULED_MACHINES
from service.objects.subject import Subject
from service.runtime.key import Key
from tests.e2e.manifests import EIGHT, NINE, machine
from tests.integration.guarded import guarded, home
from tests.waiting import until


def deaf(informer):
    """Ignores the events of its watch, not the answers to our own requests."""
    for cache in informer._caches.values():
        cache.upsert = lambda _raw: False


def desk():
    """With what the defaulting webhook would have added."""
    body = machine("desk")
    body["metadata"]["finalizers"] = [names.FINALIZER]
    return body


def changes(op, resource):
    return [one for one in op.writes if one.resource == resource and one.verb in ("patch", "replace")]


async def test_a_status_that_conflicts_is_written_once_more_though_the_watch_is_silent(audited):
    async with audited.client() as admin:
        tenants = await home(admin, "tenants")
    async with guarded(audited, (tenants,), EIGHT) as op:
        await op.client.create(SCHEDULED_MACHINES, desk(), namespace=tenants)
        await op.until(tenants, "desk", lambda status: status.get("phase") == "Inactive")
        await op.at_rest()
        deaf(op.controller.watches.scheduled)
        label = {"metadata": {"labels": {"seen": "late"}}}
        await op.client.patch(SCHEDULED_MACHINES, "desk", label, namespace=tenants)
        op.requests.clear()
        op.clock.move_to(NINE)
        await op.until(tenants, "desk", lambda status: status.get("phase") == "Active")
        await op.at_rest()
        assert len(changes(op, "scheduledmachines")) == 2


async def test_a_report_changes_nothing_but_the_status(audited):
    async with audited.client() as admin:
        tenants = await home(admin, "tenants")
        body = desk()
        body["metadata"] |= {
            "labels": {"team": "a"},
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "x"},
        }
        before = await admin.create(SCHEDULED_MACHINES, body, namespace=tenants, field_manager="gitops")
    async with guarded(audited, (tenants,), NINE) as op:
        await op.until(tenants, "desk", lambda status: status.get("phase") == "Active")
        await op.at_rest()
        after = await op.client.get(SCHEDULED_MACHINES, "desk", namespace=tenants)
    owners = {entry["manager"] for entry in after["metadata"].pop("managedFields")}
    assert owners == {"gitops", names.FIELD_MANAGER}
    changed = {"managedFields", "resourceVersion"}
    kept, found = ({k: v for k, v in raw["metadata"].items() if k not in changed} for raw in (before, after))
    assert (found, after["spec"]) == (kept, before["spec"])


async def test_the_status_of_an_object_that_is_gone_is_not_found_rather_than_in_conflict(audited):
    async with audited.client() as admin:
        tenants = await home(admin, "tenants")
        raw = await admin.create(SCHEDULED_MACHINES, machine("desk"), namespace=tenants)
        await admin.delete(SCHEDULED_MACHINES, "desk", namespace=tenants)
        seen = Subject.read(Key(tenants, "desk"), raw, read_intent(raw, DEFAULT_POLICY), ManualClock(NINE))
        body = seen.with_status({"phase": "Active"})
        with pytest.raises(NotFound):
            await admin.replace(SCHEDULED_MACHINES, "desk", body, namespace=tenants, subresource="status")
        await admin.create(SCHEDULED_MACHINES, machine("desk"), namespace=tenants)
        with pytest.raises(Conflict):
            await admin.replace(SCHEDULED_MACHINES, "desk", body, namespace=tenants, subresource="status")


async def test_a_child_that_was_changed_meanwhile_is_read_before_it_is_written_again(audited):
    async with audited.client() as admin:
        tenants = await home(admin, "tenants")
    async with guarded(audited, (tenants,), NINE) as op:
        await op.client.create(SCHEDULED_MACHINES, desk(), namespace=tenants)
        await op.until(tenants, "desk", lambda status: status.get("phase") == "Active")
        await op.at_rest()
        machines = op.controller.watches.machines
        assert machines is not None
        deaf(machines)
        stolen: dict[str, Any] = {"metadata": {"ownerReferences": []}}
        machines.absorb(await op.client.patch(MACHINES, "desk-machine", stolen, namespace=tenants))
        unreported = {"metadata": {"labels": {"seen": "late"}}}
        await op.client.patch(MACHINES, "desk-machine", unreported, namespace=tenants)
        op.requests.clear()
        await op.client.patch(SCHEDULED_MACHINES, "desk", {"spec": {"priority": 60}}, namespace=tenants)

        async def owned():
            raw = await op.client.get(MACHINES, "desk-machine", namespace=tenants)
            return raw["metadata"].get("ownerReferences")

        await until(owned)
        await op.at_rest()
        assert len(changes(op, "machines")) == 2


async def test_a_conflict_that_never_ends_backs_off(audited, monkeypatch):
    """As a provider's webhook may answer, which says 409 to whatever it does not want."""
    async with audited.client() as admin:
        tenants = await home(admin, "tenants")
    async with guarded(audited, (tenants,), NINE) as op:
        create, asked = Client.create, []

        async def refusing(self, resource, body, **options):
            if resource.plural != HOSTS.plural:
                return await create(self, resource, body, **options)
            asked.append(time.monotonic())
            raise Conflict("the host is taken", status=409)

        monkeypatch.setattr(Client, "create", refusing)
        await op.client.create(SCHEDULED_MACHINES, desk(), namespace=tenants)
        await until(lambda: len(asked) == 6, within=120)
    pauses = [later - earlier for earlier, later in pairwise(asked)]
    assert pauses[-1] > 1.0

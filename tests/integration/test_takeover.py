"""What a replica knows of objects that were another's until now; asked of a real API server."""

from crds import names
from service.kube.resource import SCHEDULED_MACHINES
from service.runtime.key import Key
from tests.e2e.manifests import EIGHT, NINE, machine
from tests.integration.guarded import guarded, home
from tests.waiting import until


def reads(op):
    """ScheduledMachines that were asked for one by one."""
    return [one for one in op.requests if one.resource == "scheduledmachines" and one.verb == "get"]


async def test_until_its_watch_has_reported_a_later_version_a_new_holder_reads_before_it_creates(audited):
    async with audited.client() as admin:
        tenants, own = await home(admin, "tenants"), await home(admin, "own")
        for name in ("one", "other"):
            body = machine(name, infrastructure={"address": name})
            body["metadata"]["finalizers"] = [names.FINALIZER]
            await admin.create(SCHEDULED_MACHINES, body, namespace=tenants)
    async with guarded(audited, (tenants,), NINE, namespace=own) as op:
        await until(lambda: op.phases("Active") == 2)
        await op.at_rest()
        assert {one.path.rpartition("/")[2] for one in reads(op)} <= {"one", "other"}
        assert reads(op), "what was listed before the lease was taken may have changed since"


async def test_at_rest_no_object_is_read(audited):
    async with audited.client() as admin:
        tenants, own = await home(admin, "tenants"), await home(admin, "own")
    async with guarded(audited, (tenants,), EIGHT, namespace=own) as op:
        body = machine("desk")
        body["metadata"]["finalizers"] = [names.FINALIZER]
        await op.client.create(SCHEDULED_MACHINES, body, namespace=tenants)
        await until(lambda: op.phases("Inactive") == 1)
        await until(lambda: not op.controller._may_be_stale(Key(tenants, "desk")))
        op.clock.move_to(NINE)
        await until(lambda: op.phases("Active") == 1)
        await op.at_rest()
        assert not reads(op)

"""The webhooks behind a real API server, used with kubectl as people use it."""

import secrets
from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest
import pytest_asyncio

from crds import names
from local.binaries import Assets
from local.cluster import LocalCluster
from service.kube.errors import Invalid, NotFound
from service.kube.resource import SCHEDULED_MACHINES
from service.kube.transport import Request
from tests.integration.gate import OURSELVES, Gate, gate
from tests.webhooks.reviews import machine

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def door(small_cluster: LocalCluster, assets: Assets) -> AsyncIterator[Gate]:
    async with gate(small_cluster, assets) as opened:
        yield opened


@pytest.fixture
def name() -> str:
    """A name that no other test uses."""
    return f"worker-{secrets.token_hex(3)}"


def named(name: str, **spec: Any) -> dict[str, Any]:
    made = machine(**spec)
    made["metadata"] = {"name": name}
    return made


def weekend(name: str) -> dict[str, Any]:
    """Legal, but probably not what was meant."""
    return named(name, schedule={"daysOfWeek": ["fri"], "hoursOfDay": ["22-6"]})


def hopeless(name: str) -> dict[str, Any]:
    """Three things wrong that only the webhook can know."""
    made = named(name, schedule={"hoursOfDay": ["9"], "timezone": "Mars/Phobos"})
    made["spec"]["bootstrapSpec"]["namespace"] = "elsewhere"
    made["spec"]["infrastructureSpec"]["namespace"] = "elsewhere"
    return made


async def stored(door: Gate, name: str) -> dict[str, Any]:
    return await door.client.get(SCHEDULED_MACHINES, name, namespace=door.namespace)


async def test_a_good_object_is_stored_with_its_defaults_and_our_finalizer(door: Gate, name: str):
    applied = await door.kubectl("apply", "-f", "-", stdin=named(name))
    assert (applied.returncode, applied.stderr) == (0, "")
    found = await stored(door, name)
    assert found["metadata"]["finalizers"] == [names.FINALIZER]
    assert found["spec"]["priority"] == 50
    assert found["spec"]["schedule"]["enabled"] is True
    assert "killIfCommands" not in found["spec"]


async def test_kubectl_prints_all_that_is_wrong_line_by_line(door: Gate, name: str):
    applied = await door.kubectl("apply", "-f", "-", stdin=hopeless(name))
    assert applied.returncode == 1
    lines = applied.stderr.splitlines()
    assert lines[0].startswith(f'The ScheduledMachine "{name}" is invalid')
    assert sorted(line.split(": ")[0] for line in lines if line.startswith("* ")) == [
        "* spec.bootstrapSpec.namespace",
        "* spec.infrastructureSpec.namespace",
        "* spec.schedule.timezone",
    ]
    assert 'Invalid value: "Mars/Phobos"' in applied.stderr
    assert f"own namespace, {door.namespace}" in applied.stderr


async def test_one_refusal_names_what_schema_cel_and_webhook_would_each_have_found(door: Gate, name: str):
    made = named(name, schedule={"hoursOfDay": [9], "daysOfWeek": ["monday"], "timezone": "Mars/Phobos"}, priority=300)
    applied = await door.kubectl("apply", "-f", "-", stdin=made)
    assert applied.returncode == 1
    assert sorted(line.split(": ")[0] for line in applied.stderr.splitlines() if line.startswith("* ")) == [
        "* spec.priority",
        "* spec.schedule.daysOfWeek[0]",
        "* spec.schedule.hoursOfDay[0]",
        "* spec.schedule.timezone",
    ]
    assert 'put it in quotes, "9"' in applied.stderr


TOO_FAR = {
    "bootstrapSpec": ["K0sControllerConfig", "KubeadmConfigTemplate", "RemoteMachine", "JoinTokenRequest"],
    "infrastructureSpec": [
        *("PooledRemoteMachine", "AWSManagedMachinePool", "AzureClusterIdentity", "Metal3DataClaim"),
        *("VSphereFailureDomain", "K0sWorkerConfig"),
    ],
}


@pytest.mark.parametrize("part", TOO_FAR)
async def test_kinds_that_reach_further_than_a_machine_are_refused_by_the_webhook(door: Gate, name: str, part: str):
    for kind in TOO_FAR[part]:
        given = named(name)
        given["spec"][part]["kind"] = kind
        refused = await door.kubectl("create", "--dry-run=server", "-f", "-", stdin=given)
        assert f'spec.{part}.kind: Invalid value: "{kind}": kind is not allowed here; allowed: *' in refused.stderr


async def test_an_object_deeper_than_our_decoder_reads_is_refused_at_its_path(door: Gate, name: str):
    given = named(name)
    given["spec"]["infrastructureSpec"]["spec"] = "@"
    body = orjson.dumps(given).replace(b'"@"', b'{"a":' * 3000 + b"1" + b"}" * 3000)
    path = f"{SCHEDULED_MACHINES.collection(door.namespace)}?dryRun=All"
    headers = {"Content-Type": "application/json"}
    with pytest.raises(Invalid) as refused:
        await door.client.transport.call(Request("create", "POST", path, SCHEDULED_MACHINES.plural, body, headers))
    (cause,) = refused.value.causes
    assert cause.field == "spec.infrastructureSpec.spec"
    assert "must not be nested deeper than 100 levels" in cause.message


async def test_what_is_merely_missing_is_refused_too(door: Gate, name: str):
    applied = await door.kubectl("apply", "-f", "-", stdin=named(name, clusterName=None))
    assert (applied.returncode, "spec.clusterName" in applied.stderr) == (1, True)


async def test_other_clients_get_a_status_with_causes(door: Gate, name: str):
    body = hopeless(name)
    with pytest.raises(Invalid) as refused:
        await door.client.create(SCHEDULED_MACHINES, body, namespace=door.namespace)
    assert refused.value.status == 422
    assert {cause.field for cause in refused.value.causes} == {
        "spec.bootstrapSpec.namespace",
        "spec.infrastructureSpec.namespace",
        "spec.schedule.timezone",
    }


async def test_what_is_suspicious_is_stored_with_a_warning(door: Gate, name: str):
    applied = await door.kubectl("apply", "-f", "-", stdin=weekend(name))
    assert applied.returncode == 0
    assert applied.stderr.startswith("Warning: spec.schedule")
    assert (await stored(door, name))["spec"]["schedule"]["hoursOfDay"] == ["22-6"]


async def test_a_dry_run_gets_the_same_answers_and_stores_nothing(door: Gate, name: str):
    good = await door.kubectl("apply", "--dry-run=server", "-f", "-", stdin=weekend(name))
    assert (good.returncode, "Warning: spec.schedule" in good.stderr) == (0, True)
    bad = await door.kubectl("apply", "--dry-run=server", "-f", "-", stdin=hopeless(name))
    assert bad.returncode == 1
    with pytest.raises(NotFound):
        await stored(door, name)


async def test_an_object_older_than_a_rule_can_be_edited_elsewhere_and_deleted(door: Gate, name: str):
    account = OURSELVES.split(":")[-1]
    binding = ("create", "rolebinding", "operator", "--clusterrole=admin", f"--serviceaccount=5spot-system:{account}")
    role = ("create", "role", "machines", "--verb=*", f"--resource={names.PLURAL}.{names.GROUP}")
    bound = ("create", "rolebinding", "machines", "--role=machines", f"--serviceaccount=5spot-system:{account}")
    for words in (binding, role, bound):
        assert (await door.kubectl(*words)).returncode == 0
    # Our own writes are not asked about: so does an object get in that breaks a rule.
    made = await door.kubectl("create", f"--as={OURSELVES}", "-f", "-", stdin=hopeless(name))
    assert made.returncode == 0, made.stderr

    labelled = await door.kubectl("label", "sm", name, "team=blue")
    assert labelled.returncode == 0, labelled.stderr
    unrelated = await door.kubectl("patch", "sm", name, "--type=merge", "-p", '{"spec": {"priority": 60}}')
    assert unrelated.returncode == 0, unrelated.stderr
    worse = await door.kubectl(
        "patch", "sm", name, "--type=merge", "-p", '{"spec": {"schedule": {"timezone": "Mars/Deimos"}}}'
    )
    assert worse.returncode == 1
    assert "spec.schedule.timezone" in worse.stderr
    assert "spec.bootstrapSpec" not in worse.stderr

    deleted = await door.kubectl("delete", "sm", name, "--timeout=20s")
    assert deleted.returncode == 0, deleted.stderr


async def test_deletion_waits_for_the_finalizer_only_and_can_always_be_finished(door: Gate, name: str):
    await door.kubectl("apply", "-f", "-", stdin=named(name))
    deleted = await door.kubectl("delete", "sm", name, "--wait=false")
    assert deleted.returncode == 0
    assert (await stored(door, name))["metadata"]["deletionTimestamp"]
    released = await door.kubectl("patch", "sm", name, "--type=merge", "-p", '{"metadata": {"finalizers": null}}')
    assert released.returncode == 0, released.stderr
    with pytest.raises(NotFound):
        await stored(door, name)


async def test_an_edit_of_the_spec_while_an_object_is_being_deleted_is_judged(door: Gate, name: str):
    await door.kubectl("apply", "-f", "-", stdin=named(name))
    await door.kubectl("delete", "sm", name, "--wait=false")
    patch = ("patch", "sm", name, "--type=merge", "-p")
    worse = await door.kubectl(*patch, '{"spec": {"schedule": {"timezone": "Mars/Deimos"}}}')
    assert (worse.returncode, "spec.schedule.timezone" in worse.stderr) == (1, True), worse.stderr
    killed = await door.kubectl(*patch, '{"spec": {"killSwitch": true}}')
    assert killed.returncode == 0, killed.stderr
    released = await door.kubectl(*patch, '{"metadata": {"finalizers": null, "labels": {"a": "b"}}}')
    assert released.returncode == 0, released.stderr


async def test_a_forged_deletion_timestamp_does_not_bypass_the_webhooks(door: Gate, name: str):
    """Server-side apply keeps the deletionTimestamp that it creates an object with."""
    for make in (hopeless, named):
        given = make(name)
        given["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        applied = await door.kubectl("apply", "--server-side", "-f", "-", stdin=given)
        assert (applied.returncode == 0) is (make is named), applied.stderr
    assert (await stored(door, name))["metadata"]["finalizers"] == [names.FINALIZER]


async def test_the_finalizer_survives_repeated_applies_of_every_kind(door: Gate, name: str):
    ways = [
        ("apply", "-f", "-"),
        ("apply", "--server-side", "--force-conflicts", "-f", "-"),
        ("apply", "--server-side", "--force-conflicts", "--field-manager=argocd-controller", "-f", "-"),
    ]
    for number, way in enumerate(ways):
        manifest = named(f"{name}-{number}")
        for priority in (10, 20, 20):
            manifest["spec"]["priority"] = priority
            applied = await door.kubectl(*way, stdin=manifest)
            assert applied.returncode == 0, applied.stderr
            found = await stored(door, f"{name}-{number}")
            assert found["metadata"]["finalizers"] == [names.FINALIZER], way
            assert found["spec"]["priority"] == priority


async def test_defaults_do_not_make_gitops_fight(door: Gate, name: str):
    manifest = named(name)
    await door.kubectl("apply", "--server-side", "-f", "-", stdin=manifest)
    before = await stored(door, name)
    for _ in range(2):
        applied = await door.kubectl("apply", "--server-side", "-f", "-", stdin=manifest)
        assert applied.returncode == 0
    after = await stored(door, name)
    assert (after["spec"], after["metadata"]["generation"]) == (before["spec"], before["metadata"]["generation"])
    difference = await door.kubectl("diff", "--server-side", "-f", "-", stdin=manifest)
    assert difference.returncode == 0, difference.stdout


CLIENT_SIDE = ("apply", "-f", "-")
SERVER_SIDE = ("apply", "--server-side", "-f", "-")


@pytest.mark.parametrize("way", [CLIENT_SIDE, SERVER_SIDE], ids=["client-side", "server-side"])
async def test_a_schedule_can_be_written_as_cron_and_as_days_and_hours_by_turns(
    door: Gate, name: str, way: tuple[str, ...]
):
    cron, hours = {"cron": "0 9 * * *"}, {"hoursOfDay": ["9-17"]}
    for schedule in (cron, hours, cron, {"daysOfWeek": ["mon"]}):
        applied = await door.kubectl(*way, stdin=named(name, schedule=schedule))
        assert applied.returncode == 0, applied.stderr
        found = (await stored(door, name))["spec"]["schedule"]
        assert found.items() >= schedule.items()
        assert found.get("duration") == ("1m" if schedule is cron else None)
    again = await door.kubectl(*way, stdin=named(name, schedule={"daysOfWeek": ["mon"]}))
    assert again.returncode == 0, again.stderr


async def test_a_duration_without_cron_is_still_refused_if_it_is_written_so(door: Gate, name: str):
    manifest = named(name, schedule={"hoursOfDay": ["9"], "duration": "1m"})
    assert "spec.schedule.duration" in (await door.kubectl(*CLIENT_SIDE, stdin=manifest)).stderr

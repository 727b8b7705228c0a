"""The generated CRD on a real API server: accepted, helpful to kubectl users, kind to objects older than its rules."""

import subprocess
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from crds.defaults import WITHOUT_CLASS
from crds.generate import CRD_FILE, ROOT
from local.binaries import Assets
from local.cluster import LocalCluster
from service.kube.client import Client, PatchKind
from service.kube.errors import Invalid
from service.kube.resource import CUSTOM_RESOURCE_DEFINITIONS, SCHEDULED_MACHINES
from tests.corpus import base
from tests.crds.defaulting import defaulted
from tests.integration.api_door import crd, moved, served, stored, try_create
from tests.waiting import until

RULES = "x-kubernetes-validations"


def kubectl(assets: Assets, cluster: LocalCluster, *arguments: str) -> str:
    # kubectl keeps for hours which kinds a server has; tests that ran before had others here.
    with TemporaryDirectory() as kinds:
        command = [str(assets.kubectl), f"--kubeconfig={cluster.kubeconfig}", f"--cache-dir={kinds}", *arguments]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return done.stdout


async def discovered(assets: Assets, cluster: LocalCluster, *arguments: str) -> str:
    """What kubectl says once discovery and documentation are up to date: both follow a CRD that comes or goes."""

    def said() -> str:
        try:
            return kubectl(assets, cluster, *arguments)
        except AssertionError:
            return ""

    return str(await until(said))


async def create(client: Client, namespace: str, **spec: Any) -> dict[str, Any]:
    manifest = base()
    manifest["spec"] |= spec
    return await client.create(SCHEDULED_MACHINES, moved(manifest, namespace), namespace=namespace)


async def merge(client: Client, machine: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    metadata = machine["metadata"]
    return await client.patch(SCHEDULED_MACHINES, metadata["name"], patch, namespace=metadata["namespace"])


def test_kubectl_applies_it_without_a_warning(assets: Assets, small_cluster: LocalCluster) -> None:
    file = str(ROOT / CRD_FILE)
    kubectl(assets, small_cluster, "apply", "--server-side", "--force-conflicts", "--warnings-as-errors", "-f", file)


async def test_its_schema_is_structural(small_cluster: LocalCluster) -> None:
    async with served(small_cluster) as client:
        found = await client.get(CUSTOM_RESOURCE_DEFINITIONS, crd()["metadata"]["name"])
    conditions = {condition["type"]: condition["status"] for condition in found["status"]["conditions"]}
    assert conditions == {"NamesAccepted": "True", "Established": "True"}


async def test_it_defaults_as_the_webhook_does_but_for_what_depends_on_other_fields(
    small_cluster: LocalCluster, namespace: str
) -> None:
    async with served(small_cluster) as client:
        made = await create(client, namespace)
    by_webhook = defaulted(moved(base(), namespace))
    # What a class may set has no default in the schema, which cannot tell whether there is one.
    assert made["spec"].items() <= by_webhook["spec"].items()
    assert by_webhook["spec"].keys() - made["spec"].keys() == WITHOUT_CLASS.keys()


async def test_null_means_absent(small_cluster: LocalCluster, namespace: str) -> None:
    nothing = dict.fromkeys(("priority", "killIfCommands", "machineTemplate", "nodeTaints", "gracefulShutdownTimeout"))
    async with served(small_cluster) as client:
        made = await create(client, namespace, **nothing)
    assert not any(made["spec"].get(name) for name in nothing)
    assert defaulted(made)["spec"]["priority"] == 50


async def test_a_provider_spec_is_passed_through_unchanged(small_cluster: LocalCluster, namespace: str) -> None:
    payload = {"files": [{"path": "/a", "mode": 0o644}], "deep": {"er": {"est": None}}, "on": True, "text": "x\ty"}
    envelope = base()["spec"]["bootstrapSpec"] | {"spec": payload}
    async with served(small_cluster) as client:
        made = await create(client, namespace, bootstrapSpec=envelope)
    assert made["spec"]["bootstrapSpec"]["spec"] == payload


async def test_a_submitted_status_is_ignored(small_cluster: LocalCluster, namespace: str) -> None:
    manifest = moved(base(), namespace) | {"status": {"phase": "Active"}}
    async with served(small_cluster) as client:
        made = await client.create(SCHEDULED_MACHINES, manifest, namespace=namespace)
    assert "status" not in made


OLDEST = "7y364d"
"""The longest age that kubectl prints."""
USUAL = "business-hours-worker"
LONGEST = "x" * 53
READY = {"type": "Ready", "status": "False", "reason": "WaitingForPreviousMachine", "message": "Waiting."}
STATUS: dict[str, Any] = {
    "phase": "Pending",
    "machinePhase": "Provisioning",
    "conditions": [{**READY, "lastTransitionTime": "2026-03-08T07:00:00Z"}],
    "schedule": "cron 0 9 * * mon for 1h…",
    "nextChange": "closes Fri 18:00",
    "nextActivation": "2026-03-08T07:00:00Z",
    "nodeRef": {"name": "worker-1"},
    "message": "Waiting for the deletion of Machine worker-machine.",
}


async def listed(assets: Assets, cluster: LocalCluster, namespace: str, name: str, *options: str) -> list[str]:
    """The lines of `kubectl get` for one ScheduledMachine with that status."""
    manifest = base() | {"status": STATUS}
    manifest["metadata"] |= {"name": name}
    async with served(cluster) as client:
        await stored(client, manifest, namespace)
    return (await discovered(assets, cluster, "get", "sm", name, "-n", namespace, *options)).splitlines()


async def test_kubectl_get_shows_its_columns(assets: Assets, small_cluster: LocalCluster, namespace: str) -> None:
    header, row = await listed(assets, small_cluster, namespace, USUAL)
    assert header.split() == ["NAME", "PHASE", "READY", "REASON", "SCHEDULE", "NEXT", "AGE"]
    assert row.startswith(f"{USUAL}   Pending   False   WaitingForPreviousMachine   cron 0 9 * * mon for 1h…   closes")


async def test_kubectl_get_fits_120_columns(assets: Assets, small_cluster: LocalCluster, namespace: str) -> None:
    _, row = await listed(assets, small_cluster, namespace, USUAL)
    assert len(row) <= 120


async def test_only_a_long_name_makes_kubectl_get_wider(
    assets: Assets, small_cluster: LocalCluster, namespace: str
) -> None:
    header, row = await listed(assets, small_cluster, namespace, LONGEST)
    beside = len(row.removeprefix(LONGEST)) - len(row.split()[-1]) + len(OLDEST)
    assert header.index("PHASE") == len(LONGEST) + 3
    assert beside <= 120 - 16


async def test_kubectl_get_wide_adds_machine_node_cluster_override_and_message(
    assets: Assets, small_cluster: LocalCluster, namespace: str
) -> None:
    header, row = await listed(assets, small_cluster, namespace, USUAL, "-o", "wide")
    assert header.split()[6:] == ["AGE", "MACHINE", "NODE", "CLUSTER", "OVERRIDE", "MESSAGE"]
    assert "<invalid>" not in row
    assert "Provisioning   worker-1" in row
    assert row.rstrip().endswith(STATUS["message"])


async def test_kubectl_get_cluster_api_lists_scheduledmachines(
    assets: Assets, small_cluster: LocalCluster, namespace: str
) -> None:
    await listed(assets, small_cluster, namespace, USUAL)
    assert USUAL in await discovered(assets, small_cluster, "get", "cluster-api", "-n", namespace)


@pytest.mark.parametrize(
    ("field", "default"),
    [
        ("spec.nodeDrainTimeout", "the class's, else 5m"),
        ("spec.priority", "the class's, else 50"),
        ("spec.schedule.timezone", "UTC"),
    ],
)
async def test_kubectl_explain_shows_the_default(
    assets: Assets, small_cluster: LocalCluster, field: str, default: str
) -> None:
    async with served(small_cluster):
        pass
    explained = await discovered(assets, small_cluster, "explain", f"scheduledmachines.{field}")
    assert f"Default: {default}." in " ".join(explained.split())


@pytest.mark.parametrize("field", ["spec.schedule.hoursOfDay", "spec.nodeTaints.effect", "status.nextCleanup"])
async def test_kubectl_explain_has_something_to_say(assets: Assets, small_cluster: LocalCluster, field: str) -> None:
    async with served(small_cluster):
        pass
    explain = ("explain", f"scheduledmachines.{field}", "--output=plaintext-openapiv2")
    explained = await discovered(assets, small_cluster, *explain)
    assert "<empty>" not in explained


async def test_two_appliers_own_their_taints_side_by_side(small_cluster: LocalCluster, namespace: str) -> None:
    async with served(small_cluster) as client:
        for manager, key in (("one", "a"), ("two", "b")):
            manifest = moved(base(), namespace)
            manifest["spec"]["nodeTaints"] = [{"key": key, "effect": "NoSchedule"}]
            made = await client.patch(
                SCHEDULED_MACHINES,
                "worker",
                manifest,
                kind=PatchKind.APPLY,
                namespace=namespace,
                field_manager=manager,
                force=True,
            )
    assert [taint["key"] for taint in made["spec"]["nodeTaints"]] == ["a", "b"]


async def test_an_object_older_than_the_rules_can_still_be_changed_elsewhere(
    small_cluster: LocalCluster, namespace: str
) -> None:
    both = {"cron": "0 9 * * *", "daysOfWeek": ["mon"]}
    async with served(small_cluster) as client:
        await install(client, without_rules(crd()))
        manifest = moved(base(), namespace)
        manifest["metadata"]["name"] = "w" * 60
        manifest["spec"] |= {"schedule": both, "clusterName": "prod", "nodeTaints": []}
        old = await client.create(SCHEDULED_MACHINES, manifest, namespace=namespace)
        await install(client, crd())

        await merge(client, old, {"metadata": {"finalizers": ["example.com/x"]}})
        changed = await merge(client, old, {"spec": {"schedule": {"enabled": False}, "priority": 60}})
        assert changed["spec"]["schedule"]["enabled"] is False
        await merge(client, old, {"metadata": {"finalizers": []}})
        with pytest.raises(Invalid):
            await merge(client, old, {"spec": {"clusterName": "Not Allowed"}})


async def test_a_broken_field_of_old_blocks_no_other_one(small_cluster: LocalCluster, namespace: str) -> None:
    async with served(small_cluster) as client:
        await install(client, without_rules(crd()))
        old = await create(client, namespace, clusterName="Old_Style", nodeTaints=[TAINT], schedule={"cron": "@daily"})
        await install(client, crd())
        changed = await merge(client, old, {"spec": {"schedule": {"enabled": False}, "killSwitch": True}})
    assert changed["spec"]["killSwitch"] is True


async def test_a_reserved_key_of_old_does_not_keep_out_a_good_one(small_cluster: LocalCluster, namespace: str) -> None:
    async with served(small_cluster) as client:
        await install(client, without_rules(crd()))
        old = await create(client, namespace, machineTemplate={"labels": {"k8s.io/old": "x"}})
        await install(client, crd())
        changed = await merge(client, old, {"spec": {"machineTemplate": {"labels": {"team": "a"}}}})
        assert changed["spec"]["machineTemplate"]["labels"] == {"k8s.io/old": "x", "team": "a"}
        with pytest.raises(Invalid, match="reserved prefix"):
            await merge(client, old, {"spec": {"machineTemplate": {"labels": {"k8s.io/new": "x"}}}})


MALFORMED: dict[str, tuple[dict[str, Any], str]] = {
    "spec.schedule.hoursOfDay[0]": ({"schedule": {"hoursOfDay": ["9-25"]}}, "write an hour from 0 to 23"),
    "spec.schedule.daysOfWeek[1]": ({"schedule": {"daysOfWeek": ["mon", "Fri"]}}, "write mon, tue,"),
    "spec.schedule.cron": ({"schedule": {"cron": "@daily"}}, "write five fields"),
    "spec.schedule.duration": ({"schedule": {"cron": "0 9 * * *", "duration": "8 hours"}}, "such as 90s, 5m or 1h30m"),
    "spec.schedule.timezone": ({"schedule": {"hoursOfDay": ["9"], "timezone": "CET summer"}}, "IANA time zone"),
    "spec.nodeDrainTimeout": ({"nodeDrainTimeout": "25h"}, "at most 24h"),
    "spec.clusterName": ({"clusterName": "Prod"}, "lower-case letters"),
    "spec.nodeTaints[0].key": ({"nodeTaints": [{"key": "a b", "effect": "NoSchedule"}]}, "letters, digits"),
    "spec.nodeTaints[0].value": ({"nodeTaints": [{"key": "a", "value": "b c", "effect": "NoSchedule"}]}, "letters, "),
    "spec.machineTemplate.labels[a]": ({"machineTemplate": {"labels": {"a": "b c"}}}, "must be empty or letters"),
    "spec.machineTemplate.version": ({"machineTemplate": {"version": "v1.34"}}, "a Kubernetes version such as v1.34.2"),
    "spec.machineTemplate.failureDomain": ({"machineTemplate": {"failureDomain": "a b"}}, "1 to 256 letters, digits"),
}


@pytest.mark.parametrize("field", MALFORMED)
async def test_a_refusal_names_the_field_and_says_in_words_what_is_allowed(
    small_cluster: LocalCluster, namespace: str, field: str
) -> None:
    spec, words = MALFORMED[field]
    async with served(small_cluster) as client:
        with pytest.raises(Invalid) as refused:
            await create(client, namespace, **spec)
    (cause,) = refused.value.causes
    assert cause.field.replace(".labels.a", ".labels[a]") == field
    assert words in cause.message


async def test_the_crd_alone_names_all_malformed_fields_at_once(small_cluster: LocalCluster, namespace: str) -> None:
    schedule = {"daysOfWeek": ["mo"], "hoursOfDay": ["9-25"], "timezone": "?"}
    async with served(small_cluster) as client:
        with pytest.raises(Invalid) as refused:
            await create(client, namespace, schedule=schedule, clusterName="Prod", nodeDrainTimeout="soon")
    assert {cause.field for cause in refused.value.causes} == {
        "spec.schedule.daysOfWeek[0]",
        "spec.schedule.hoursOfDay[0]",
        "spec.schedule.timezone",
        "spec.clusterName",
        "spec.nodeDrainTimeout",
    }


TAINT = {"key": "kubernetes.io/x", "effect": "NoSchedule"}


async def install(client: Client, definition: dict[str, Any]) -> None:
    """Replace the CRD and wait until objects are judged by it: the server takes a new schema up a little later."""
    name = definition["metadata"]["name"]
    await client.patch(CUSTOM_RESOURCE_DEFINITIONS, name, definition, kind=PatchKind.APPLY, force=True)
    strict = definition == crd()
    await until(lambda: enforces_rules(client, expected=strict))


async def enforces_rules(client: Client, *, expected: bool) -> bool:
    probe = base()
    probe["spec"]["clusterName"] = "Not Allowed"
    try:
        await try_create(client, probe, "default")
    except Invalid:
        return expected
    return not expected


def without_rules(schema: Any) -> Any:
    """The CRD as it may have been before there were rules."""
    if isinstance(schema, list):
        return [without_rules(each) for each in schema]
    if isinstance(schema, dict):
        dropped = {RULES, "pattern", "maxLength", "minLength"}
        return {key: without_rules(value) for key, value in schema.items() if key not in dropped}
    return schema

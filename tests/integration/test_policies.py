"""The generated admission policies on a real API server without webhooks, as in a cluster that does not want them."""

import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from crds import names
from crds.bounds import DEPTH_MAX
from crds.generate import POLICIES as FOLDER
from crds.generate import ROOT
from crds.rules import check
from local.binaries import Assets
from local.cluster import LocalCluster
from service.kube.client import Client
from service.kube.errors import Invalid
from service.kube.resource import SCHEDULED_MACHINES
from tests.corpus import base, load
from tests.crds.machines import nested
from tests.integration.api_door import admits, moved, served
from tests.integration.policy_door import POLICIES, applied, documents, in_force, refusal, without_cel
from tests.integration.test_corpus_apiserver import share_by_rule, webhooks_everywhere
from tests.waiting import until

Raw = dict[str, Any]

FILES = sorted(path.relative_to(ROOT) for path in (ROOT / FOLDER).glob("*.yaml"))
ENOUGH = 0.9
UNUSUAL = "the schedule opens at some time"
"""That a cron expression written in an odd way never fires takes a calendar to see."""


def elsewhere() -> Raw:
    """What no CRD can refuse."""
    manifest = base()
    manifest["spec"]["bootstrapSpec"]["namespace"] = "kube-system"
    return manifest


def lost_in_time() -> Raw:
    manifest = base()
    manifest["spec"]["schedule"]["timezone"] = "Europe/Atlantis"
    return manifest


async def ready(client: Client, namespace: str) -> None:
    for refused in (elsewhere(), lost_in_time()):
        await in_force(client, refused, namespace)


@pytest.fixture
async def client(small_cluster: LocalCluster) -> AsyncIterator[Client]:
    async with served(small_cluster) as found:
        yield found


async def test_crd_and_policies_together_stop_nine_in_ten_invalid_manifests_and_no_valid_one(
    client: Client, namespace: str
) -> None:
    cases = load()
    assert not await webhooks_everywhere(client), "the policies are to be tested without webhooks"
    async with applied(client, documents(*FILES), namespace):
        await ready(client, namespace)
        admitted = {case.id for case in cases if await admits(client, case, namespace)}

    invalid = [case for case in cases if not case.valid]
    stopped = [case for case in invalid if case.id not in admitted]
    sys.stdout.write(share_by_rule(invalid, stopped))
    assert not [case.id for case in cases if case.valid and case.id not in admitted]
    assert len(stopped) >= ENOUGH * len(invalid)
    assert {case.id for case in invalid if case.id in admitted} == {
        case.id for case in invalid if case.webhook_only and case.rule == UNUSUAL
    }


async def test_with_a_crd_that_has_no_rules_at_all_the_policies_stop_as_much(client: Client, namespace: str) -> None:
    cases = load()
    async with without_cel(client), applied(client, documents(*FILES), namespace):
        await ready(client, namespace)
        admitted = {case.id for case in cases if await admits(client, case, namespace)}
    assert not [case.id for case in cases if case.valid and case.id not in admitted]
    assert {case.rule for case in cases if not case.valid and case.id in admitted} <= {UNUSUAL}


async def test_an_object_older_than_the_rules_can_be_edited_disabled_finished_and_deleted(
    client: Client, namespace: str
) -> None:
    old = Stored(client, namespace)
    async with without_cel(client):
        await old.create(_breaks_everything())
    async with applied(client, documents(*FILES), namespace):
        await ready(client, namespace)
        await old.patch({"metadata": {"finalizers": [names.FINALIZER], "labels": {"team": "a"}}})
        await old.patch({"spec": {"priority": 7}})
        await old.patch({"spec": {"schedule": {"enabled": False}}})
        await old.has_a_machine()
        await client.delete(SCHEDULED_MACHINES, old.name, namespace=namespace)
        assert "spec.schedule.timezone" in await old.refused({"spec": {"schedule": {"timezone": "Europe/Nowhere"}}})
        await old.patch({"spec": {"killSwitch": True}})
        await old.patch({"metadata": {"finalizers": None}})
        assert not await client.list(SCHEDULED_MACHINES, namespace=namespace)


FURTHER_VIOLATIONS = [
    ({"schedule": {"timezone": "Europe/Nowhere"}}, "spec.schedule.timezone: is not the name of a time zone"),
    ({"schedule": {"duration": "169h"}}, "spec.schedule.duration: must be a duration such as"),
    ({"schedule": {"cron": "0 9 * * *"}}, "spec.schedule.cron: cannot be combined with daysOfWeek or hoursOfDay"),
    ({"bootstrapSpec": {"namespace": "kube-public"}}, "spec.bootstrapSpec.namespace: must be the Scheduled"),
    ({"bootstrapSpec": {"kind": "OtherTemplate"}}, "spec.bootstrapSpec.kind: kind is not allowed here"),
    ({"infrastructureSpec": {"apiVersion": "example.org/v1"}}, "spec.infrastructureSpec.apiVersion: group is not"),
    ({"machineTemplate": {"labels": {"k8s.io/b": "x"}}}, "spec.machineTemplate.labels: has a reserved prefix"),
    ({"machineTemplate": {"annotations": {"K8s.io/b": "x"}}}, "spec.machineTemplate.annotations: has a reserved"),
    ({"machineTemplate": {"version": "v2;id"}}, "spec.machineTemplate.version: must be a Kubernetes version"),
    ({"machineTemplate": {"failureDomain": "b c"}}, "spec.machineTemplate.failureDomain: must be 1 to 256 letters"),
    ({"nodeTaints": [{"key": "kubernetes.io/b", "effect": "NoSchedule"}]}, "spec.nodeTaints[].key: has a reserved"),
    ({"clusterName": "another"}, "spec.clusterName: cannot change while a Machine exists"),
]


async def test_an_update_that_breaks_a_further_rule_is_refused(client: Client, namespace: str) -> None:
    old = Stored(client, namespace)
    async with without_cel(client):
        await old.create(_breaks_everything())
        await old.has_a_machine()
        async with applied(client, documents(*FILES), namespace):
            await ready(client, namespace)
            fine = {"labels": {"example.com/fine": "yes"}, "annotations": {"example.com/fine": "yes"}}
            assert await old.refused({"spec": {"machineTemplate": fine}}) == ""
            refusals = [(await old.refused({"spec": change}), message) for change, message in FURTHER_VIOLATIONS]
    assert all(message in refused for refused, message in refusals), refusals


def _breaks_everything() -> Raw:
    manifest = base()
    spec = manifest["spec"]
    spec["schedule"] |= {"timezone": "Europe/Atlantis", "duration": "200h"}
    spec["bootstrapSpec"] |= {"namespace": "kube-system", "kind": "MyTemplate"}
    spec["infrastructureSpec"] |= {"apiVersion": "example.com/v1"}
    spec["machineTemplate"] = {"labels": {"k8s.io/a": "x"}, "annotations": {"kubernetes.io/a": "x"}}
    spec["machineTemplate"] |= {"version": "v1;id", "failureDomain": "a b"}
    spec["nodeTaints"] = [{"key": "kubernetes.io/a", "effect": "NoSchedule"}]
    assert len(check(manifest).violations) == 11
    return manifest


class Stored:
    """An object that is really there."""

    def __init__(self, client: Client, namespace: str) -> None:
        self.client, self.namespace, self.name = client, namespace, "older-than-the-rules"

    async def create(self, manifest: Raw) -> None:
        manifest["metadata"]["name"] = self.name
        await self.client.create(SCHEDULED_MACHINES, moved(manifest, self.namespace), namespace=self.namespace)

    async def patch(self, body: Raw, **options: Any) -> Raw:
        return await self.client.patch(SCHEDULED_MACHINES, self.name, body, namespace=self.namespace, **options)

    async def has_a_machine(self) -> None:
        """As the operator reports it."""
        reference = {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "name": "m", "uid": "u"}
        status = {"phase": "Active", "machineRef": {**reference, "namespace": self.namespace}}
        await self.patch({"status": status}, subresource="status")

    async def refused(self, body: Raw) -> str:
        """What is said against a change."""
        try:
            await self.patch(body, dry_run=True)
        except Invalid as error:
            return error.message
        return ""


async def test_a_refusal_names_the_field_and_the_namespace(client: Client, namespace: str) -> None:
    async with applied(client, documents(*FILES), namespace):
        await ready(client, namespace)
        message = await refusal(client, elsewhere(), namespace)
    assert (
        f"spec.bootstrapSpec.namespace: must be the ScheduledMachine's own namespace, {namespace}, or left out"
        in message
    )


async def test_too_many_annotations_in_bytes_are_refused(client: Client, namespace: str) -> None:
    manifest = base()
    manifest["spec"]["machineTemplate"] = {"annotations": {f"example.com/a{n}": "ü" * 3000 for n in range(44)}}
    assert [each.field for each in check(manifest).violations] == ["spec.machineTemplate.annotations"]
    async with applied(client, documents(*FILES), namespace):
        await ready(client, namespace)
        assert "must be at most 262144 bytes together" in await refusal(client, manifest, namespace)


async def test_provider_specs_nested_too_deeply_are_refused(client: Client, namespace: str) -> None:
    """The CRD knows nothing of these fields; the API server stores ten thousand levels of them."""
    manifest = base()
    async with applied(client, documents(*FILES), namespace):
        await ready(client, namespace)
        for part in ("bootstrapSpec", "infrastructureSpec"):
            manifest["spec"][part]["spec"] = {"a": [nested(DEPTH_MAX - 1)]}
            said = await until(lambda: refusal(client, manifest, namespace))
            assert f"spec.{part}.spec: must not be nested deeper than {DEPTH_MAX} levels" in said
            manifest["spec"][part]["spec"] = {"a": [nested(DEPTH_MAX - 2)] * 10, "b": [[], {}, None, 1, "[" * 200]}
            assert await refusal(client, manifest, namespace) == ""


async def test_an_object_stored_too_deep_can_be_edited_elsewhere_and_repaired(client: Client, namespace: str) -> None:
    old, manifest = Stored(client, namespace), base()
    manifest["spec"]["bootstrapSpec"]["spec"] = nested(2 * DEPTH_MAX)
    await old.create(manifest)
    async with applied(client, documents(*FILES), namespace):
        await ready(client, namespace)
        await until(lambda: old.refused({"spec": {"bootstrapSpec": {"spec": {"b": 1}}}}))
        await old.patch({"spec": {"priority": 7}})
        await old.patch({"spec": {"bootstrapSpec": {"spec": {"more": None}}}})


async def test_the_api_server_finds_nothing_odd_in_the_expressions(client: Client, namespace: str) -> None:
    async with applied(client, documents(*FILES), namespace):
        checked = await until(lambda: _type_checked(client, namespace))
    assert len(checked) == len(FILES)
    assert [each["status"]["typeChecking"].get("expressionWarnings", []) for each in checked] == [[]] * len(FILES)


async def _type_checked(client: Client, namespace: str) -> list[Raw] | None:
    ours = [each for each in await client.list(POLICIES) if each["metadata"]["name"].endswith(namespace)]
    return ours if all((each.get("status") or {}).get("typeChecking") is not None for each in ours) else None


PAST_MIDNIGHT = [
    {"daysOfWeek": ["fri"], "hoursOfDay": ["22-6"]},
    {"daysOfWeek": ["mon - wed , sat"], "hoursOfDay": ["9", "22 - 6"]},
    {"daysOfWeek": ["sat-thu"], "hoursOfDay": ["0-3,22-6"]},
]
UNSUSPICIOUS: list[Raw] = [
    {"daysOfWeek": ["mon-thu", "fri,sat-sun"], "hoursOfDay": ["22-6"]},
    {"daysOfWeek": ["sat-fri"], "hoursOfDay": ["22-6"]},
    {"hoursOfDay": ["22-6"]},
    {"daysOfWeek": ["fri"], "hoursOfDay": ["09-17,22-23"]},
    {"daysOfWeek": ["fri"]},
    {"cron": "0 9 * * *", "duration": "8h"},
]


async def test_the_advice_is_that_of_the_rulebook(
    client: Client, assets: Assets, small_cluster: LocalCluster, namespace: str, tmp_path: Path
) -> None:
    def warnings(*schedules: Raw, **spec: Any) -> str:
        made = [moved(base(), namespace) for _ in schedules]
        for number, (manifest, schedule) in enumerate(zip(made, schedules, strict=True)):
            manifest["metadata"]["name"] = f"worker-{number}"
            manifest["spec"] |= {"schedule": schedule, **spec}
        return _said_by_kubectl(assets, small_cluster, tmp_path, made)

    async with applied(client, documents(*FILES), namespace):
        await ready(client, namespace)
        for schedule in PAST_MIDNIGHT:
            assert "spec.schedule: hours that run past midnight" in await until(lambda s=schedule: warnings(s))
            assert _advice(schedule), schedule
        assert warnings(*UNSUSPICIOUS) == ""
        assert not [schedule for schedule in UNSUSPICIOUS if _advice(schedule)]
        assert "spec.killIfCommands: a reclaim sets" in warnings(UNSUSPICIOUS[0], killIfCommands=["steam"])
        kubeadm = {**base()["spec"]["bootstrapSpec"], "kind": "KubeadmConfig"}
        for template in (None, {"labels": {"team": "a"}}):
            said = warnings(UNSUSPICIOUS[0], bootstrapSpec=kubeadm, machineTemplate=template)
            assert "spec.machineTemplate.version: is not set" in said
        assert warnings(UNSUSPICIOUS[0], bootstrapSpec=kubeadm, machineTemplate={"version": "v1.34.2"}) == ""


def _advice(schedule: Raw) -> bool:
    """Whether the webhook would say the same."""
    manifest = base()
    manifest["spec"]["schedule"] = schedule
    return any("past midnight" in warning for warning in check(manifest).warnings)


def _said_by_kubectl(assets: Assets, cluster: LocalCluster, folder: Path, manifests: list[Raw]) -> str:
    file = folder / "machines.yaml"
    file.write_text(yaml.safe_dump_all(manifests), encoding="utf-8")
    words = [assets.kubectl, f"--kubeconfig={cluster.kubeconfig}", "create", "--dry-run=server", "-f", file]
    done = subprocess.run([str(word) for word in words], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stderr

"""The tenancy policy on a real API server: the worked example of its page, and that a mistake in it opens no door."""

import copy
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
import yaml

from crds.generate import ROOT
from local.cluster import LocalCluster
from service.kube.client import Client, PatchKind
from service.kube.errors import Denied
from service.kube.resource import CONFIG_MAPS, NAMESPACES, SCHEDULED_MACHINES
from tests.corpus import base
from tests.crds.classes import user
from tests.integration.api_door import crd, moved, served
from tests.integration.policy_door import KINDS, POLICIES, in_force, install, refusal
from tests.waiting import until

Raw = dict[str, Any]

FOLDER = ROOT / "charts" / "5spot" / "files" / "tenancy"
PAGE = (ROOT / "docs" / "multi-tenancy.md").read_text(encoding="utf-8")
EXAMPLE = PAGE.split("## A worked example")[1].split("\n## ")[0]
BLOCKS = re.findall(r"```(yaml|text)\n(.*?)```", EXAMPLE, re.DOTALL)
SYSTEM = "5spot-system"
LABEL = {"5spot.finos.org/tenancy": "restricted"}
APPLIED = {**KINDS, "Namespace": NAMESPACES}


def shipped(name: str) -> Raw:
    document: Raw = yaml.safe_load((FOLDER / name).read_text(encoding="utf-8"))
    return document


async def apply(client: Client, manifest: Raw) -> None:
    metadata = manifest["metadata"]
    options: Raw = {"kind": PatchKind.APPLY, "namespace": metadata.get("namespace"), "force": True}
    await client.patch(APPLIED[manifest["kind"]], metadata["name"], manifest, **options)


@pytest.fixture
async def client(small_cluster: LocalCluster) -> AsyncIterator[Client]:
    """A cluster with the policy, for as long as it lives: it touches only namespaces that a binding names.

    An API server that has seen the last binding with a ConfigMap go never looks at ConfigMaps again for a new one.
    """
    async with served(small_cluster) as found:
        await apply(found, {**NAMESPACES.envelope(), "metadata": {"name": SYSTEM}})
        for name in ("policy.yaml", "configmap.yaml", "binding.yaml"):
            await apply(found, shipped(name))
        yield found


class Tenant:
    """A namespace under the rules that are shipped, or under others."""

    def __init__(self, client: Client, namespace: str) -> None:
        self.client, self.namespace = client, namespace

    async def restrict(self) -> None:
        await self.client.patch(NAMESPACES, self.namespace, {"metadata": {"labels": LABEL}})
        await until(lambda: _says(self, machine(infrastructure={"address": "198.51.100.1"}), "must be an IP address"))

    async def settings(self, **data: str) -> None:
        """Other rules; it takes a moment until they are in force."""
        await apply(self.client, {**shipped("configmap.yaml"), "data": data})

    async def refused(self, manifest: Raw) -> str:
        return await refusal(self.client, manifest, self.namespace)


@pytest.fixture
async def tenant(client: Client, namespace: str) -> Tenant:
    found = Tenant(client, namespace)
    await found.restrict()
    return found


def machine(*, bootstrap: Raw | None = None, infrastructure: Raw | None = None) -> Raw:
    manifest = base()
    manifest["spec"]["bootstrapSpec"]["spec"] |= bootstrap or {}
    manifest["spec"]["infrastructureSpec"]["spec"] |= infrastructure or {}
    return manifest


async def test_the_worked_example_does_what_its_page_says(client: Client) -> None:
    (_, rules), (_, allowed), *changes = BLOCKS
    for each in yaml.safe_load_all(rules):
        await apply(client, each)
    good = yaml.safe_load(allowed)
    cases = [(merged(good, yaml.safe_load(change)), said) for (_, change), (_, said) in pairs(changes)]
    assert len(cases) == 5
    await in_force(client, cases[0][0], "team-a")

    assert await refusal(client, good, "team-a") == ""
    for manifest, said in cases:
        assert " ".join(said.split()) in await refusal(client, manifest, "team-a")
    await client.delete(NAMESPACES, "team-a")


def pairs(blocks: list[Any]) -> list[tuple[Any, Any]]:
    return list(zip(blocks[::2], blocks[1::2], strict=True))


def merged(manifest: Raw, change: Raw) -> Raw:
    """A manifest with a change to its spec, as `kubectl patch` would make it."""
    made = copy.deepcopy(manifest)
    for envelope, parts in change.items():
        payload = {**made["spec"][envelope]["spec"], **parts.get("spec", {})}
        made["spec"][envelope] |= {**parts, "spec": payload}
    return made


async def test_the_rules_as_shipped_let_an_ordinary_machine_in_and_nothing_that_runs_commands(tenant: Tenant) -> None:
    assert await tenant.refused(base()) == ""
    assert await tenant.refused(machine(infrastructure={"address": "2001:db8::7"})) == ""
    for field in ("cloudInit", "files", "preStartCommands", "preK0sCommands", "provisioner", "downloadURL", "args"):
        assert f"bootstrapSpec.{field}" in await tenant.refused(machine(bootstrap={field: []}))
    for field in ("pool", "provisionJob", "cleanUpCommands", "providerID", "workingDir"):
        assert f"infrastructureSpec.{field}" in await tenant.refused(machine(infrastructure={field: "x"}))


SHELL = (
    *("v1; reboot", "v1 x", "v1\n", "v1\treboot", "$(id)", "`id`", "v1|sh", "v1&", "v1'", 'v1"', "v1>a", "v1\\", "-v"),
    *("v1(x)", "v1{a,b}", "v1*", "~root", "v1#", "v1!"),
)
ODD = (
    *({"version": {"a": "v1;x"}}, {"version": {"a;b": "v1"}}, {"version": ["v1", "$x"]}, {"version": [[{"a": "x y"}]]}),
    *({"version": [[[["v1"]]]]}, {"version": True}, {"version": {f"k{n}": "v1" for n in range(101)}}),
    *({"preInstalledK0s": "yes"}, {"useSystemHostname": "true;id"}, {"useSystemHostname": 1}),
)


async def test_the_rules_as_shipped_bound_values_that_would_reach_a_shell(tenant: Tenant) -> None:
    bad = [machine(bootstrap={"version": text}) for text in SHELL]
    bad += [machine(infrastructure={"user": text}) for text in (*SHELL, "a b", "a;b", "a$b", "-oProxyCommand=x", 7)]
    bad += [machine(infrastructure={"port": text}) for text in ("22;id", "22 ", -1, 2.5, [22, "x"])]
    bad += [machine(infrastructure={"sshKeyRef": {"name": text}}) for text in (*SHELL, "../a")]
    bad += [machine(bootstrap=payload) for payload in ODD]
    said = [await tenant.refused(each) for each in bad]
    wrong = [each["spec"] for each, words in zip(bad, said, strict=True) if "values not allowed in this" not in words]
    assert not wrong
    fine = machine(infrastructure={"port": "22", "sshKeyRef": {"name": "rack-key"}, "useSudo": True})
    fine["spec"]["bootstrapSpec"]["spec"] |= {"version": None, "useSystemHostname": False}
    assert await tenant.refused(fine) == ""


async def test_a_spec_of_countless_fields_is_refused_at_once(tenant: Tenant) -> None:
    assert "more than 100 fields" in await tenant.refused(machine(bootstrap={f"f{n}": 1 for n in range(5000)}))


async def test_what_the_machine_itself_gets_is_bounded_as_soon_as_the_crd_has_it(tenant: Tenant) -> None:
    definition = crd()
    spec = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    more = {"version": {"type": "string"}, "failureDomain": {"type": "string"}}
    spec["machineTemplate"]["properties"] |= more
    await install(tenant.client, definition)
    for field in more:
        manifest = base()
        manifest["spec"]["machineTemplate"] = {field: "1$(id)"}
        await until(lambda manifest=manifest, field=field: _says(tenant, manifest, f"machineTemplate.{field}"))
        manifest["spec"]["machineTemplate"] = {field: "1.30.0"}
        assert await tenant.refused(manifest) == ""
    await install(tenant.client, crd())


OUTSIDE = (
    *("198.51.100.1", "example.com", "192.0.2.10.", "192.0.2.010", "::ffff:192.0.2.10", "192.0.2.10/24", " 192.0.2.10"),
    *("3221225994", 3221225994, None, "", ["192.0.2.10"], {"ip": "192.0.2.10"}),
)


async def test_an_address_that_is_not_plainly_inside_is_refused(tenant: Tenant) -> None:
    refusals = {str(each): await tenant.refused(machine(infrastructure={"address": each})) for each in OUTSIDE}
    assert not [address for address, said in refusals.items() if "an address must be an IP address" not in said]


async def test_a_namespace_without_the_label_is_not_touched(client: Client, namespace: str) -> None:
    assert await refusal(client, machine(bootstrap={"cloudInit": "x"}), namespace) == ""


async def test_a_stored_object_can_be_edited_but_for_what_providers_get(client: Client, namespace: str) -> None:
    name = "older-than-the-rules"
    stored = moved(machine(bootstrap={"cloudInit": "x"}), namespace)
    stored["metadata"]["name"] = name
    await client.create(SCHEDULED_MACHINES, stored, namespace=namespace)
    await Tenant(client, namespace).restrict()

    async def patch(body: Raw, **options: Any) -> None:
        await client.patch(SCHEDULED_MACHINES, name, body, namespace=namespace, **options)

    await patch({"spec": {"priority": 9, "schedule": {"enabled": False}}, "metadata": {"finalizers": ["a.example/b"]}})
    await patch({"status": {"phase": "Active"}}, subresource="status")
    with pytest.raises(Denied):
        await patch({"spec": {"infrastructureSpec": {"spec": {"address": "192.0.2.11"}}}})
    await patch({"spec": {"bootstrapSpec": {"spec": {"cloudInit": None}}}})
    await client.delete(SCHEDULED_MACHINES, name, namespace=namespace)
    with pytest.raises(Denied):
        await patch({"spec": {"bootstrapSpec": {"spec": {"cloudInit": "y"}}}})
    await patch({"metadata": {"finalizers": None}})


MISTAKES = (
    ({"allowedAdresses": "192.0.2.0/24"}, "has an unknown setting"),
    ({"allowedAddresses": "192.0.2.0/24 192.0.2.300/24"}, "has address ranges that are none: 192.0.2.300/24"),
    ({"fieldPatterns": "*=x\nversion=v1"}, "has a pattern that is none"),
    ({"fieldPatterns": "*"}, "has a pattern that is none"),
    ({"fieldPatterns": "bootstrapSpec.version=(v"}, "error parsing regexp"),
    ({"forbiddenFields": "cloudInit"}, "names a field wrongly"),
    ({"forbiddenFields": "bootstrap.cloudInit"}, "names a field wrongly"),
    ({"addressFields": "infrastructureSpec.a.b.c"}, "names a field wrongly"),
)


async def test_a_mistake_in_the_tenancy_settings_refuses_everything(tenant: Tenant) -> None:
    for settings, says in MISTAKES:
        await tenant.settings(**settings)
        await until(lambda says=says: _says(tenant, base(), says))


async def _says(tenant: Tenant, manifest: Raw, text: str) -> bool:
    return text in await tenant.refused(manifest)


async def test_without_its_config_map_the_tenancy_policy_refuses_everything(tenant: Tenant) -> None:
    await tenant.client.delete(CONFIG_MAPS, "5spot-tenancy", namespace=SYSTEM)
    await until(lambda: tenant.refused(base()))


async def test_fields_can_be_forbidden_at_any_of_three_depths_and_addresses_found_at_two(tenant: Tenant) -> None:
    await tenant.settings(
        forbiddenFields="bootstrapSpec.cloudInit, bootstrapSpec.provisioner.customUserDataRef bootstrapSpec.a.b.c",
        addressFields="infrastructureSpec.address infrastructureSpec.network.ip",
        allowedAddresses="192.0.2.0/24",
    )
    await until(lambda: _says(tenant, machine(bootstrap={"a": {"b": {"c": 1}}}), "bootstrapSpec.a.b.c"))
    assert "bootstrapSpec.cloudInit" in await tenant.refused(machine(bootstrap={"cloudInit": None}))
    found = await tenant.refused(machine(bootstrap={"provisioner": {"type": "x", "customUserDataRef": {}}}))
    assert "not allowed in this namespace: bootstrapSpec.provisioner.customUserDataRef (" in found
    assert await tenant.refused(machine(infrastructure={"network": {"ip": "198.51.100.1"}}))
    harmless = {"provisioner": {"type": "x"}, "a": {"b": "c"}, "files": [{"cloudInit": 1}], "other": "cloudInit"}
    assert await tenant.refused(machine(bootstrap=harmless, infrastructure={"network": ["ip"]})) == ""


async def test_the_api_server_finds_nothing_odd_in_the_expressions(client: Client) -> None:
    checked = await until(lambda: _type_checked(client))
    assert checked["status"]["typeChecking"].get("expressionWarnings", []) == []


async def _type_checked(client: Client) -> Raw | None:
    found = await client.get(POLICIES, "5spot-tenancy")
    return found if (found.get("status") or {}).get("typeChecking") is not None else None


async def test_a_machine_of_a_class_is_judged_by_its_own_fields_only(tenant: Tenant) -> None:
    assert await tenant.refused(user({"address": "198.51.100.1"})) == ""
    odd = user({}, machineTemplate={"failureDomain": "a:b"})
    assert "machineTemplate.failureDomain" in await tenant.refused(odd)

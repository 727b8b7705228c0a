"""Two tenants with tokens of their own, and the platform team: who may use which class, through the real webhooks."""

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio

from crds import names
from crds.classschema import class_definition
from local import crds
from local.binaries import Assets
from local.cluster import LocalCluster
from service.kube.client import Client, PatchKind
from service.kube.credentials import Token
from service.kube.errors import Forbidden, Invalid, KubeError, NotFound
from service.kube.resource import NAMESPACES, SCHEDULED_MACHINE_CLASSES, SCHEDULED_MACHINES, SERVICE_ACCOUNTS, Resource
from tests.charts.helm import Helm, of_kind
from tests.corpus import machine_class
from tests.crds.classes import user
from tests.integration.gate import OURSELVES, Gate, gate
from tests.waiting import until
from tests.webhooks.reviews import machine
from webhooks.configuration import Registration, manifests

pytestmark = pytest.mark.asyncio(loop_scope="module")

Raw = dict[str, Any]
RBAC = "rbac.authorization.k8s.io"
CLUSTER_ROLES = Resource(RBAC, "v1", "clusterroles", "ClusterRole", namespaced=False)
CLUSTER_BINDINGS = Resource(RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False)
BINDINGS = Resource(RBAC, "v1", "rolebindings", "RoleBinding")
HOSTILE = ["10.1.2.7; id", "$(params.port)", "10.1.2.7\nuser: root", "`id`", '"', "$(id)", "10.1.2.7 ", "x" * 70_000]


@dataclass
class Tenant:
    """A namespace, and a client that may write ScheduledMachines there and read the one class, by a token."""

    client: Client
    namespace: str
    of: str

    async def asks_for(self, parameters: Raw, of: str | None = None, name: str = "desk-1") -> Raw:
        """Has the API server judge a machine, without storing it."""
        body = user(parameters, of=of or self.of)
        body["metadata"] = {"name": name, "namespace": self.namespace}
        return await self.client.create(SCHEDULED_MACHINES, body, namespace=self.namespace, dry_run=True)

    async def refused(self, parameters: Raw, of: str | None = None) -> str:
        try:
            await self.asks_for(parameters, of)
        except Invalid as error:
            return error.message
        return ""


def role(name: str, resource: str, *verbs: str, only: str | None = None) -> Raw:
    rule: Raw = {"apiGroups": [names.GROUP], "resources": [resource], "verbs": list(verbs)}
    if only is not None:
        rule["resourceNames"] = [only]
    return {**CLUSTER_ROLES.envelope(), "metadata": {"name": name}, "rules": [rule]}


def binding(resource: Resource, name: str, to: str, account: Raw) -> Raw:
    return {
        **resource.envelope(),
        "metadata": {"name": name},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": to},
        "subjects": [account],
    }


@asynccontextmanager
async def account(admin: Client, namespace: str, everywhere: Raw, here: Raw | None = None) -> AsyncIterator[Client]:
    """A client with the token of a new account, a role in the whole cluster and, for tenants, one in its namespace."""
    about: Raw = {**SERVICE_ACCOUNTS.envelope(), "metadata": {"name": "ci"}}
    await admin.create(SERVICE_ACCOUNTS, about, namespace=namespace)
    subject = {"kind": "ServiceAccount", "name": "ci", "namespace": namespace}
    bound = [(CLUSTER_BINDINGS, f"{namespace}-everywhere", everywhere)]
    bound += [(BINDINGS, f"{namespace}-here", here)] if here is not None else []
    for kind, name, body in bound:
        await admin.create(CLUSTER_ROLES, {**body, "metadata": {"name": name}})
        within = namespace if kind is BINDINGS else None
        await admin.create(kind, binding(kind, name, name, subject), namespace=within)
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    answer = await admin.create_subresource(SERVICE_ACCOUNTS, "ci", "token", asked, namespace=namespace)
    async with Client(admin.transport.endpoint, Token(answer["status"]["token"])) as client:
        yield client
    for _, name, _ in bound:
        await admin.delete(CLUSTER_ROLES, name)
    await admin.delete(CLUSTER_BINDINGS, f"{namespace}-everywhere")


@asynccontextmanager
async def tenant(admin: Client, team: str, of: str, reader: Raw) -> AsyncIterator[Tenant]:
    namespace = f"{team}-{secrets.token_hex(4)}"
    labels = {"team": team, names.LABEL_TENANCY: names.TENANCY_CLASSES}
    await admin.create(NAMESPACES, {**NAMESPACES.envelope(), "metadata": {"name": namespace, "labels": labels}})
    writer = role("writer", names.PLURAL, "create", "get", "update", "patch", "delete")
    async with account(admin, namespace, reader, writer) as client:
        yield Tenant(client, namespace, of)
    await admin.delete(NAMESPACES, namespace)


async def register(made: Gate, *namespaces: str) -> None:
    """The webhooks for both tenants, and for classes."""
    (_, mutating), (_, validating) = made.configurations
    registration = Registration(
        at=f"https://127.0.0.1:{await made.replicas[0].port('webhooks')}",
        namespaces=[made.namespace, *namespaces],
        service_account=OURSELVES,
        classes=True,
        mutating_name=mutating,
        validating_name=validating,
    )
    for (resource, name), manifest in zip(made.configurations, manifests(registration), strict=True):
        await made.client.patch(resource, name, manifest, kind=PatchKind.APPLY, field_manager="test", force=True)
    await until(made.published)


def desk(team: str, name: str) -> Raw:
    parameters = [
        {"name": "address", "schema": {"type": "string", "pattern": "^[0-9a-f.:]+$", "maxLength": 39}},
        {"name": "port", "schema": {"type": "integer", "minimum": 1, "maximum": 65535}, "default": 22},
    ]
    body = machine_class(namespaceSelector={"matchLabels": {"team": team}}, parameters=parameters)
    return {**body, "metadata": {"name": name}}


@dataclass
class Site:
    """An administrator, the platform team with the chart's role, and two tenants with a class each.

    The blue one has the chart's role for readers, the red one a role that names its class.
    """

    admin: Client
    platform: Client
    red: Tenant
    blue: Tenant


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site(small_cluster: LocalCluster, assets: Assets, helm: Helm) -> AsyncIterator[Site]:
    roles = {each["metadata"]["name"]: each for each in of_kind(helm.template(), "ClusterRole")}
    async with small_cluster.client() as first:
        await crds.apply(first, class_definition())
    async with gate(small_cluster, assets) as made:
        mark = secrets.token_hex(3)
        own = role("reader", names.CLASS_PLURAL, "get", only=f"red-{mark}")
        async with (
            account(made.client, made.namespace, roles["5spot-class-admin"]) as platform,
            tenant(made.client, "red", f"red-{mark}", own) as red,
            tenant(made.client, "blue", f"blue-{mark}", roles["5spot-class-reader"]) as blue,
        ):
            await register(made, red.namespace, blue.namespace)
            for each, team in ((red, "red"), (blue, "blue")):
                await platform.create(SCHEDULED_MACHINE_CLASSES, desk(team, each.of))
                await until(lambda each=each: judged(each))
            yield Site(made.client, platform, red, blue)
            for each in (red, blue):
                await platform.delete(SCHEDULED_MACHINE_CLASSES, each.of)


async def judged(tenant: Tenant) -> bool:
    """Whether the webhooks are asked, and know the class: they refuse what does not fit."""
    try:
        return "is required by the class" in await tenant.refused({})
    except KubeError:
        return False


async def test_each_tenant_uses_its_own_class_and_no_other(site: Site) -> None:
    for own, other in ((site.red, site.blue), (site.blue, site.red)):
        stored = await own.asks_for({"address": "10.1.2.7"})
        assert stored["spec"]["parameters"] == {"address": "10.1.2.7"}
        assert "priority" not in stored["spec"], "fields that a class may set are not defaulted"
        assert "is not for namespace" in await own.refused({"address": "10.1.2.7"}, of=other.of)
        body = user({"address": "10.1.2.7"}, of=other.of)
        with pytest.raises(Forbidden):
            await own.client.create(SCHEDULED_MACHINES, body, namespace=other.namespace, dry_run=True)


async def test_specs_of_their_own_are_refused_whatever_they_say(site: Site) -> None:
    body = machine()
    body["metadata"] = {"name": "desk-1"}
    with pytest.raises(Invalid) as refusal:
        await site.red.client.create(SCHEDULED_MACHINES, body, namespace=site.red.namespace, dry_run=True)
    assert "spec.classRef" in refusal.value.message
    both = user({"address": "10.1.2.7"}, of=site.red.of)
    both["metadata"] = {"name": "desk-1"}
    both["spec"]["bootstrapSpec"] = machine()["spec"]["bootstrapSpec"]
    with pytest.raises(Invalid) as refusal:
        await site.red.client.create(SCHEDULED_MACHINES, both, namespace=site.red.namespace, dry_run=True)
    assert "cannot be combined with classRef" in refusal.value.message


@pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")
async def test_hostile_parameters_are_refused_with_all_that_is_wrong(site: Site) -> None:
    for value in HOSTILE:
        assert "spec.parameters" in await site.red.refused({"address": value})
    said = await site.red.refused({"address": "10.1.2.7; id", "port": "22", "user": "root"})
    assert all(f"spec.parameters.{name}" in said for name in ("address", "port", "user"))


async def test_tenants_read_the_classes_that_their_roles_name_and_write_none(site: Site) -> None:
    found = await site.red.client.get(SCHEDULED_MACHINE_CLASSES, site.red.of)
    assert found["spec"]["parameters"][0]["name"] == "address"
    with pytest.raises(Forbidden):
        await site.red.client.get(SCHEDULED_MACHINE_CLASSES, site.blue.of)
    with pytest.raises(Forbidden):
        await site.red.client.list(SCHEDULED_MACHINE_CLASSES)
    listed = await site.blue.client.list(SCHEDULED_MACHINE_CLASSES)
    assert {site.red.of, site.blue.of} <= {each["metadata"]["name"] for each in listed}
    patch: Raw = {"spec": {"namespaceSelector": {}}}
    for tenant in (site.red, site.blue):
        for name in (site.red.of, site.blue.of):
            with pytest.raises(Forbidden):
                await tenant.client.patch(SCHEDULED_MACHINE_CLASSES, name, patch)
        with pytest.raises(Forbidden):
            await tenant.client.create(SCHEDULED_MACHINE_CLASSES, desk("red", "mine"))


async def test_the_platform_team_writes_classes_and_no_machines(site: Site) -> None:
    patch: Raw = {"spec": {"priority": 7}}
    assert (await site.platform.patch(SCHEDULED_MACHINE_CLASSES, site.red.of, patch))["spec"]["priority"] == 7
    body = user({"address": "10.1.2.7"}, of=site.red.of)
    with pytest.raises(Forbidden):
        await site.platform.create(SCHEDULED_MACHINES, body, namespace=site.red.namespace, dry_run=True)


def inline() -> Raw:
    """What a tenant would rather have than a class, as a merge patch."""
    specs = {name: machine()["spec"][name] for name in ("bootstrapSpec", "infrastructureSpec")}
    return {"spec": {"classRef": None, "parameters": None, **specs}}


@asynccontextmanager
async def stored(site: Site, body: Raw) -> AsyncIterator[str]:
    """A machine of the red tenant; there is no controller here to let it go, so its finalizers are taken off."""
    made = await site.red.client.create(SCHEDULED_MACHINES, body, namespace=site.red.namespace)
    name = made["metadata"]["name"]
    try:
        yield name
    finally:
        bare: Raw = {"metadata": {"finalizers": None}}
        await site.red.client.patch(SCHEDULED_MACHINES, name, bare, namespace=site.red.namespace)
        with suppress(NotFound):
            await site.red.client.delete(SCHEDULED_MACHINES, name, namespace=site.red.namespace)


async def assert_refused(site: Site, name: str, change: Any, **options: Any) -> None:
    with pytest.raises(Invalid) as refusal:
        await site.red.client.patch(SCHEDULED_MACHINES, name, change, namespace=site.red.namespace, **options)
    assert "spec." in refusal.value.message


async def test_no_kind_of_edit_brings_specs_of_their_own_in(site: Site) -> None:
    body = user({"address": "10.1.2.7"}, of=site.red.of)
    body["metadata"] = {"name": "desk-1"}
    async with stored(site, body) as name:
        own = inline()
        await assert_refused(site, name, own)
        await assert_refused(site, name, {"spec": {"classRef": {"name": site.blue.of}}})
        await assert_refused(site, name, {"spec": {"parameters": {"address": "$(id)"}}})
        operations = [{"op": "remove", "path": f"/spec/{field}"} for field in ("classRef", "parameters")]
        operations += [{"op": "add", "path": f"/spec/{k}", "value": v} for k, v in own["spec"].items() if v]
        await assert_refused(site, name, operations, kind=PatchKind.JSON)
        applied = {**SCHEDULED_MACHINES.envelope(), "metadata": {"name": name}, "spec": machine()["spec"]}
        await assert_refused(site, name, applied, kind=PatchKind.APPLY, field_manager="tenant", force=True)
        whole = await site.red.client.get(SCHEDULED_MACHINES, name, namespace=site.red.namespace)
        whole["spec"] |= own["spec"]
        with pytest.raises(Invalid):
            await site.red.client.replace(SCHEDULED_MACHINES, name, whole, namespace=site.red.namespace)
        # An object that waits for its finalizer is judged like any other.
        await site.red.client.delete(SCHEDULED_MACHINES, name, namespace=site.red.namespace)
        await assert_refused(site, name, own)


async def test_what_a_namespace_held_before_its_label_keeps_its_specs_and_gets_no_others(site: Site) -> None:
    label: Raw = {"metadata": {"labels": {names.LABEL_TENANCY: None}}}
    await site.admin.patch(NAMESPACES, site.red.namespace, label)
    body = machine()
    body["metadata"] = {"name": "before"}
    await until(lambda: _lets_in(site.red, body))
    async with stored(site, body) as name:
        label["metadata"]["labels"][names.LABEL_TENANCY] = names.TENANCY_CLASSES
        await site.admin.patch(NAMESPACES, site.red.namespace, label)
        await until(lambda: _refuses(site.red, {**body, "metadata": {"name": "after"}}))
        changed: Raw = {"spec": {"priority": 7}}
        await site.red.client.patch(SCHEDULED_MACHINES, name, changed, namespace=site.red.namespace)
        for field in ("bootstrapSpec", "infrastructureSpec"):
            await assert_refused(site, name, {"spec": {field: {"spec": {"address": "10.6.6.6"}}}})


async def _lets_in(tenant: Tenant, body: Raw) -> bool:
    try:
        await tenant.client.create(SCHEDULED_MACHINES, body, namespace=tenant.namespace, dry_run=True)
    except Invalid:
        return False
    return True


async def _refuses(tenant: Tenant, body: Raw) -> bool:
    return not await _lets_in(tenant, body)


async def test_a_class_that_is_missing_is_let_in_and_a_broken_class_is_not_stored(site: Site) -> None:
    assert await site.red.refused({"anything": 1}, of="not-there-yet") == ""
    broken = desk("red", "broken")
    broken["spec"]["parameters"][0]["schema"] = {"$ref": "http://127.0.0.1:1/x"}
    with pytest.raises(Invalid) as refusal:
        await site.platform.create(SCHEDULED_MACHINE_CLASSES, broken)
    assert "must not use $ref" in refusal.value.message


async def test_a_namespace_whose_label_changes_loses_its_class(site: Site) -> None:
    assert await site.red.refused({"address": "10.1.2.7"}) == ""
    await site.admin.patch(NAMESPACES, site.red.namespace, {"metadata": {"labels": {"team": "green"}}})
    await until(lambda: _says(site.red, "is not for namespace"))


async def _says(tenant: Tenant, words: str) -> bool:
    return words in await tenant.refused({"address": "10.1.2.7"})

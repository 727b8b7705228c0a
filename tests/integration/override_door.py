"""Overrides behind a guard on a real API server, webhooks or the policy, and users with tokens of their own."""

import secrets
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from crds import names
from crds.base import rfc3339
from crds.definitions import all_definitions
from crds.generate import ROOT
from local import crds
from local.binaries import Assets
from local.cluster import LocalCluster
from service.kube.client import Client, PatchKind
from service.kube.errors import Denied, Forbidden, KubeError, Rejected
from service.kube.resource import NAMESPACES, SCHEDULE_OVERRIDES, Resource
from tests.charts.helm import Helm, of_kind
from tests.integration import policy_door, users
from tests.integration.gate import gate
from tests.waiting import until

Raw = dict[str, Any]

DOORS = ("webhooks", "policy")
POLICY = ROOT / "charts" / "5spot" / "files" / "policies" / "overrides.yaml"
CLUSTER_ROLES = Resource("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", namespaced=False)
UNTIL = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=3)
SPARES = tuple(f"spare-{number}" for number in range(14))


@dataclass
class Door:
    """A namespace whose overrides are guarded, the administrator, and three users."""

    cluster: LocalCluster
    namespace: str
    admin: Client
    demands_name: bool
    """Whether the user has to write `requestedBy` himself, as without webhooks."""
    alice: Client = field(init=False)
    """She may override desk-7 and its spares, and nothing else."""
    platform: Client = field(init=False)
    """May override every machine of the namespace."""
    bob: Client = field(init=False)
    """May edit ScheduledMachines and ScheduleOverrides, and has no right to override."""
    accounts: dict[str, users.User] = field(default_factory=dict)

    def body(self, name: str, user: str, **spec: Any) -> Raw:
        given: Raw = {"machines": ["desk-7"], "state": "Open", "until": rfc3339(UNTIL), **spec}
        if self.demands_name:
            given.setdefault("requestedBy", self.accounts[user].name)
        if "selector" in given:
            del given["machines"]
        return {**SCHEDULE_OVERRIDES.envelope(), "metadata": {"name": name}, "spec": given}

    async def create(self, client: Client, body: Raw) -> Raw:
        return await client.create(SCHEDULE_OVERRIDES, body, namespace=self.namespace)

    async def refused(self, client: Client, body: Raw) -> str:
        """What the API server says against an override; it must say something."""
        with pytest.raises((Denied, Rejected)) as refusal:
            await self.create(client, body)
        assert not _is_plain_rbac(refusal.value)
        return str(refusal.value)

    async def change(self, client: Client, name: str, **spec: Any) -> Raw:
        return await client.patch(SCHEDULE_OVERRIDES, name, {"spec": spec}, namespace=self.namespace)

    async def refused_change(self, client: Client, name: str, **spec: Any) -> str:
        with pytest.raises((Denied, Rejected)) as refusal:
            await self.change(client, name, **spec)
        assert not _is_plain_rbac(refusal.value)
        return str(refusal.value)


def _is_plain_rbac(error: KubeError) -> bool:
    """Whether the user lacks the right on ScheduleOverrides themselves, which no test here is about."""
    return isinstance(error, Forbidden) and "cannot" in error.message


@asynccontextmanager
async def override_door(
    kind: str, cluster: LocalCluster, assets: Assets, helm: Helm, folder: Path
) -> AsyncIterator[Door]:
    """Guarded by webhooks, or by the policy instead of them."""
    guarded = _with_webhooks if kind == "webhooks" else _with_policy
    async with AsyncExitStack() as stack:
        found: Door = await stack.enter_async_context(guarded(cluster, assets))
        await _populate(found, helm, folder, stack)
        await until(lambda: _guards(found))
        yield found


@asynccontextmanager
async def _with_webhooks(cluster: LocalCluster, assets: Assets) -> AsyncIterator[Door]:
    async with cluster.client() as admin:
        for definition in all_definitions():
            await crds.apply(admin, definition)
        async with gate(cluster, assets, overrides=True) as opened:
            yield Door(cluster, opened.namespace, admin, demands_name=False)


@asynccontextmanager
async def _with_policy(cluster: LocalCluster, _assets: Assets) -> AsyncIterator[Door]:
    namespace = f"policy-{secrets.token_hex(4)}"
    async with cluster.client() as admin:
        for definition in all_definitions():
            await crds.apply(admin, definition)
        await admin.create(NAMESPACES, {**NAMESPACES.envelope(), "metadata": {"name": namespace}})
        async with policy_door.applied(admin, policy_door.documents(POLICY), namespace):
            yield Door(cluster, namespace, admin, demands_name=True)
        await admin.delete(NAMESPACES, namespace)


async def _populate(door: Door, helm: Helm, folder: Path, stack: AsyncExitStack) -> None:
    """The roles of the chart, and users who have them."""
    for role in of_kind(helm.template(), CLUSTER_ROLES.kind):
        if "-override" in role["metadata"]["name"]:
            await door.admin.patch(
                CLUSTER_ROLES, role["metadata"]["name"], role, kind=PatchKind.APPLY, field_manager="test", force=True
            )
    for name in ("alice", "platform", "bob"):
        door.accounts[name] = await users.user(door.admin, door.cluster, door.namespace, name, folder)
        client = await Client.from_kubeconfig(door.accounts[name].kubeconfig)
        setattr(door, name, await stack.enter_async_context(client))
    own: Raw = {"apiGroups": [names.GROUP], "resources": [names.PLURAL]}
    await users.grant(
        door.admin, door.namespace, "alice", [{**own, "resourceNames": ["desk-7", *SPARES], "verbs": ["override"]}]
    )
    await users.bind(door.admin, door.namespace, "alice", CLUSTER_ROLES.kind, "5spot-override-objects")
    await users.bind(door.admin, door.namespace, "platform", CLUSTER_ROLES.kind, "5spot-override")
    every: Raw = {"apiGroups": [names.GROUP], "resources": [names.PLURAL, names.OVERRIDE_PLURAL]}
    verbs = ["get", "list", "create", "update", "patch", "delete"]
    await users.grant(door.admin, door.namespace, "bob", [{**every, "verbs": verbs}])


async def _guards(door: Door) -> bool:
    """Whether the API server asks webhook or policy already, and knows the roles."""
    try:
        body = door.body("probe", "bob", requestedBy="somebody")
        await door.admin.create(SCHEDULE_OVERRIDES, body, namespace=door.namespace, dry_run=True)
    except Rejected:
        mine = door.body("probe", "alice")
        try:
            await door.alice.create(SCHEDULE_OVERRIDES, mine, namespace=door.namespace, dry_run=True)
        except KubeError:
            return False
        return True
    except KubeError:
        return False
    return False

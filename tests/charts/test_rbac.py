"""The chart's roles are enough, and no more: an operator that watches one namespace does all it ever does under them.

That they are enough in a whole cluster, every test in tests/e2e shows: operators there are the chart's ServiceAccount.
"""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import httpx
import pytest
import pytest_asyncio

from crds import names
from local.binaries import Assets
from local.plane import ControlPlane
from local.provider.kinds import BOOTSTRAPS, CLUSTERS, HOSTS, MACHINES
from service.kube.client import Client, PatchKind
from service.kube.credentials import Token
from service.kube.errors import Forbidden, KubeError, NotFound
from service.kube.resource import (
    LEASES,
    MUTATING_WEBHOOKS,
    NAMESPACES,
    SCHEDULED_MACHINES,
    SECRETS,
    VALIDATING_WEBHOOKS,
)
from service.sharding import lease_store
from tests import accounts
from tests.accounts import Account, Asked
from tests.charts.helm import CHART, Helm, of_kind, only
from tests.conftest import aside, make_namespace
from tests.e2e.manifests import MONDAY_NINE, NINE, SIX, condition, machine, says
from tests.e2e.operator import Operator, operating
from tests.e2e.reclaims import Workstations
from tests.integration import agents
from tests.service.process import Process, started
from tests.waiting import until
from tests.webhooks.reviews import changed, review
from tests.webhooks.reviews import machine as reviewed

Raw = dict[str, Any]

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(900)]

NARROW = "5spot-narrow"
TEAM = "rbac-team"
CONFIGURATIONS = {"mutating": MUTATING_WEBHOOKS, "validating": VALIDATING_WEBHOOKS}
SERVED = {BOOTSTRAPS.group, HOSTS.group}
"""Groups of providers that there are here; the chart grants the same for others."""


@pytest.fixture(scope="module")
def account(plane: ControlPlane, helm: Helm, assets: Assets) -> Account:
    """An operator that may look at one namespace only."""
    aside(make_namespace(plane.management, TEAM, with_cluster=True))
    agents.install(plane.workload, assets.kubectl)
    # Under another name than the one that tests/e2e installs in the same cluster.
    values = {"watchNamespaces": [TEAM], "fullnameOverride": NARROW}
    return accounts.install(helm, plane.management, assets.kubectl, values, NARROW)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def management(plane: ControlPlane, account: Account) -> AsyncIterator[Client]:
    async with plane.management.client() as client:
        yield client
        for left in await client.list(SCHEDULED_MACHINES, namespace=TEAM):
            body = {"metadata": {"finalizers": None}}
            await client.patch(SCHEDULED_MACHINES, left["metadata"]["name"], body, namespace=TEAM)
        await client.delete(NAMESPACES, TEAM)
        await client.delete(NAMESPACES, NARROW)


# What the controller does


async def a_day_with_interference_and_a_deletion(op: Operator) -> None:
    await op.apply(machine("day", nodeTaints=[{"key": "team", "value": "a", "effect": "NoSchedule"}]))
    await op.ready("day")
    for end, resource in (("machine", MACHINES), ("infra", HOSTS), ("bootstrap", BOOTSTRAPS)):
        # Outside the operator's watch, so that it reads the object, and restores the label.
        await op.change(resource, f"day-{end}", {"metadata": {"labels": {names.LABEL_OWNER: None}}})
        await op.until_object(
            resource, f"day-{end}", lambda raw: names.LABEL_OWNER in raw["metadata"].get("labels", {})
        )
    # The mark of a MachineHealthCheck that succeeds again is cleared.
    found = {"HealthCheckSucceeded": "True", "OwnerRemediated": "False"}
    about = {"reason": "Test", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    marks = [{"type": kind, "status": status, **about} for kind, status in found.items()]
    patch = [{"op": "add", "path": "/status/conditions/-", "value": mark} for mark in marks]
    await op.client.patch(
        MACHINES, "day-machine", patch, namespace=op.namespace, kind=PatchKind.JSON, subresource="status"
    )
    await op.until_object(MACHINES, "day-machine", lambda raw: not condition(raw["status"], "OwnerRemediated"))
    # Cluster API leaves the paused Machine alone, and a user removes its finalizers: the operator removes the rest.
    await op.change(MACHINES, "day-machine", {"metadata": {"annotations": {names.ANNOTATION_PAUSED: ""}}})
    op.clock.move_to(SIX)
    await op.until_object(MACHINES, "day-machine", lambda raw: "deletionTimestamp" in raw["metadata"])
    await op.change(MACHINES, "day-machine", {"metadata": {"finalizers": None}})
    await op.childless("day")
    await op.phase("day", "Inactive")
    await op.delete("day")
    await op.gone("day")


async def an_emergency_reclaim_that_is_reverted(op: Operator, plane: ControlPlane) -> None:
    async with plane.workload.client() as workload:
        desks = Workstations(op, workload)
        op.clock.move_to(MONDAY_NINE)
        node = await desks.serve("desk")
        await desks.ask_back(node)
        await desks.ejected("desk")
        enabled = {"spec": {"schedule": {"enabled": True}}}
        await op.change(SCHEDULED_MACHINES, "desk", enabled, field_manager="argocd-controller")
        await op.ready("desk")
        assert (await op.events("desk"))["ReclaimReverted"] == 1
        await op.delete("desk")
        await op.gone("desk")


async def a_cluster_that_vanishes(op: Operator) -> None:
    await op.apply(machine("last"))
    await op.ready("last")
    await op.remove(CLUSTERS, "demo")
    await op.change(CLUSTERS, "demo", {"metadata": {"finalizers": None}})
    await op.until("last", lambda status: says(status, "ReferencesValid", "False", "ClusterNotFound"))
    await op.edit("last", {"spec": {"killSwitch": True}})
    for end, resource in (("machine", MACHINES), ("infra", HOSTS), ("bootstrap", BOOTSTRAPS)):
        # Cluster API does nothing for a Machine without its Cluster.
        try:
            await op.change(resource, f"last-{end}", {"metadata": {"finalizers": None}})
        except NotFound:
            continue


# What the process around it does


class Place(NamedTuple):
    process: Process
    webhooks: int
    metrics: int


def flags(account: Account, **more: str) -> list[str]:
    given = {
        "kubeconfig": str(account.kubeconfig),
        "namespace": NARROW,
        "bind-address": "127.0.0.1",
        "webhook-port": "0",
        "health-port": "0",
        "metrics-port": "0",
        "webhook-hosts": "127.0.0.1",
        "drain-seconds": "0",
        "lease-retry-seconds": "0.2",
    } | more
    return [f"--{name}={value}" for name, value in given.items()]


@asynccontextmanager
async def running(account: Account, **more: str) -> AsyncIterator[Place]:
    """The operator as its pod would start it, but for addresses."""
    deployment = only(list(account.rendered), "Deployment")
    pod = deployment["spec"]["template"]["spec"]["containers"][0]
    given = {entry["name"]: entry["value"] for entry in pod["env"] if "value" in entry}
    with environment(given):
        process = started(flags(account, **more))
        async with process as child:
            place = Place(child, await child.port("webhooks"), await child.port("metrics"))
            health = await child.port("health")
            await until(lambda: is_ready(health), within=90)
            yield place
            child.child.terminate()
            assert await child.ended() == 0


class environment:  # noqa: N801 -- reads as a noun in a with statement
    def __init__(self, given: dict[str, str]) -> None:
        self.given = given

    def __enter__(self) -> None:
        self.before = dict(os.environ)
        os.environ |= self.given

    def __exit__(self, *_: object) -> None:
        for name in self.given:
            os.environ.pop(name)
        os.environ |= self.before


async def is_ready(port: int) -> bool:
    try:
        async with httpx.AsyncClient() as client:
            return (await client.get(f"http://127.0.0.1:{port}/ready")).status_code == 200
    except httpx.TransportError:
        return False


@asynccontextmanager
async def registered(management: Client, account: Account) -> AsyncIterator[None]:
    """The chart's webhook configurations; they lead nowhere until `lead` is called."""
    for kind, resource in CONFIGURATIONS.items():
        document = only(list(account.rendered), f"{kind.capitalize()}WebhookConfiguration")
        await management.create(resource, document)
    yield
    for kind, resource in CONFIGURATIONS.items():
        await management.delete(resource, f"{NARROW}-{kind}")


async def lead(management: Client, account: Account, port: int) -> None:
    """To our process instead of a Service; the caBundle is left to the operator."""
    for kind, resource in CONFIGURATIONS.items():
        document = only(list(account.rendered), f"{kind.capitalize()}WebhookConfiguration")
        path = document["webhooks"][0]["clientConfig"]["service"]["path"]
        current = await management.get(resource, f"{NARROW}-{kind}")
        client = {"url": f"https://127.0.0.1:{port}{path}"}
        if "caBundle" in current["webhooks"][0]["clientConfig"]:
            client["caBundle"] = current["webhooks"][0]["clientConfig"]["caBundle"]
        patch = [{"op": "replace", "path": "/webhooks/0/clientConfig", "value": client}]
        await management.patch(resource, f"{NARROW}-{kind}", patch, kind=PatchKind.JSON)


async def admitted(client: Client) -> bool:
    """Whether the API server asks the webhooks, and they answer."""
    body = machine("asked", infrastructure={"address": "somewhere"})
    try:
        stored = await client.create(SCHEDULED_MACHINES, body, namespace=TEAM, dry_run=True)
    except KubeError:
        return False
    return names.FINALIZER in stored["metadata"].get("finalizers", ())


async def certificates_webhooks_leases_and_the_charts_own_test(management: Client, account: Account) -> None:
    async with running(account) as place:
        await lead(management, account, place.webhooks)
        await until(lambda: admitted(management), within=90)
        secret = only(list(account.rendered), "Deployment")["spec"]["template"]["spec"]
        name = next(e["value"] for e in secret["containers"][0]["env"] if e["name"] == "FIVESPOT_CERTIFICATE_SECRET")
        asked = {"metadata": {"annotations": {names.ANNOTATION_ROTATE: "leaf"}}}
        await management.patch(SECRETS, name, asked, namespace=NARROW)
        await until(lambda: _rotated(management, name), within=90)
        check = only(list(account.rendered), "Pod")["spec"]["containers"][0]
        assert check["args"] == [(CHART / "files" / "check.py").read_text()]
        where = {
            "METRICS_HOST": "127.0.0.1", "METRICS_PORT": str(place.metrics), "PATIENCE_SECONDS": "30",
            "WEBHOOK_URL": f"https://127.0.0.1:{place.webhooks}{names.VALIDATE_PATH}",
        }  # fmt: skip
        done = await asyncio.to_thread(
            subprocess.run, [sys.executable, *check["command"][1:], *check["args"]],
            env=os.environ | where, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stdout) == (0, "all is well\n")
        await a_review_from_a_namespace_that_is_not_known_yet(place)
        await until(lambda: _disturbed(management, account), within=90)
    # With another number of shards the old Leases are removed.
    async with running(account, **{"instance-count": "2"}):
        await until(lambda: _leases(management, {"5spot-shard-0-of-2", "5spot-shard-1-of-2"}), within=90)


async def a_review_from_a_namespace_that_is_not_known_yet(place: Place) -> None:
    given = changed(reviewed(), namespace="unheard-of")
    async with httpx.AsyncClient(verify=False) as client:
        url = f"https://127.0.0.1:{place.webhooks}{names.VALIDATE_PATH}"
        answer = await client.post(url, json=review(given))
    assert answer.json()["response"]["allowed"]


async def _rotated(client: Client, name: str) -> bool:
    secret = await client.get(SECRETS, name, namespace=NARROW)
    return names.ANNOTATION_ROTATE not in (secret["metadata"].get("annotations") or {})


async def _disturbed(client: Client, account: Account) -> bool:
    """Changes the Lease under the operator's hands until it has to look."""
    for turn in range(50):
        note = {"metadata": {"annotations": {"tests.example/turn": str(turn)}}}
        await client.patch(LEASES, "5spot-shard-0-of-1", note, namespace=NARROW)
    return any(asked.resource == "leases" and asked.verb == "get" for asked in account.log(from_start=True).asked())


async def _leases(client: Client, wanted: set[str]) -> bool:
    found = await client.list(LEASES, namespace=NARROW, labels=lease_store.SELECTOR)
    return {lease["metadata"]["name"] for lease in found} == wanted


# What the roles say


class Grant(NamedTuple):
    """One verb of one rule, for one group and resource."""

    group: str
    resource: str
    verb: str
    namespace: str | None
    names: tuple[str, ...]

    def covers(self, asked: Asked) -> bool:
        return (
            self.group == asked.group
            and self.resource in ("*", asked.resource)
            and self.verb == asked.verb
            and self.namespace in (None, asked.namespace)
            and (not self.names or asked.name in self.names)
        )


def operators_own(documents: list[Raw]) -> list[Raw]:
    """Its ClusterRole, without those that the chart brings for users."""
    return [role for role in of_kind(documents, "ClusterRole") if not _for_users(role)]


def _for_users(role: Raw) -> bool:
    return any(word in role["metadata"]["name"] for word in ("-override", "-class-"))


def grants(account: Account) -> Iterator[Grant]:
    documents = list(account.rendered)
    for role in operators_own(documents) + of_kind(documents, "Role"):
        namespace = role["metadata"].get("namespace")
        for rule in role["rules"]:
            for group in rule["apiGroups"]:
                for resource in rule["resources"]:
                    for verb in rule["verbs"]:
                        yield Grant(group, resource, verb, namespace, tuple(rule.get("resourceNames", ())))


async def test_all_that_is_needed_is_granted_and_all_that_is_granted_is_needed(
    plane: ControlPlane, management: Client, account: Account
):
    log, granted = account.log(), set(grants(account))
    async with operating(management, TEAM, NINE, credentials=Token(account.token)) as op:
        await a_day_with_interference_and_a_deletion(op)
        await an_emergency_reclaim_that_is_reverted(op, plane)
        await a_cluster_that_vanishes(op)
    async with registered(management, account):
        await certificates_webhooks_leases_and_the_charts_own_test(management, account)

    asked = set(log.asked())
    assert [each for each in asked if not each.allowed] == []
    assert len(granted) > 40
    never = {grant for grant in granted if not any(grant.covers(each) for each in asked)}
    absent = {grant for grant in never if grant.resource == "*" and grant.group not in SERVED}
    # No calendar and no override exists here: tests/e2e/test_calendars.py and test_overrides.py work under these roles.
    others = ("schedulecalendars/status", "scheduleoverrides/status", "subjectaccessreviews")
    elsewhere = {grant for grant in never if grant.resource in others}
    elsewhere.add(Grant("5spot.finos.org", "scheduleoverrides", "delete", TEAM, ()))
    # Nothing is asked of this kind: tests/charts/test_release_policy.py shows what the verb is for.
    assert never - absent - elsewhere == {Grant("5spot.finos.org", "releases", "announce", NARROW, ())}


async def test_what_stays_in_the_cluster_is_named(account: Account):
    (role,) = operators_own(list(account.rendered))
    nameless = [rule for rule in role["rules"] if "resourceNames" not in rule]
    assert nameless == [
        {"apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"], "verbs": ["list", "watch"]},
        {
            "apiGroups": ["5spot.finos.org"],
            "resources": ["clusterschedulecalendars"],
            "verbs": ["list", "watch"],
        },
        {"apiGroups": ["5spot.finos.org"], "resources": ["scheduledmachineclasses"], "verbs": ["list", "watch"]},
        {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": ["authorization.k8s.io"], "resources": ["subjectaccessreviews"], "verbs": ["create"]},
    ]


async def test_another_namespace_is_out_of_reach(account: Account, plane: ControlPlane):
    async with Client.from_inline(
        plane.management.url, ca=plane.management.authority.pem, token=account.token
    ) as client:
        for resource, verb in ((SCHEDULED_MACHINES, "list"), (SECRETS, "list"), (MACHINES, "list")):
            with pytest.raises(Forbidden):
                await getattr(client, verb)(resource, namespace="default")

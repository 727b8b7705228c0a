"""The roles that the chart makes for other ways to run it are enough too; test_rbac.py has the usual one in depth."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from certs.bundle import CA_CERTIFICATE, LEAF_CERTIFICATE, LEAF_KEY, Policy, first_bundle
from local.binaries import Assets
from local.plane import ControlPlane
from service.kube.client import Client
from service.kube.resource import SCHEDULED_MACHINES
from tests import accounts
from tests.accounts import Account
from tests.charts.helm import Helm, only
from tests.charts.test_rbac import environment, flags, is_ready
from tests.e2e.manifests import machine, says
from tests.service.process import started
from tests.waiting import until

Raw = dict[str, Any]

pytestmark = pytest.mark.timeout(600)

OWN = "5spot-modes"
MODES: dict[str, Raw] = {
    "policies-without-leases": {"webhooks": {"enabled": False}, "replicas": 1, "settings": {"leases": False}},
    "cert-manager-and-narrowed": {
        "webhooks": {"certificates": "cert-manager"},
        "providers": {"resources": ["k0sworkerconfigs", "remotemachines"]},
        "rbac": {"kubeconfigSecrets": ["demo-kubeconfig"]},
    },
}


def certificate(folder: Path) -> Raw:
    """Files as cert-manager leaves them, in a place that a test can write to."""
    made = first_bundle(("fivespot-webhook",), datetime.now(UTC), Policy()).encoded()
    for name in (LEAF_CERTIFICATE, LEAF_KEY, CA_CERTIFICATE):
        (folder / name).write_bytes(made[name])
    files = {"certificate-file": LEAF_CERTIFICATE, "key-file": LEAF_KEY, "authority-file": CA_CERTIFICATE}
    return {flag: str(folder / name) for flag, name in files.items()}


@asynccontextmanager
async def running(account: Account, **more: str) -> AsyncIterator[None]:
    """The operator as its pod would start it, but for addresses and files."""
    pod = only(list(account.rendered), "Deployment")["spec"]["template"]["spec"]["containers"][0]
    given = {entry["name"]: entry["value"] for entry in pod["env"] if "value" in entry}
    with environment(given):
        async with started(flags(account, namespace=account.namespace, **more)) as child:
            health = await child.port("health")
            await until(lambda: is_ready(health), within=90)
            yield
            child.child.terminate()
            assert await child.ended() == 0


async def serves(client: Client, namespace: str) -> bool:
    found = await client.get(SCHEDULED_MACHINES, "always", namespace=namespace)
    return says(found.get("status") or {}, "Ready", "True", "MachineRunning")


async def is_empty(client: Client, namespace: str) -> bool:
    return not await client.list(SCHEDULED_MACHINES, namespace=namespace)


@pytest.mark.parametrize("mode", MODES)
async def test_a_machine_comes_and_goes_without_one_refused_request(
    plane: ControlPlane, namespace: str, helm: Helm, assets: Assets, tmp_path: Path, mode: str
) -> None:
    values = {**MODES[mode], "watchNamespaces": [namespace], "fullnameOverride": mode}
    account = accounts.install(helm, plane.management, assets.kubectl, values, OWN)
    log = account.log()
    async with plane.management.client() as client, running(account, **certificate(tmp_path)):
        always = machine("always", schedule={"hoursOfDay": ["0-23"]})
        await client.create(SCHEDULED_MACHINES, always, namespace=namespace)
        await until(lambda: serves(client, namespace), within=90)
        await client.delete(SCHEDULED_MACHINES, "always", namespace=namespace)
        await until(lambda: is_empty(client, namespace), within=120)
    assert any(asked.verb == "create" for asked in log.asked())
    assert log.refused() == []

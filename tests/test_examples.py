"""Every example would be stored, is in service when its comment says so, and makes what its providers take."""

import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from crds.rules import check
from crds.scheduledmachine import ScheduledMachineSpec
from local import crds as local_crds
from local import kubeadm, schemas
from local.binaries import Assets
from local.capi import load_definitions
from local.cluster import LocalCluster
from local.progress import Progress
from service.commands.documents import read
from service.decide.manifests import creations
from service.decide.world import Contract
from service.kube.resource import CUSTOM_RESOURCE_DEFINITIONS
from tests.conftest import aside
from tests.docs.pages import blocks
from tests.service.decide.builders import identity, world

Raw = dict[str, Any]
FOLDER = Path(__file__).parent.parent / "examples"
LOCAL = FOLDER.parent / "local" / "examples"
EXAMPLES = sorted(FOLDER.glob("*.yaml"))
MONDAY = datetime(2026, 3, 2, tzinfo=UTC)
HOUR = timedelta(hours=1)
# Hours of service in the week from Monday 2 March 2026 (UTC), and the first opening within it.
SERVICE = {
    "cron": (58, "2026-03-06T20:00"),
    "emergency-reclaim": (7 * 24, None),
    "exceptions": (7 * 12.5, "2026-03-02T18:30"),
    "host-pool": (5 * 6, "2026-03-02T18:00"),
    "kubeadm-aws": (5 * 13, "2026-03-02T07:00"),
    "night-shift": (7 * 9, "2026-03-02T21:00"),
    "office-hours": (5 * 9, "2026-03-02T14:00"),
    "on-time": (5 * 12, "2026-03-02T19:00"),
    "weekend": (48, "2026-03-06T15:00"),
    "windows": (67.25, "2026-03-02T18:30"),
}


def only(path: Path):
    (document,) = read(str(path))
    return document.content


def test_there_is_an_example_for_each_way_to_use_it():
    assert {path.stem for path in EXAMPLES} == set(SERVICE)


def test_the_overview_names_every_example():
    assert all(f"[{path.name}]({path.name})" in (FOLDER / "README.md").read_text() for path in EXAMPLES)


def spec_of(manifest: Raw) -> ScheduledMachineSpec:
    model = check(manifest).model
    assert model is not None
    return model.spec


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_is_allowed(path):
    verdict = check(only(path))
    assert verdict.allowed, [str(violation) for violation in verdict.violations]
    assert all("killIfCommands" in warning for warning in verdict.warnings)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_is_in_service_when_it_says(path):
    hours, first = SERVICE[path.stem]
    schedule = spec_of(only(path)).schedule.compiled
    week = [window.cut(MONDAY, MONDAY + 168 * HOUR) for window in schedule.windows(MONDAY, MONDAY + 168 * HOUR)]
    assert sum((window.closes - window.opens for window in week), timedelta()) == hours * HOUR
    opened = [window.opens for window in week if window.opens > MONDAY]
    assert (opened[0].strftime("%Y-%m-%dT%H:%M") if opened else None) == first


# What the providers say


SHOWN = [
    *(pytest.param(only(path), id=str(path.relative_to(FOLDER.parent))) for path in (*EXAMPLES, *LOCAL.glob("*.yaml"))),
    *(
        pytest.param(manifest, id=str(block))
        for block in blocks("yaml")
        for manifest in yaml.safe_load_all(block.text)
        if isinstance(manifest, dict) and manifest.get("kind") == "ScheduledMachine"
    ),
]


@pytest.mark.parametrize("manifest", SHOWN)
def test_every_remote_machine_that_we_show_is_one_that_k0smotron_can_reach(manifest: Raw) -> None:
    """Its controller wants one of these, though its schema does not say so."""
    provider = manifest.get("spec", {}).get("infrastructureSpec", {})
    if provider.get("kind") == "RemoteMachine" and "spec" in provider:
        assert provider["spec"].keys() & {"sshKeyRef", "pool", "provisionJob"}


@pytest.fixture(scope="module")
def providers(small_cluster: LocalCluster, assets: Assets) -> Iterator[frozenset[str]]:
    """The kinds whose real schemas are at hand, in an API server that knows them and no more of them."""
    folders = (assets.capi_crds, kubeadm.BUILD.ensure(Progress()).crds, schemas.ensure(Progress()))
    wanted = ("Machine", "KubeadmConfig", "AWSMachine")
    definitions = [
        crd for folder in folders for crd in load_definitions(folder) if crd["spec"]["names"]["kind"] in wanted
    ]
    assert sorted(crd["spec"]["names"]["kind"] for crd in definitions) == sorted(wanted)
    local_crds.apply_all(small_cluster.client, definitions)
    yield frozenset(wanted)
    aside(_remove(small_cluster, [crd["metadata"]["name"] for crd in definitions]))


async def _remove(cluster: LocalCluster, definitions: list[str]) -> None:
    async with cluster.client() as client:
        for name in definitions:
            await client.delete(CUSTOM_RESOURCE_DEFINITIONS, name)


@pytest.mark.parametrize("contract", list(Contract))
def test_what_is_made_of_an_example_is_what_the_real_schemas_take(
    providers: frozenset[str], small_cluster: LocalCluster, assets: Assets, tmp_path: Path, contract: Contract
) -> None:
    made = [body for path in EXAMPLES for body in _children(only(path), contract) if body["kind"] in providers]
    assert {body["kind"] for body in made} == providers
    file = tmp_path / "children.yaml"
    file.write_text(yaml.safe_dump_all(made), encoding="utf-8")
    words = ("create", "--dry-run=server", "--validate=strict", "-f", file)
    done = subprocess.run(
        [assets.kubectl, f"--kubeconfig={small_cluster.kubeconfig}", *words],
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def _children(manifest: Raw, contract: Contract) -> list[Raw]:
    me = identity(name=manifest["metadata"]["name"], namespace="default")
    return [dict(create.manifest) for create in creations(spec_of(manifest), world(contract=contract, me=me))]

"""`5spot preview` of objects that a real API server holds."""

import asyncio
from pathlib import Path

import pytest
import yaml

from local.cluster import LocalCluster
from service.cli import main
from service.kube.resource import SCHEDULED_MACHINES
from tests.corpus import base
from tests.integration.api_door import moved, served

PERIOD = ("--from", "2026-03-09", "--days", "1")


@pytest.fixture
async def desk(small_cluster: LocalCluster, namespace: str) -> str:
    async with served(small_cluster) as client:
        body = moved(base(), namespace)
        body["metadata"]["name"] = "desk-7"
        body["spec"]["schedule"] = {"daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-17"], "timezone": "Europe/London"}
        await client.create(SCHEDULED_MACHINES, body, namespace=namespace)
    return namespace


async def preview(cluster: LocalCluster, *words: str) -> int:
    return await asyncio.to_thread(main, ["preview", "--kubeconfig", str(cluster.kubeconfig), *PERIOD, *words])


async def test_a_stored_object_is_shown_by_name_or_with_all_of_its_namespace(
    small_cluster: LocalCluster, desk: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for words in (["desk-7", "-n", desk], ["-n", desk]):
        assert await preview(small_cluster, *words) == 0
        title, _scale, monday = capsys.readouterr().out.splitlines()
        assert title == f"{desk}/desk-7: mon-fri 9-17 Europe/London"
        assert monday.endswith("  09:00-18:00")


async def test_the_contexts_namespace_is_the_default(
    small_cluster: LocalCluster, desk: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = yaml.safe_load(small_cluster.kubeconfig.read_text())
    for entry in config["contexts"]:
        entry["context"]["namespace"] = desk
    own = tmp_path / "config"
    own.write_text(yaml.safe_dump(config))
    monkeypatch.setenv("KUBECONFIG", str(own))
    assert await asyncio.to_thread(main, ["preview", "desk-7", *PERIOD]) == 0


async def test_what_the_cluster_does_not_have_exits_2(
    small_cluster: LocalCluster, namespace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await preview(small_cluster, "desk-8", "-n", namespace) == 2
    assert 'scheduledmachines.5spot.finos.org "desk-8" not found' in capsys.readouterr().err
    assert await preview(small_cluster, "-n", namespace) == 2
    assert f"there is no ScheduledMachine in namespace {namespace}" in capsys.readouterr().err

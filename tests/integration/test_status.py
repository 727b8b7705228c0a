"""`5spot status` and `5spot why` on a real API server, with the rights of a user."""

import asyncio
import json
from pathlib import Path

import pytest

from local.cluster import LocalCluster
from service.cli import main
from service.kube.resource import SCHEDULED_MACHINES
from tests.corpus import base
from tests.integration.api_door import moved, served
from tests.integration.readers import reader

STATUS = {
    "phase": "Inactive",
    "message": "Waiting for the next window.",
    "nextActivation": "2126-03-09T09:00:00Z",
    "conditions": [
        {
            "type": "Ready",
            "status": "False",
            "reason": "OutsideSchedule",
            "message": "Waiting for the next window.",
            "lastTransitionTime": "2026-03-06T18:00:00Z",
        }
    ],
}


@pytest.fixture
async def desk(small_cluster: LocalCluster, namespace: str) -> str:
    """A namespace with desk-7, which waits, and desk-8, which no operator has handled."""
    async with served(small_cluster) as client:
        for name in ("desk-7", "desk-8"):
            body = moved(base(), namespace)
            body["metadata"]["name"] = name
            stored = await client.create(SCHEDULED_MACHINES, body, namespace=namespace)
            if name == "desk-7":
                await client.replace(
                    SCHEDULED_MACHINES, name, stored | {"status": STATUS}, namespace=namespace, subresource="status"
                )
    return namespace


async def run(cluster: LocalCluster | Path, *words: str) -> int:
    kubeconfig = cluster if isinstance(cluster, Path) else cluster.kubeconfig
    return await asyncio.to_thread(main, [words[0], "--kubeconfig", str(kubeconfig), *words[1:]])


async def test_a_namespace_is_shown_at_a_glance_what_needs_attention_first(
    small_cluster: LocalCluster, desk: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await run(small_cluster, "status", "-n", desk) == 0
    shown = capsys.readouterr().out
    title, _head, first, second, *_ = shown.splitlines()
    assert title.endswith("1 needs attention")
    assert first.startswith("desk-8")
    assert second.split()[:3] == ["desk-7", "Inactive", "no"]
    assert "opens 09 Mar 2126" in second


async def test_a_table_has_no_more_lines_than_asked_for_and_says_how_many_are_left(
    small_cluster: LocalCluster, desk: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await run(small_cluster, "status", "-n", desk, "--limit", "1") == 0
    shown = capsys.readouterr().out
    assert "desk-7" not in shown
    assert "… and 1 more" in shown


async def test_one_machine_is_shown_with_its_conditions(
    small_cluster: LocalCluster, desk: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await run(small_cluster, "status", "desk-7", "-n", desk) == 0
    shown = capsys.readouterr().out
    assert f"{desk}/desk-7  Inactive, not Ready (OutsideSchedule)" in shown
    assert "Ready=False" in shown


async def test_programs_read_json(small_cluster: LocalCluster, desk: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert await run(small_cluster, "status", "-n", desk, "--phase", "inactive", "-o", "json") == 0
    [found] = json.loads(capsys.readouterr().out)
    assert (found["name"], found["phase"], found["ready"]) == ("desk-7", "Inactive", False)


async def test_why_names_the_rule_where_everything_may_be_read(
    small_cluster: LocalCluster, desk: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await run(small_cluster, "why", "desk-7", "-n", desk) == 0
    shown = capsys.readouterr().out
    assert f"{desk}/desk-7 is not in the cluster." in shown
    assert "The rule that decides" in shown


async def test_a_user_without_rights_learns_what_he_may_not_read(
    small_cluster: LocalCluster, desk: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with served(small_cluster) as client:
        user = await reader(client, small_cluster, desk, tmp_path)
    assert await run(user, "why", "desk-7", "-n", desk) == 0
    assert "desk-7 is not in the cluster." in capsys.readouterr().out
    assert await run(user, "status", "-n", desk) == 2
    assert "cannot read ScheduledMachines" in capsys.readouterr().err
    assert await run(user, "status", "desk-7", "-n", desk) == 0
    assert "You may not read its Events." in capsys.readouterr().out

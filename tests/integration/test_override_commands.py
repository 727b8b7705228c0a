"""`5spot extend`, `suspend`, `skip`, `resume` and `overrides` on a real API server, with the rights of real users."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
import pytest_asyncio
import yaml

from crds import names
from local.binaries import Assets
from local.cluster import LocalCluster
from service.cli import main
from service.kube.client import PatchKind
from service.kube.errors import NotFound
from service.kube.resource import SCHEDULE_OVERRIDES, SCHEDULED_MACHINES
from tests.charts.helm import Helm
from tests.corpus import base
from tests.integration.api_door import moved
from tests.integration.override_door import DOORS, Door, override_door

Raw = dict[str, Any]
pytestmark = pytest.mark.asyncio(loop_scope="module")
Capture = pytest.CaptureFixture[str]


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=DOORS)
async def door(
    request: pytest.FixtureRequest,
    small_cluster: LocalCluster,
    assets: Assets,
    helm: Helm,
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[Door]:
    async with override_door(request.param, small_cluster, assets, helm, tmp_path_factory.mktemp("users")) as found:
        yield found


@pytest_asyncio.fixture(loop_scope="module")
async def desks(door: Door) -> Door:
    """desk-7 and desk-8, closed now and open from three hours ahead for two hours; no override is about them."""
    for name in ("desk-7", "desk-8"):
        body = moved(base(), door.namespace)
        body["metadata"] = {"name": name, "namespace": door.namespace}
        body["spec"]["schedule"] = _opens_in(hours=3)
        await door.admin.patch(
            SCHEDULED_MACHINES, name, body, kind=PatchKind.APPLY, namespace=door.namespace, force=True
        )
    for each in await door.admin.list(SCHEDULE_OVERRIDES, namespace=door.namespace):
        await door.admin.delete(SCHEDULE_OVERRIDES, each["metadata"]["name"], namespace=door.namespace)
    return door


def _opens_in(hours: int) -> Raw:
    opens = (datetime.now(UTC) + timedelta(hours=hours)).hour
    window = {"from": f"{opens:02d}:00", "to": f"{(opens + 2) % 24:02d}:00"}
    return {"windows": [window], "timezone": "UTC", "enabled": True}


async def run(door: Door, user: str, *words: str) -> int:
    kubeconfig = str(door.accounts[user].kubeconfig)
    rest = ("-n", door.namespace, "--kubeconfig", kubeconfig)
    return await asyncio.to_thread(main, [words[0], *rest, *words[1:]])


async def found(door: Door) -> list[Raw]:
    listed = await door.admin.list(SCHEDULE_OVERRIDES, namespace=door.namespace)
    return sorted((each["spec"] for each in listed), key=lambda spec: spec["until"])


async def test_extend_puts_a_machine_into_service_and_says_until_when(desks: Door, capsys: Capture) -> None:
    before = datetime.now(UTC).replace(microsecond=0)
    assert await run(desks, "alice", "extend", "desk-7", "--for", "30m", "--reason", "release night") == 0
    [spec] = await found(desks)
    assert (spec["state"], spec["machines"], spec["reason"]) == ("Open", ["desk-7"], "release night")
    assert spec["requestedBy"] == desks.accounts["alice"].name
    assert "from" not in spec
    assert datetime.fromisoformat(spec["until"]) >= before + timedelta(minutes=30)
    said = capsys.readouterr().out
    assert "desk-7 goes into service now and stays until" in said
    assert "Then it is out of service until" in said
    assert f"5spot resume desk-7 -n {desks.namespace}" in said


async def test_skip_leaves_out_the_next_window_and_resume_takes_that_back(desks: Door, capsys: Capture) -> None:
    assert await run(desks, "alice", "skip", "desk-7") == 0
    [spec] = await found(desks)
    length = datetime.fromisoformat(spec["until"]) - datetime.fromisoformat(spec["from"])
    assert (spec["state"], length) == ("Closed", timedelta(hours=2))
    assert "desk-7 skips the window from" in capsys.readouterr().out
    assert await run(desks, "alice", "resume", "desk-7") == 0
    assert await found(desks) == []
    assert "desk-7 follows its schedule: it is out of service until" in capsys.readouterr().out


async def test_a_window_that_is_open_is_not_the_next_for_a_user_whose_clock_is_behind(
    desks: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, behind = datetime.now(UTC), timedelta(minutes=30)
    opened, closes = now - timedelta(minutes=10), now + timedelta(hours=1)
    windows = [{"from": f"{opened:%H:%M}", "to": f"{closes:%H:%M}"}]
    spec = {"spec": {"schedule": {"windows": windows}}}
    await desks.admin.patch(SCHEDULED_MACHINES, "desk-7", spec, namespace=desks.namespace)
    seconds = SimpleNamespace(**vars(time) | {"time": lambda: time.time() - behind.total_seconds()})
    monkeypatch.setattr("service.clock.SystemClock.now", lambda _: datetime.now(UTC) - behind)
    monkeypatch.setattr("service.kube.transport.time", seconds)
    assert await run(desks, "alice", "skip", "desk-7") == 0
    [found_spec] = await found(desks)
    assert datetime.fromisoformat(found_spec["from"]) > now + timedelta(hours=20)


async def test_suspend_closes_and_resume_returns_in_spite_of_an_override_for_others_too(desks: Door) -> None:
    both = desks.body("both", "platform", machines=["desk-7", "desk-8"])
    await desks.create(desks.platform, both)
    assert await run(desks, "alice", "suspend", "desk-7", "--for", "6h") == 0
    assert await run(desks, "alice", "resume", "desk-7") == 0
    states = {spec["state"]: spec["machines"] for spec in await found(desks)}
    assert states == {"Open": ["desk-7", "desk-8"], "Scheduled": ["desk-7"]}


async def test_what_the_webhook_warns_of_is_printed(desks: Door, capsys: Capture) -> None:
    assert await run(desks, "alice", "extend", "desk-7", "--for", f"{40 * 24}h") == 0
    said = capsys.readouterr().out
    assert "It ends more than 31 days ahead" in said
    warned = "Warning: spec.until: must be at most 31 days after the override is accepted" in said
    assert warned is not desks.demands_name, "a policy only refuses"


async def test_an_override_that_changes_nothing_is_not_created(desks: Door, capsys: Capture) -> None:
    assert await run(desks, "alice", "suspend", "desk-7", "--for", "30m") == 1
    assert "desk-7 is out of service until" in capsys.readouterr().err
    assert await found(desks) == []


async def test_a_user_who_may_not_override_learns_which_right_is_missing(desks: Door, capsys: Capture) -> None:
    for user, machine in (("alice", "desk-8"), ("bob", "desk-7")):
        assert await run(desks, user, "extend", machine, "--for", "1h") == 1
        said = capsys.readouterr().err
        assert f"cannot override {machine} in namespace {desks.namespace}" in said
        assert f"verb {names.OVERRIDE_VERB} on scheduledmachines.{names.GROUP}" in said
    assert await found(desks) == []


async def test_a_user_who_may_read_nothing_learns_that(desks: Door, capsys: Capture) -> None:
    elsewhere = str(desks.accounts["alice"].kubeconfig)
    words = ["extend", "desk-7", "--for", "1h", "-n", "default", "--kubeconfig", elsewhere]
    assert await asyncio.to_thread(main, words) == 2
    assert "cannot read ScheduledMachine desk-7" in capsys.readouterr().err


@pytest.mark.parametrize("words", [[], ["--for", "1h", "--until", "22:00"], ["--for", "soon"], ["--until", "25:00"]])
async def test_wrong_usage_is_refused_before_anything_is_read(desks: Door, capsys: Capture, words: list[str]) -> None:
    assert await run(desks, "alice", "extend", "no-such-machine", *words) == 2
    assert "cannot read" not in capsys.readouterr().err


async def test_overrides_are_shown_for_people_and_for_programs(desks: Door, capsys: Capture) -> None:
    assert await run(desks, "alice", "overrides") == 0
    assert f"There is no ScheduleOverride in namespace {desks.namespace}." in capsys.readouterr().out
    assert await run(desks, "alice", "extend", "desk-7", "--for", "1h") == 0
    other = desks.body("for-desk-8", "platform", machines=["desk-8"])
    await desks.create(desks.platform, other)
    capsys.readouterr()

    assert await run(desks, "alice", "overrides", "desk-7") == 0
    head, row = capsys.readouterr().out.splitlines()
    assert head.split()[:3] == ["NAME", "MACHINES", "STATE"]
    assert row.split()[1:5] == ["desk-7", "Open", "in", "force"]
    assert await run(desks, "alice", "overrides", "-o", "json") == 0
    shown = {each["name"]: each for each in json.loads(capsys.readouterr().out)}
    assert shown["for-desk-8"]["machines"] == ["desk-8"]
    assert shown["for-desk-8"]["standing"] == "in force"
    assert await run(desks, "alice", "overrides", "desk-7", "-o", "yaml") == 0
    [one] = yaml.safe_load(capsys.readouterr().out)
    assert one["requestedBy"] == desks.accounts["alice"].name


async def test_resume_acknowledges_a_reclaim_if_the_user_may_edit_the_machine(desks: Door, capsys: Capture) -> None:
    note = {"metadata": {"annotations": {names.ANNOTATION_RECLAIM_UNACKNOWLEDGED: "2026-03-06T11:00:00Z"}}}
    await desks.admin.patch(SCHEDULED_MACHINES, "desk-7", note, namespace=desks.namespace)
    assert await run(desks, "alice", "resume", "desk-7") == 1
    assert "the verb patch on scheduledmachines" in capsys.readouterr().err
    assert await run(desks, "bob", "resume", "desk-7") == 0
    assert "The reclaim of 2026-03-06T11:00:00Z is acknowledged." in capsys.readouterr().out
    raw = await desks.admin.get(SCHEDULED_MACHINES, "desk-7", namespace=desks.namespace)
    assert names.ANNOTATION_RECLAIM_UNACKNOWLEDGED not in (raw["metadata"].get("annotations") or {})


async def test_a_machine_that_does_not_exist_is_not_overridden(desks: Door, capsys: Capture) -> None:
    assert await run(desks, "alice", "extend", "spare-1", "--for", "1h") == 2
    assert "spare-1" in capsys.readouterr().err
    with pytest.raises(NotFound):
        await desks.admin.get(SCHEDULED_MACHINES, "spare-1", namespace=desks.namespace)

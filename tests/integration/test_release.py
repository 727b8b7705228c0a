"""`5spot release` on a real API server: what it takes off, what it leaves alone, and when it refuses."""

import asyncio
import io
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from crds import names
from local.cluster import LocalCluster
from service.cli import main
from service.commands import finalizers
from service.commands.finalizers import ReleaseOutcome, ReleaseTarget
from service.kube.client import Client
from service.kube.errors import KubeError, NotFound
from service.kube.resource import LEASES, SCHEDULED_MACHINES, VALIDATING_WEBHOOKS
from service.sharding.lease_store import LABELS
from tests.conftest import drop_namespace, make_namespace
from tests.corpus import base
from tests.integration.api_door import moved, served
from tests.waiting import running, until
from webhooks.configuration import Registration, manifests

Raw = dict[str, Any]
FOREIGN = "example.com/backup"


class Door:
    """One namespace with ScheduledMachines in it, and the command to run on it."""

    def __init__(self, client: Client, cluster: LocalCluster, namespace: str) -> None:
        self.client, self.cluster, self.namespace = client, cluster, namespace

    async def release(self, *words: str, scope: bool = True) -> int:
        own = ["-n", self.namespace] if scope else []
        where = [*own, "--operator-namespace", self.namespace, "--kubeconfig", str(self.cluster.kubeconfig)]
        return await asyncio.to_thread(main, ["release", *where, *words])

    async def add(self, name: str, *finalizers: str, status: Raw | None = None) -> Raw:
        body = moved(base(), self.namespace)
        body["metadata"] |= {"name": name, "finalizers": list(finalizers or (names.FINALIZER,))}
        made = await self.client.create(SCHEDULED_MACHINES, body, namespace=self.namespace)
        if status is None:
            return made
        written = {"status": status}
        return await self.client.patch(
            SCHEDULED_MACHINES, name, written, namespace=self.namespace, subresource="status"
        )

    async def get(self, name: str) -> Raw:
        return await self.client.get(SCHEDULED_MACHINES, name, namespace=self.namespace)

    async def delete(self, name: str) -> None:
        await self.client.delete(SCHEDULED_MACHINES, name, namespace=self.namespace)

    async def finalizers(self, name: str) -> list[str]:
        return (await self.get(name))["metadata"].get("finalizers", [])

    async def gone(self, name: str) -> bool:
        try:
            await self.get(name)
        except NotFound:
            return True
        return False

    async def lease(self, holder: str, seconds: int) -> None:
        body = {
            **LEASES.envelope(),
            "metadata": {"name": "5spot-shard-0-of-1", "labels": LABELS},
            "spec": {"holderIdentity": holder, "leaseDurationSeconds": seconds, "renewTime": _time(0)},
        }
        await self.client.create(LEASES, body, namespace=self.namespace)

    async def renew(self) -> None:
        """As a living operator does."""
        for number in range(1, 1000):
            spec = {"spec": {"renewTime": _time(number)}}
            await self.client.patch(LEASES, "5spot-shard-0-of-1", spec, namespace=self.namespace)
            await asyncio.sleep(0.2)


def _time(number: int) -> str:
    return f"2026-03-06T09:{number // 60 % 60:02}:{number % 60:02}.000000Z"


@pytest.fixture
async def door(small_cluster: LocalCluster, namespace: str) -> AsyncIterator[Door]:
    async with served(small_cluster) as client:
        found = Door(client, small_cluster, namespace)
        yield found
        for left in await client.list(SCHEDULED_MACHINES, namespace=namespace):
            body = {"metadata": {"finalizers": None}}
            await client.patch(SCHEDULED_MACHINES, left["metadata"]["name"], body, namespace=namespace)


async def test_a_deletion_that_hung_on_our_finalizer_completes(door: Door, capsys: pytest.CaptureFixture[str]) -> None:
    await door.add("worker")
    await door.delete("worker")
    assert not await door.gone("worker")

    assert await door.release("--yes") == 0
    assert await door.gone("worker")
    assert f"{door.namespace}/worker: released; its deletion is completed\n" in capsys.readouterr().out


async def test_finalizers_of_others_and_everything_else_stay(door: Door, capsys: pytest.CaptureFixture[str]) -> None:
    before = await door.add("kept", FOREIGN, names.FINALIZER, "example.com/audit")
    await door.add("leaving", names.FINALIZER, FOREIGN)
    await door.delete("leaving")

    assert await door.release("--yes") == 0
    after = await door.get("kept")
    assert after["metadata"]["finalizers"] == [FOREIGN, "example.com/audit"]
    assert (after["spec"], after["metadata"]["uid"]) == (before["spec"], before["metadata"]["uid"])
    assert "deletionTimestamp" not in after["metadata"]
    assert await door.finalizers("leaving") == [FOREIGN]
    assert f"leaving: released; its deletion still waits for {FOREIGN}" in capsys.readouterr().out


async def test_a_dry_run_says_what_would_be_done_and_does_nothing(
    door: Door, capsys: pytest.CaptureFixture[str]
) -> None:
    before = await door.add("worker")
    assert await door.release("--dry-run") == 0
    assert await door.get("worker") == before
    assert (
        capsys.readouterr().out == f"{door.namespace}/worker: would be released\n1 would be released, 0 Machines stay\n"
    )


async def test_without_confirmation_nothing_is_released(door: Door, capsys: pytest.CaptureFixture[str]) -> None:
    before = await door.add("worker")
    assert await door.release() == 2
    assert await door.get("worker") == before
    assert "confirm with --yes to release 1" in capsys.readouterr().err


@pytest.mark.parametrize(("answer", "code"), [("yes", 0), ("y", 2), ("", 2)])
async def test_a_person_at_a_terminal_is_asked(
    door: Door, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, answer: str, code: int
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("sys.stdin", Terminal(f"{answer}\n"))
    await door.add("worker")
    assert await door.release() == code
    assert (await door.finalizers("worker") == []) is (code == 0)
    assert f"{door.namespace}/worker: would be released" in capsys.readouterr().err


async def test_only_what_is_named_is_released(door: Door, small_cluster: LocalCluster) -> None:
    elsewhere = Door(door.client, small_cluster, f"{door.namespace}-b")
    await make_namespace(small_cluster, elsewhere.namespace, with_cluster=False)
    await door.add("one")
    await door.add("two")
    await elsewhere.add("one")

    assert await door.release(f"{door.namespace}/one", "--yes", scope=False) == 0
    assert (await door.finalizers("one"), await door.finalizers("two")) == ([], [names.FINALIZER])
    assert await door.release("--yes") == 0
    assert await door.finalizers("two") == []
    assert await elsewhere.finalizers("one") == [names.FINALIZER]
    await elsewhere.release("--yes")
    await drop_namespace(small_cluster, elsewhere.namespace)


async def test_a_named_one_that_is_not_there_is_a_failure_and_one_without_our_finalizer_is_not(
    door: Door, capsys: pytest.CaptureFixture[str]
) -> None:
    await door.add("free", FOREIGN)
    assert await door.release("free", "--yes") == 0
    assert f"{door.namespace}/free: does not carry our finalizer\n" in capsys.readouterr().out
    await door.add("worker")
    assert await door.release("worker", "absent", "--yes") == 1
    assert capsys.readouterr().err == f"5spot: there is no ScheduledMachine {door.namespace}/absent\n"
    assert await door.finalizers("worker") == [names.FINALIZER], "nothing is changed before the mistake is known"


async def test_a_long_list_is_released_in_batches(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finalizers, "AT_ONCE", 3)
    for number in range(7):
        await door.add(f"worker-{number}")
    assert await door.release("--yes") == 0
    listed = await door.client.list(SCHEDULED_MACHINES, namespace=door.namespace)
    assert [each["metadata"].get("finalizers") for each in listed] == [None] * 7


async def test_an_object_that_changed_meanwhile_is_observed_again(door: Door) -> None:
    await door.add("worker")
    found = await finalizers.find(door.client, namespace=door.namespace)
    more = {"metadata": {"finalizers": [names.FINALIZER, FOREIGN]}}
    await door.client.patch(SCHEDULED_MACHINES, "worker", more, namespace=door.namespace)

    (done,) = await _released(door, found)
    assert done.outcome is ReleaseOutcome.RELEASED
    assert await door.finalizers("worker") == [FOREIGN]


async def test_another_object_that_took_the_name_is_left_alone(door: Door) -> None:
    await door.add("worker")
    found = await finalizers.find(door.client, namespace=door.namespace)
    await door.release("--yes")
    await door.delete("worker")
    await door.add("worker")

    (done,) = await _released(door, found)
    assert (done.outcome, await door.finalizers("worker")) == (ReleaseOutcome.GONE, [names.FINALIZER])


async def test_an_object_that_went_meanwhile_is_no_failure(door: Door) -> None:
    await door.add("worker")
    found = await finalizers.find(door.client, namespace=door.namespace)
    await door.release("--yes")
    await door.delete("worker")
    (done,) = await _released(door, found)
    assert done.outcome is ReleaseOutcome.GONE


async def _released(door: Door, found: list[ReleaseTarget]) -> list[ReleaseTarget]:
    return [each async for each in finalizers.release(door.client, found, dry_run=False)]


async def test_while_an_operator_is_running_it_is_refused_unless_forced(
    door: Door, capsys: pytest.CaptureFixture[str]
) -> None:
    await door.add("worker")
    await door.lease("operator-7f9_abc", seconds=600)
    async with running(door.renew()):
        assert await door.release("--yes") == 1
        assert await door.finalizers("worker") == [names.FINALIZER]
        printed = capsys.readouterr().err
        assert f"an operator is running: operator-7f9_abc in namespace {door.namespace} renews its lease" in printed
        assert await door.release("--yes", "--force") == 0
    assert await door.finalizers("worker") == []


async def test_the_lease_of_an_operator_that_died_is_waited_out(door: Door) -> None:
    await door.add("worker")
    await door.lease("operator-7f9_abc", seconds=1)
    assert await door.release("--yes") == 0
    assert await door.finalizers("worker") == []


async def test_a_lease_that_was_given_back_holds_nothing_up(door: Door, capsys: pytest.CaptureFixture[str]) -> None:
    await door.lease("", seconds=600)
    assert await door.release("--yes") == 0
    assert capsys.readouterr() == (f"no {names.KIND} carries our finalizer\n", "")


async def test_an_operator_that_starts_meanwhile_is_reported(
    door: Door, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = finalizers.find

    async def meanwhile(*arguments: Any, **options: Any) -> Any:
        await door_of_its_own(door)
        return await real(*arguments, **options)

    monkeypatch.setattr(finalizers, "find", meanwhile)
    await door.add("worker")
    assert await door.release("--yes") == 1
    assert (
        "an operator started in the meantime, late_one, and may have added finalizers again" in capsys.readouterr().err
    )


async def door_of_its_own(door: Door) -> None:
    """The command runs in a loop of its own, and so must who interferes."""
    async with door.cluster.client() as client:
        await Door(client, door.cluster, door.namespace).lease("late_one", seconds=15)


async def test_json_has_one_entry_per_object(door: Door, capsys: pytest.CaptureFixture[str]) -> None:
    await door.add("worker", FOREIGN, names.FINALIZER)
    assert await door.release("--yes", "-o", "json") == 0
    assert json.loads(capsys.readouterr().out) == [
        {
            "namespace": door.namespace,
            "name": "worker",
            "outcome": "released",
            "deleting": False,
            "otherFinalizers": [FOREIGN],
            "leftBehind": [],
        }
    ]


async def test_a_webhook_without_a_server_is_named_as_the_reason_and_the_rest_is_done(
    door: Door, capsys: pytest.CaptureFixture[str]
) -> None:
    await door.add("one")
    await door.add("two")
    await door.delete("two")
    async with dead_webhook(door):
        assert await door.release("--yes") == 1
    printed = capsys.readouterr().out
    assert f"{door.namespace}/one: NOT released: patch" in printed
    assert "delete the webhook configurations of the operator first" in printed
    assert "1 released, 0 Machines stay, 1 NOT released" in printed
    assert await door.finalizers("one") == [names.FINALIZER]
    assert await door.gone("two")


@asynccontextmanager
async def dead_webhook(door: Door) -> AsyncIterator[None]:
    """What is left of an operator that was removed carelessly."""
    name = f"left-over-{door.namespace}"
    at = Registration(at="https://127.0.0.1:1", namespaces=(door.namespace,), validating_name=name)
    await door.client.create(VALIDATING_WEBHOOKS, manifests(at)[1])
    try:
        await until(lambda: _asked(door))
        yield
    finally:
        await door.client.delete(VALIDATING_WEBHOOKS, name)


async def _asked(door: Door) -> bool:
    """Whether the API server has noticed the webhook; it takes a moment."""
    try:
        await door.client.patch(SCHEDULED_MACHINES, "one", {}, namespace=door.namespace, dry_run=True)
    except KubeError:
        return True
    return False

"""A machine's day as a receiver of CloudEvents sees it."""

from pathlib import Path
from typing import Any

from crds.overrideschema import override_definition
from local.binaries import Assets
from local.crds import apply
from local.plane import ControlPlane
from service.kube.client import Client
from service.kube.resource import SCHEDULE_OVERRIDES
from tests.e2e.manifests import EIGHT, MINUTE, NINE, SIX, machine
from tests.e2e.operator import Operator, operating
from tests.e2e.reclaims import Workstations
from tests.e2e.test_lifecycle import picky
from tests.e2e.test_overrides import override
from tests.e2e.workload import WorkloadSide
from tests.integration.agents import install
from tests.receiver import Receiver, receiving

SECRET = "hunter2-TOKEN"


def to(receiver: Receiver) -> dict[str, Any]:
    """The settings that send notifications there."""
    return {"notify_url": receiver.url, "notify_secret_folder": receiver.folder}


async def sent(op: Operator, receiver: Receiver) -> list[str]:
    await op.at_rest()
    await op.controller.notifier.finish(60)
    return receiver.types()


async def test_a_day_from_the_opening_to_the_drained_node(management: Client, namespace: str, tmp_path: Path) -> None:
    with receiving(tmp_path) as receiver:
        async with operating(management, namespace, EIGHT, **to(receiver), notify_closing_minutes=30) as op:
            await op.apply(machine())
            await op.phase("worker", "Inactive")
            assert await sent(op, receiver) == []

            op.clock.move_to(NINE)
            await op.ready("worker")
            assert await sent(op, receiver) == ["opening", "ready"]

            op.clock.move_to(SIX - 20 * MINUTE)
            assert await sent(op, receiver) == ["opening", "ready", "closing"]

            op.clock.move_to(SIX)
            await op.phase("worker", "Inactive")
            assert await sent(op, receiver) == ["opening", "ready", "closing", "drained"]
        subjects = {event.get_subject() for event in receiver.events}
        assert subjects == {f"{namespace}/worker"}
        assert len({event.get_id() for event in receiver.events}) == 4
        windows = {data["windowOpened"] for data in receiver.data()}
        assert windows == {"2026-03-06T09:00:00Z"}


async def test_an_error_is_sent_once(management: Client, namespace: str, tmp_path: Path) -> None:
    with receiving(tmp_path) as receiver:
        async with operating(management, namespace, NINE, **to(receiver)) as op:
            await op.apply(machine(clusterName="nowhere"))
            await op.phase("worker", "Inactive", "ClusterNotFound")
            op.clock.advance(10 * MINUTE)
            assert await sent(op, receiver) == ["opening", "error"]
        assert receiver.data()[-1]["reason"] == "ClusterNotFound"


async def test_a_notice_of_what_a_provider_refuses_does_not_quote_the_spec(
    management: Client, namespace: str, tmp_path: Path
) -> None:
    resource, definition = picky(namespace.removeprefix("test-"))
    await apply(management, definition)
    provider = {"apiVersion": resource.api_version, "kind": resource.kind}
    with receiving(tmp_path) as receiver:
        async with operating(management, namespace, NINE, **to(receiver)) as op:
            await op.apply(machine(infrastructureSpec={**provider, "spec": {"address": "10.0.0.1", "token": SECRET}}))
            status = await op.phase("worker", "Error", "ProviderRejected")
            assert SECRET in status["message"]
            assert await sent(op, receiver) == ["opening", "error"]
        assert receiver.data()[-1]["reason"] == "ProviderRejected"
        assert not any(SECRET.encode() in body for _, _, body in receiver.requests)


async def test_a_machine_that_never_joins_an_override_and_a_drain_that_is_cut_short_send_notifications(
    management: Client, namespace: str, tmp_path: Path, workload: WorkloadSide
) -> None:
    await apply(management, override_definition())
    with receiving(tmp_path) as receiver:
        async with operating(management, namespace, NINE, **to(receiver), notify_closing_minutes=0) as op:
            await op.apply(machine("late", infrastructure={"simulate": {"failure": "NodeNeverJoins"}}))
            await op.phase("late", "Active")
            await op.apply(machine("worker"))
            node = (await op.ready("worker"))["nodeRef"]["name"]
            op.clock.advance(16 * MINUTE)
            await op.phase("late", "Active", "NotReadyInTime")
            await workload.occupy(node)
            await op.client.create(SCHEDULE_OVERRIDES, override("Closed", SIX), namespace=namespace)
            await op.phase("worker", "ShuttingDown", "Draining")
            op.clock.advance(6 * MINUTE)
            await op.until("worker", lambda status: status.get("machinePhase") != "Running")
            types = await sent(op, receiver)
        told = {
            (str(event.get_subject()).rpartition("/")[2], kind)
            for event, kind in zip(receiver.events, types, strict=True)
        }
        assert ("late", "not-ready-in-time") in told
        assert {("worker", "override"), ("worker", "cut-short")} <= told
        assert len({event.get_id() for event in receiver.events}) == len(types)


async def test_a_reclaim_sends_a_notification(
    management: Client, namespace: str, tmp_path: Path, plane: ControlPlane, assets: Assets, workload: WorkloadSide
) -> None:
    install(plane.workload, assets.kubectl)
    with receiving(tmp_path) as receiver:
        async with operating(management, namespace, NINE, **to(receiver)) as op:
            desks = Workstations(op, workload.client)
            await desks.ask_back(await desks.serve())
            await desks.ejected()
            assert "reclaim" in await sent(op, receiver)

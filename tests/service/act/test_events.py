"""The recorder of Events, on a real API server."""

import asyncio
from unittest.mock import AsyncMock

import pytest

from service.act import events
from service.act.events import EventRecorder
from service.decide.plan import Event
from service.decide.reasons import ProviderReason, Reason
from service.decide.world import Identity
from service.kube.errors import Unavailable
from service.kube.resource import EVENTS
from tests.waiting import running


@pytest.fixture
async def client(small_cluster):
    async with small_cluster.client() as admin:
        yield admin


def identity(namespace, name="desk"):
    return Identity(namespace, name, f"uid-of-{name}", 1, None, finalized=True, paused=False)


async def test_an_event_is_stored_as_kubectl_describe_shows_it(client, namespace):
    recorder = EventRecorder(client, instance="pod-1", busy=lambda: False)
    async with running(recorder.run()):
        recorder.record(identity(namespace), Event(Reason.DRAIN_TIMED_OUT, "Not all pods left."))
        recorder.record(identity(namespace), Event(Reason.MACHINE_DELETED, "x" * 2000))
        await asyncio.wait_for(recorder.idle.wait(), 25)
    stored = {event["reason"]: event for event in await client.list(EVENTS, namespace=namespace)}
    warning = stored["DrainTimedOut"]
    assert (warning["type"], warning["note"]) == ("Warning", "Not all pods left.")
    assert (warning["reportingController"], warning["reportingInstance"]) == ("5spot.finos.org", "pod-1")
    assert warning["regarding"]["kind"] == "ScheduledMachine"
    assert (warning["regarding"]["name"], warning["regarding"]["uid"]) == ("desk", "uid-of-desk")
    assert stored["MachineDeleted"]["type"] == "Normal"
    assert 1000 < len(stored["MachineDeleted"]["note"].encode()) <= 1024


async def test_kubectl_describe_lists_events_as_they_happened(client, namespace):
    recorder = EventRecorder(client, instance="pod-1", busy=lambda: False)
    happened = [f"Event{number}" for number in range(20)]
    async with running(recorder.run()):
        for reason in happened:
            recorder.record(identity(namespace), Event(ProviderReason(reason), "in that order"))
        await asyncio.wait_for(recorder.idle.wait(), 25)
    # It sorts by a timestamp that new Events must not have: what counts is the order in which the API server lists.
    assert [event["reason"] for event in await client.list(EVENTS, namespace=namespace)] == happened


async def test_an_event_whose_answer_was_lost_is_not_sent_for_ever(client, namespace, monkeypatch):
    sent = []

    async def stumbling(*args, **options):
        sent.append(await create(*args, **options))
        raise Unavailable("no answer in time")

    create = client.create
    monkeypatch.setattr(client, "create", stumbling)
    monkeypatch.setattr(asyncio, "sleep", AsyncMock())
    recorder = EventRecorder(client, instance="pod-1", busy=lambda: False)
    recorder.record(identity(namespace), Event(ProviderReason("Sent"), "twice"))
    await recorder._send(recorder._backlog.popleft())
    assert len(sent) == 1
    assert len(await client.list(EVENTS, namespace=namespace)) == 1


async def test_a_namespace_that_is_gone_does_not_hold_up_the_others(client, namespace):
    recorder = EventRecorder(client, instance="pod-1", busy=lambda: False)
    async with running(recorder.run()):
        recorder.record(identity("no-such-namespace"), Event(ProviderReason("Lost"), "its namespace is gone"))
        recorder.record(identity(namespace), Event(ProviderReason("Kept"), "its namespace exists"))
        await asyncio.wait_for(recorder.idle.wait(), 25)
    assert [event["reason"] for event in await client.list(EVENTS, namespace=namespace)] == ["Kept"]


async def test_events_give_way_to_work_but_not_for_ever(client, namespace, monkeypatch):
    monkeypatch.setattr(events, "MAX_DELAY_SECONDS", 0.4)
    asked = []

    def busy():
        asked.append(1)
        return True

    recorder = EventRecorder(client, instance="pod-1", busy=busy)
    async with running(recorder.run()):
        recorder.record(identity(namespace), Event(ProviderReason("Late"), "but sent"))
        await asyncio.wait_for(recorder.idle.wait(), 25)
    assert len(asked) > 1
    assert [event["reason"] for event in await client.list(EVENTS, namespace=namespace)] == ["Late"]


async def test_at_shutdown_events_are_not_held_back_for_other_requests(client, namespace):
    recorder = EventRecorder(client, instance="pod-1", busy=lambda: True)
    async with running(recorder.run()):
        for number in range(5):
            recorder.record(identity(namespace), Event(ProviderReason("Done"), f"number {number}"))
        await recorder.finish(within=25)
    assert len(await client.list(EVENTS, namespace=namespace)) == 5


async def test_shutdown_does_not_wait_for_events_that_cannot_be_sent(client, namespace):
    recorder = EventRecorder(client, instance="pod-1", busy=lambda: False)
    recorder.record(identity(namespace), Event(ProviderReason("Done"), "though it is not sent"))
    await asyncio.wait_for(recorder.finish(within=0.01), 25)


async def test_messages_of_others_are_cut_to_one_line_of_an_event_in_every_alphabet(client, namespace):
    recorder = EventRecorder(client, instance="pod-1", busy=lambda: False)
    async with running(recorder.run()):
        recorder.record(
            identity(namespace), Event(ProviderReason("Quoted"), "first\nNormal  Forged  \x1b[31mred\u202e")
        )
        recorder.record(identity(namespace), Event(ProviderReason("Long"), "語" * 1024))
        await asyncio.wait_for(recorder.idle.wait(), 25)
    notes = {event["reason"]: event["note"] for event in await client.list(EVENTS, namespace=namespace)}
    assert notes["Quoted"] == "first Normal Forged [31mred"
    assert notes["Long"].startswith("語" * 300)


async def test_a_refused_event_delays_no_other(client, namespace):
    recorder = EventRecorder(client, instance="pod-1", busy=lambda: False)
    async with running(recorder.run()):
        recorder.record(identity(namespace), Event(ProviderReason("x" * 200), "its reason is too long"))
        for number in range(8):
            recorder.record(identity(namespace), Event(ProviderReason("Kept"), f"number {number}"))
        await asyncio.wait_for(recorder.idle.wait(), 25)
    assert len(await client.list(EVENTS, namespace=namespace)) == 8

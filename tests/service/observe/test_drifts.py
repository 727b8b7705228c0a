"""When the controller asks the API server which field manager changed an object, and how long the answer holds."""

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from crds import names
from service.decide.drift import SpecChange
from service.decide.world import Role
from service.kube.errors import Forbidden, Unavailable
from service.observe import drifts
from service.observe.drifts import DriftObserver
from tests.service.decide.builders import MORNING, SPEC, child, identity, intent, machine, running_world

CHANGED = {"address": "192.0.2.7", "port": 23}
BY_A_PERSON = (SpecChange("spec.port", "kubectl-edit"),)


class Server:
    """Has one RemoteMachine; `person` is whether a user edited it, or the provider only formats it otherwise."""

    def __init__(self, *, person, uid="uid-of-desk-infra"):
        ours = {"manager": names.FIELD_MANAGER, "fieldsV1": {"f:spec": {} if person else {"f:port": {}}}}
        entries = [ours, {"manager": "kubectl-edit", "fieldsV1": {"f:spec": {"f:port": {}}}}] if person else [ours]
        ours["fieldsV1"] = {"f:metadata": {}} if person else ours["fieldsV1"]
        self.raw = {
            "metadata": {"uid": uid, "generation": 2, "resourceVersion": "9", "managedFields": entries},
            "spec": CHANGED,
        }
        self.asked, self.error = 0, None
        client: Any = self
        self.drifts = DriftObserver(client, self.resolve)

    async def resolve(self, _api_version, kind):
        return kind

    async def get(self, _resource, _name, *, namespace):
        assert namespace == "team"
        self.asked += 1
        if self.error:
            raise self.error
        return self.raw

    async def observe(self, of=None, **seen):
        known = {"spec": CHANGED, "generation": 2, "resource_version": "9", **seen.pop("child", {})}
        there = replace(child(Role.INFRASTRUCTURE), **known)
        subject: Any = SimpleNamespace(intent=of or intent())
        return await self.drifts.observe(subject, running_world(infrastructure=there, **seen))


async def test_nothing_is_asked_while_the_object_says_what_we_sent():
    server = Server(person=True)
    assert await server.observe(child={"spec": {"address": "192.0.2.7", "port": "22", "providerID": "x"}}) == ()
    assert server.asked == 0


@pytest.mark.parametrize(("person", "found"), [(True, BY_A_PERSON), (False, ())])
async def test_it_is_asked_once_who_changed_it(person, found):
    server = Server(person=person)
    assert [await server.observe() for _ in range(3)] == [found] * 3
    assert server.asked == 1


@pytest.mark.parametrize(("person", "asked"), [(True, 2), (False, 1)])
async def test_that_nothing_was_changed_holds_while_only_the_status_is_written(person, asked):
    server = Server(person=person)
    await server.observe()
    await server.observe(child={"resource_version": "10"})
    assert server.asked == asked


async def test_it_is_asked_again_when_the_spec_changes():
    server = Server(person=False)
    await server.observe()
    await server.observe(child={"generation": 3})
    assert server.asked == 2


@pytest.mark.parametrize("error", [Unavailable("no answer"), Forbidden("no"), TimeoutError()])
async def test_who_changed_it_is_unknown_while_the_server_does_not_say(error):
    server = Server(person=True)
    server.error = error
    assert await server.observe() is None
    server.error = None
    assert await server.observe() == BY_A_PERSON


async def test_a_server_that_hangs_holds_a_pass_up_for_a_moment_only(monkeypatch):
    monkeypatch.setattr(drifts, "TIMEOUT_SECONDS", 0.01)
    server = Server(person=True)
    monkeypatch.setattr(server, "get", lambda *_, **__: asyncio.sleep(60))
    assert await server.observe() is None


async def test_another_object_of_the_name_says_nothing():
    assert await Server(person=True, uid="another").observe() is None


@pytest.mark.parametrize(
    "seen",
    [
        {"of": intent(killSwitch=True)},
        {"machine": None},
        {"machine": machine(of={"deleting": True})},
        {"me": identity(deleting_since=MORNING)},
        {"of": intent(bootstrapSpec={**SPEC["bootstrapSpec"], "spec": {"version": "v2"}})},
    ],
    ids=["killed", "no Machine", "Machine deleting", "being deleted", "edited"],
)
async def test_nothing_is_asked_about_what_goes_or_was_made_from_another_spec(seen):
    server = Server(person=True)
    assert (await server.observe(**seen), server.asked) == ((), 0)


async def test_answers_do_not_pile_up(monkeypatch):
    monkeypatch.setattr(drifts, "_MOST_ANSWERS", 1)
    server = Server(person=True)
    await server.observe(child={"uid": "another"})
    await server.observe()
    assert list(server.drifts._answers) == ["uid-of-desk-infra"]

"""When the API server is asked who changed a provider's object, and how long its answer holds."""

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
from service.observe.drifts import Drifts
from tests.service.decide.builders import MORNING, SPEC, child, identity, intent, machine, running_world

CHANGED = {"address": "192.0.2.7", "port": 23}
BY_A_PERSON = (SpecChange("spec.port", "kubectl-edit"),)


class Server:
    """Has one RemoteMachine; `person` is whether somebody edited it, or it merely reads otherwise."""

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
        self.drifts = Drifts(client, self.resolve)

    async def resolve(self, _api_version, kind):
        return kind

    async def get(self, _resource, _name, *, namespace):
        assert namespace == "team"
        self.asked += 1
        if self.error:
            raise self.error
        return self.raw

    async def look(self, of=None, **seen):
        known = {"spec": CHANGED, "generation": 2, "resource_version": "9", **seen.pop("child", {})}
        there = replace(child(Role.INFRASTRUCTURE), **known)
        subject: Any = SimpleNamespace(intent=of or intent())
        return await self.drifts.look(subject, running_world(infrastructure=there, **seen))


async def test_nothing_is_asked_while_the_object_says_what_we_sent():
    server = Server(person=True)
    assert await server.look(child={"spec": {"address": "192.0.2.7", "port": "22", "providerID": "x"}}) == ()
    assert server.asked == 0


@pytest.mark.parametrize(("person", "found"), [(True, BY_A_PERSON), (False, ())])
async def test_it_is_asked_once_who_changed_it(person, found):
    server = Server(person=person)
    assert [await server.look() for _ in range(3)] == [found] * 3
    assert server.asked == 1


@pytest.mark.parametrize(("person", "asked"), [(True, 2), (False, 1)])
async def test_that_nothing_was_changed_holds_while_only_the_status_is_written(person, asked):
    server = Server(person=person)
    await server.look()
    await server.look(child={"resource_version": "10"})
    assert server.asked == asked


async def test_it_is_asked_again_when_the_spec_changes():
    server = Server(person=False)
    await server.look()
    await server.look(child={"generation": 3})
    assert server.asked == 2


@pytest.mark.parametrize("error", [Unavailable("no answer"), Forbidden("no"), TimeoutError()])
async def test_who_changed_it_is_unknown_while_the_server_does_not_say(error):
    server = Server(person=True)
    server.error = error
    assert await server.look() is None
    server.error = None
    assert await server.look() == BY_A_PERSON


async def test_a_server_that_hangs_holds_a_pass_up_for_a_moment_only(monkeypatch):
    monkeypatch.setattr(drifts, "ASK_SECONDS", 0.01)
    server = Server(person=True)
    monkeypatch.setattr(server, "get", lambda *_, **__: asyncio.sleep(60))
    assert await server.look() is None


async def test_another_object_of_the_name_says_nothing():
    assert await Server(person=True, uid="another").look() is None


@pytest.mark.parametrize(
    "seen",
    [
        {"of": intent(killSwitch=True)},
        {"machine": None},
        {"machine": machine(of={"leaving": True})},
        {"me": identity(deleting_since=MORNING)},
        {"of": intent(bootstrapSpec={**SPEC["bootstrapSpec"], "spec": {"version": "v2"}})},
    ],
    ids=["killed", "no Machine", "leaving", "being deleted", "edited"],
)
async def test_nothing_is_asked_about_what_goes_or_was_made_from_another_spec(seen):
    server = Server(person=True)
    assert (await server.look(**seen), server.asked) == ((), 0)


async def test_answers_do_not_pile_up(monkeypatch):
    monkeypatch.setattr(drifts, "_MOST_ANSWERS", 1)
    server = Server(person=True)
    await server.look(child={"uid": "another"})
    await server.look()
    assert list(server.drifts._answers) == ["uid-of-desk-infra"]

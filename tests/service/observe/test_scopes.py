"""Which kinds the webhooks refuse because they live outside namespaces."""

import asyncio

import pytest

from crds.providers import ProviderPolicy
from service.kube.errors import Unavailable
from service.observe import scopes as module
from service.observe.scopes import Scopes
from tests.waiting import running, until

POLICY = ProviderPolicy(bootstrap_groups=frozenset({"a.io"}), infrastructure_groups=frozenset({"b.io"}))


class Server:
    """Stands for discovery: groups with their cluster-scoped kinds, or an error."""

    def __init__(self):
        self.groups = {}
        self.asked = 0
        self.error = None

    async def cluster_scoped(self, group):
        self.asked += 1
        if self.error:
            raise self.error
        return frozenset(self.groups.get(group, ()))


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(module, "FIRST_PAUSE", 0.0)
    monkeypatch.setattr(module, "PAUSES", (0.01, 0.02))


@pytest.fixture
async def server():
    return Server()


async def test_the_groups_that_the_operator_allows_are_asked_about_at_the_start(server):
    server.groups = {"a.io": ["Wide"], "b.io": ["Broad"], "c.io": ["Foreign"]}
    kinds: set[tuple[str, str]] = set()
    async with running(Scopes(server, POLICY, kinds).run()):
        await until(lambda: kinds == {("a.io", "Wide"), ("b.io", "Broad")})


async def test_a_definition_that_comes_or_goes_is_learnt_of(server):
    kinds: set[tuple[str, str]] = set()
    scopes = Scopes(server, POLICY, kinds)
    async with running(scopes.run()):
        await until(lambda: server.asked >= 6)
        server.groups = {"b.io": ["Broad"]}
        scopes.changed("b.io")
        await until(lambda: kinds == {("b.io", "Broad")})
        server.groups = {}
        scopes.changed("b.io")
        await until(lambda: not kinds)


async def test_a_definition_of_another_group_asks_nothing(server):
    scopes = Scopes(server, POLICY, set())
    async with running(scopes.run()):
        await until(lambda: server.asked >= 6)
        asked = server.asked
        scopes.changed("c.io")
        with pytest.raises(TimeoutError):
            await until(lambda: server.asked > asked, within=0.2)


async def test_what_was_known_stays_while_the_server_does_not_answer_and_it_is_asked_again(server):
    server.groups = {"a.io": ["Wide"]}
    kinds: set[tuple[str, str]] = set()
    scopes = Scopes(server, POLICY, kinds)
    async with running(scopes.run()):
        await until(lambda: kinds)
        server.error, asked = Unavailable("away"), server.asked
        scopes.changed("a.io")
        await until(lambda: server.asked > asked + 6)
        assert kinds == {("a.io", "Wide")}
        server.error, server.groups = None, {}
        await until(lambda: not kinds)


async def test_it_stops_when_asked_although_a_definition_changes_at_that_moment(server, monkeypatch):
    monkeypatch.setattr(module, "PAUSES", (60.0,))
    scopes = Scopes(server, POLICY, set())
    task = asyncio.create_task(scopes.run())
    await until(lambda: server.asked == 2 and not scopes._due.is_set())
    scopes.changed("a.io")
    await asyncio.sleep(0)  # the waiting task has been woken
    task.cancel()
    await asyncio.wait((task,), timeout=30)
    assert task.cancelled()

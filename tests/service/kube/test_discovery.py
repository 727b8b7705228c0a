"""Asking what a server serves, and not more often than needed."""

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest
from aiohttp import web

from service.kube import discovery as module
from service.kube.discovery import Discovery
from service.kube.errors import Unavailable
from tests.service.kube.answering import answering


class Kinds:
    """A server with groups that a test adds."""

    def __init__(self):
        self.groups = {}

    async def answer(self, request):
        _, _, group, *rest = request.path.split("/")
        versions = self.groups.get(group)
        if versions is None or (rest and rest[0] not in versions):
            return web.Response(status=404, text="404 page not found")
        if not rest:
            return web.json_response({"versions": [{"version": version} for version in versions]})
        return web.json_response({"resources": versions[rest[0]]})


def kind(name, plural, *, namespaced=True):
    return {"name": plural, "kind": name, "namespaced": namespaced}


CAPI_KINDS = [kind("Machine", "machines"), kind("Machine", "machines/status"), kind("Cluster", "clusters")]


@pytest.fixture
async def served(tmp_path):
    async with answering(tmp_path) as server:
        server.kinds = Kinds()
        server.answer = server.kinds.answer
        yield server


@pytest.fixture
async def discovery(served):
    async with served.client() as client:
        yield Discovery(client)


@dataclass
class Hand:
    """A clock that the test moves."""

    now: float = 1000.0

    def __call__(self):
        return self.now


@asynccontextmanager
async def settling(served):
    """A kind whose definition has just been stored."""
    served.kinds.groups["example.com"] = {"v1": [kind("Thing", "things")]}
    clock = Hand()
    async with served.client() as client:
        discovery = Discovery(client, monotonic=clock)
        discovery.crd_changed("things.example.com")
        yield discovery, clock


async def test_a_thousand_lookups_at_once_send_one_request(served, discovery):
    served.kinds.groups["example.com"] = {"v1": [kind("Thing", "things", namespaced=False)]}
    found = await asyncio.gather(*(discovery.resolve("example.com/v1", "Thing") for _ in range(1000)))
    assert len(served.seen) == 1
    assert {(resource.plural, resource.namespaced) for resource in found} == {("things", False)}


async def test_a_missing_kind_is_believed_for_a_while(served, discovery, monkeypatch):
    for _ in range(3):
        assert await discovery.resolve("example.com/v1", "Thing") is None
    assert [request.path for request in served.seen] == ["/apis/example.com/v1", "/apis/example.com"]
    monkeypatch.setattr(module, "MISSING_SECONDS", 0.0)
    served.kinds.groups["example.com"] = {"v1": [kind("Thing", "things")]}
    assert await discovery.resolve("example.com/v1", "Thing")


async def test_versions_that_are_not_served_are_not_remembered_for_ever(served, discovery, monkeypatch):
    monkeypatch.setattr(module, "MAX_CACHED", 10)
    served.kinds.groups["example.com"] = {"v1": [kind("Thing", "things")]}
    assert await discovery.resolve("example.com/v1", "Thing")
    for number in range(2, 60):
        assert await discovery.resolve(f"example.com/v{number}", "Thing") is None
    assert len(discovery._tables) <= 10
    assert len(discovery._locks) <= 10 + 1
    asked = len(served.seen)
    assert await discovery.resolve("example.com/v1", "Thing")
    assert len(served.seen) == asked, "what is served is remembered"


async def test_a_changed_definition_is_asked_about_at_once(served, discovery):
    groups: list[str] = []
    discovery.listen(groups.append)
    await discovery.resolve("example.com/v1", "Thing")
    served.kinds.groups["example.com"] = {"v1": [kind("Thing", "things")]}
    discovery.crd_changed("things.example.com")
    assert await discovery.resolve("example.com/v1", "Thing")
    assert groups == ["example.com"]


async def test_what_was_said_just_after_a_change_is_asked_again(served):
    async with settling(served) as (discovery, clock):
        assert await discovery.resolve("example.com/v1", "Thing")
        del served.kinds.groups["example.com"]
        clock.now += module.SETTLING_CACHE_SECONDS
        assert await discovery.resolve("example.com/v1", "Thing") is None


async def test_a_kind_that_is_served_after_a_change_is_verified_with_backoff(served):
    async with settling(served) as (discovery, clock):
        for _ in range(10 * int(module.SETTLING_SECONDS)):
            clock.now += 0.2
            assert await discovery.resolve("example.com/v1", "Thing")
        assert 5 <= len(served.seen) <= 10
        asked = len(served.seen)
        clock.now += 3600
        assert await discovery.resolve("example.com/v1", "Thing")
        assert len(served.seen) == asked


async def test_a_kind_that_is_missing_after_a_change_is_asked_for_again_and_again(served):
    async with settling(served) as (discovery, clock):
        for _ in range(10):
            clock.now += module.SETTLING_CACHE_SECONDS
            assert await discovery.resolve("example.com/v1", "Other") is None
        assert len(served.seen) == 10


async def test_forgetting_one_group_keeps_the_others(served, discovery):
    served.kinds.groups |= {"a.com": {"v1": [kind("A", "as")]}, "b.com": {"v1": [kind("B", "bs")]}}
    await discovery.resolve("a.com/v1", "A")
    await discovery.resolve("b.com/v1", "B")
    discovery.forget("a.com")
    await discovery.resolve("b.com/v1", "B")
    assert len(served.seen) == 2
    await discovery.resolve("a.com/v1", "A")
    assert len(served.seen) == 3


async def test_cluster_scoped_kinds_of_a_group_are_found_in_all_its_versions(served, discovery):
    served.kinds.groups["example.com"] = {
        "v2": [kind("Thing", "things"), kind("Wide", "wides", namespaced=False)],
        "v1": [kind("Old", "olds", namespaced=False), kind("Old", "olds/status", namespaced=False)],
    }
    assert await discovery.cluster_scoped("example.com") == {"Wide", "Old"}
    assert await discovery.cluster_scoped("nobody.com") == frozenset()


@pytest.mark.parametrize(
    ("versions", "contract", "expected"),
    [
        (["v1beta1", "v1beta2"], None, "v1beta2"),
        (["v1beta1"], None, "v1beta1"),
        (["v1beta1", "v1beta2"], "v1beta1", "v1beta1"),
        (["v1beta1"], "v1beta2", None),
        (["v1alpha4"], None, None),
        ([], None, None),
    ],
)
async def test_which_contract_is_taken(served, versions, contract, expected):
    served.kinds.groups["cluster.x-k8s.io"] = dict.fromkeys(versions, CAPI_KINDS)
    async with served.client() as client:
        capi = await Discovery(client, contract=contract).capi()
    assert (capi.version if capi else None) == expected


async def test_while_an_upgrade_brings_definitions_one_by_one_the_older_contract_stays_in_force(served, discovery):
    served.kinds.groups["cluster.x-k8s.io"] = {
        "v1beta2": [kind("ClusterClass", "clusterclasses")],
        "v1beta1": CAPI_KINDS,
    }
    assert (await discovery.capi()).version == "v1beta1"


async def test_a_version_that_is_listed_but_not_served_makes_the_server_unavailable(served, discovery):
    served.kinds.groups["example.com"] = {"v1": []}
    answer = served.kinds.answer

    async def starting(request):
        return web.Response(status=404) if request.path.endswith("/v1") else await answer(request)

    served.answer = starting
    with pytest.raises(Unavailable, match="listed, but not served yet"):
        await discovery.resolve("example.com/v1", "Thing")
    served.kinds.groups["example.com"] = {"v1": [kind("Thing", "things")]}
    served.answer = answer
    assert await discovery.resolve("example.com/v1", "Thing"), "what was no answer is not remembered"


async def test_a_kind_is_found_in_whatever_version_is_served(served, discovery):
    served.kinds.groups["example.com"] = {"v2": [], "v1": [kind("Thing", "things")]}
    assert (await discovery.served("example.com", "Thing")).version == "v1"
    assert await discovery.served("example.com", "Other") is None
    assert await discovery.served("example.org", "Thing") is None


async def test_a_contract_without_its_kinds_is_not_there_yet(served, discovery):
    served.kinds.groups["cluster.x-k8s.io"] = {"v1beta2": [kind("Cluster", "clusters")]}
    assert await discovery.capi() is None

"""Discovery on a real API server whose kinds come and go."""

from contextlib import suppress

import pytest

from crds.providers import ProviderPolicy
from service.kube.discovery import Discovery
from service.kube.errors import NotFound, Unavailable
from service.kube.resource import CUSTOM_RESOURCE_DEFINITIONS, NODES, PODS
from service.kube.transport import Call
from service.observe.scopes import Scopes
from service.runtime.cache import Cache
from service.runtime.watch import ListWatch, Reflector
from tests.waiting import running, until
from tests.watching import until_gone

GROUP = "cluster.x-k8s.io"


@pytest.fixture
async def admin(small_cluster):
    async with small_cluster.client() as client:
        yield client


def definition(plural, kind, versions, group=GROUP, scope="Namespaced"):
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        **CUSTOM_RESOURCE_DEFINITIONS.envelope(),
        "metadata": {
            "name": f"{plural}.{group}",
            "annotations": {"api-approved.kubernetes.io": "unapproved, a test"},
        },
        "spec": {
            "group": group,
            "scope": scope,
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"},
            "versions": [
                {"name": version, "served": True, "storage": version == versions[0], "schema": schema}
                for version in versions
            ],
        },
    }


@pytest.fixture
async def install(admin):
    made = []

    async def install(*definitions):
        for body in definitions:
            await admin.create(CUSTOM_RESOURCE_DEFINITIONS, body)
            made.append(body)

    yield install
    for body in made:
        name = body["metadata"]["name"]
        with suppress(NotFound):
            await admin.delete(CUSTOM_RESOURCE_DEFINITIONS, name)
        await until_gone(admin, CUSTOM_RESOURCE_DEFINITIONS, name)
    for body in made:
        await until(lambda body=body: is_unserved(admin, body["spec"]))


async def is_unserved(admin, spec):
    """Whether the server has forgotten a kind: it goes on telling of it for a moment after its definition is gone."""
    with suppress(Unavailable):
        return await Discovery(admin).served(spec["group"], spec["names"]["kind"]) is None


@pytest.fixture
async def discovery(admin):
    """One that follows the CustomResourceDefinitions of the cluster, as the service's does."""
    discovery, cache = Discovery(admin), Cache()
    cache.listen(lambda change: discovery.crd_changed(change.key.name))
    reflector = Reflector(ListWatch(admin, CUSTOM_RESOURCE_DEFINITIONS, metadata_only=True), cache)
    async with running(reflector.run()):
        await until(reflector.synced.is_set)
        yield discovery


async def settled(answer):
    """An answer, or None while the server contradicts itself, as it does for a moment after a definition changed."""
    with suppress(Unavailable):
        return await answer


async def test_built_in_kinds_are_found_with_their_scope(discovery):
    assert await discovery.resolve("v1", "Pod") == PODS
    assert await discovery.resolve("v1", "Node") == NODES
    assert (await discovery.resolve("policy/v1", "PodDisruptionBudget")).plural == "poddisruptionbudgets"


async def test_a_kind_that_is_not_there_is_an_ordinary_answer(discovery):
    assert await discovery.resolve("example.com/v1", "Thing") is None
    assert await discovery.resolve("v1", "Thing") is None
    assert await discovery.capi() is None


async def test_answers_are_remembered(admin, discovery):
    await discovery.resolve("v1", "Pod")
    calls: list[Call] = []
    admin.observe_calls(calls.append)
    await discovery.resolve("v1", "Node")
    assert calls == []


async def test_a_kind_is_found_when_its_definition_comes_and_gone_when_it_goes(admin, discovery, install):
    assert await discovery.resolve("example.com/v1", "Thing") is None
    await install(definition("things", "Thing", ["v1"], group="example.com", scope="Cluster"))
    found = await until(lambda: settled(discovery.resolve("example.com/v1", "Thing")))
    assert (found.plural, found.namespaced) == ("things", False)
    await admin.delete(CUSTOM_RESOURCE_DEFINITIONS, "things.example.com")

    async def gone():
        try:
            return await discovery.resolve("example.com/v1", "Thing") is None
        except Unavailable:
            return False

    await until(gone)


async def test_the_newest_contract_served_is_taken_unless_one_is_forced(admin, discovery, install):
    groups: list[str] = []
    discovery.listen(groups.append)
    await install(
        definition("machines", "Machine", ["v1beta2", "v1beta1"]),
        definition("clusters", "Cluster", ["v1beta2", "v1beta1"]),
    )
    capi = await until(lambda: newest(discovery))
    assert (capi.version, capi.machines.plural, capi.clusters.plural) == ("v1beta2", "machines", "clusters")
    forced = await until(lambda: settled(Discovery(admin, contract="v1beta1").capi()))
    assert forced.version == "v1beta1"
    await until(lambda: GROUP in groups)


async def newest(discovery):
    """The contract, unless only the older one is served as yet: each version is at some moment of its own."""
    capi = await settled(discovery.capi())
    return capi if capi and capi.version == "v1beta2" else None


async def test_an_older_contract_is_taken_for_as_long_as_the_newer_one_lacks_a_kind(discovery, install):
    await install(
        definition("clusterclasses", "ClusterClass", ["v1beta2", "v1beta1"]),
        definition("machines", "Machine", ["v1beta2", "v1beta1"]),
        definition("clusters", "Cluster", ["v1beta1"]),
    )
    await until(lambda: settled(discovery.resolve(f"{GROUP}/v1beta2", "Machine")))
    assert (await until(lambda: settled(discovery.capi()))).version == "v1beta1"


async def test_an_older_cluster_api_serves_v1beta1_only(admin, install):
    await install(
        definition("machines", "Machine", ["v1beta1"]),
        definition("clusters", "Cluster", ["v1beta1"]),
    )
    capi = await until(lambda: settled(Discovery(admin).capi()))
    assert capi.version == "v1beta1"
    assert await Discovery(admin, contract="v1beta2").capi() is None


async def test_a_cluster_scoped_kind_of_an_allowed_group_is_known_while_it_is_defined(admin, discovery, install):
    group = "scopes.example.com"
    kinds: set[tuple[str, str]] = set()
    scopes = Scopes(discovery, ProviderPolicy(infrastructure_groups=frozenset({group})), kinds)
    discovery.listen(scopes.changed)
    async with running(scopes.run()):
        await install(
            definition("wides", "Wide", ["v1"], group, scope="Cluster"), definition("narrows", "Narrow", ["v1"], group)
        )
        await until(lambda: kinds == {(group, "Wide")})
        await admin.delete(CUSTOM_RESOURCE_DEFINITIONS, f"wides.{group}")
        await until(lambda: not kinds)

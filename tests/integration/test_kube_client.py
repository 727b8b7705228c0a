"""The client's verbs on a real API server."""

import asyncio

import pytest

from service.kube.client import Client, PatchKind
from service.kube.errors import (
    AlreadyExists,
    Blocked,
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    Rejected,
    Unauthorized,
    Untrusted,
)
from service.kube.resource import CONFIG_MAPS, NAMESPACES, NODES, PODS, SECRETS, SERVICE_ACCOUNTS, Resource
from tests.watching import until, until_gone

BUDGETS = Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget")
EVICTION = {"apiVersion": "policy/v1", "kind": "Eviction"}


@pytest.fixture
async def admin(small_cluster):
    async with small_cluster.client() as client:
        yield client


def config_map(name, **data):
    return {**CONFIG_MAPS.envelope(), "metadata": {"name": name, "labels": {"app": name}}, "data": data}


def pod(name, node="n1"):
    return {
        **PODS.envelope(),
        "metadata": {"name": name, "labels": {"app": "web"}},
        "spec": {
            "nodeName": node,
            "containers": [{"name": "c", "image": "i"}],
            "automountServiceAccountToken": False,
        },
    }


async def test_an_object_is_created_read_changed_replaced_and_deleted(admin, namespace):
    created = await admin.create(CONFIG_MAPS, config_map("x", a="1"), namespace=namespace)
    assert (await admin.get(CONFIG_MAPS, "x", namespace=namespace))["metadata"]["uid"] == created["metadata"]["uid"]
    patched = await admin.patch(CONFIG_MAPS, "x", {"data": {"b": "2"}}, namespace=namespace)
    assert patched["data"] == {"a": "1", "b": "2"}
    replaced = await admin.replace(CONFIG_MAPS, "x", patched | {"data": {"c": "3"}}, namespace=namespace)
    assert replaced["data"] == {"c": "3"}
    await admin.delete(CONFIG_MAPS, "x", namespace=namespace)
    with pytest.raises(NotFound) as caught:
        await admin.get(CONFIG_MAPS, "x", namespace=namespace)
    assert not caught.value.missing_kind


async def test_creating_twice_is_already_exists(admin, namespace):
    await admin.create(CONFIG_MAPS, config_map("x"), namespace=namespace)
    with pytest.raises(AlreadyExists):
        await admin.create(CONFIG_MAPS, config_map("x"), namespace=namespace)


async def test_a_dry_run_stores_nothing(admin, namespace):
    await admin.create(CONFIG_MAPS, config_map("x"), namespace=namespace, dry_run=True)
    with pytest.raises(NotFound):
        await admin.get(CONFIG_MAPS, "x", namespace=namespace)


async def test_a_stale_resource_version_is_a_conflict(admin, namespace):
    old = await admin.create(CONFIG_MAPS, config_map("x"), namespace=namespace)
    await admin.patch(CONFIG_MAPS, "x", {"data": {"a": "1"}}, namespace=namespace)
    stale = {"metadata": {"resourceVersion": old["metadata"]["resourceVersion"]}, "data": {"a": "2"}}
    with pytest.raises(Conflict):
        await admin.patch(CONFIG_MAPS, "x", stale, namespace=namespace)
    with pytest.raises(Conflict):
        await admin.replace(CONFIG_MAPS, "x", old, namespace=namespace)


@pytest.mark.parametrize("precondition", [{"uid": "another"}, {"resource_version": "1"}])
async def test_a_delete_with_a_precondition_that_fails_is_a_conflict(admin, namespace, precondition):
    await admin.create(CONFIG_MAPS, config_map("x"), namespace=namespace)
    with pytest.raises(Conflict):
        await admin.delete(CONFIG_MAPS, "x", namespace=namespace, **precondition)


async def test_a_delete_held_by_a_finalizer_returns_the_object(admin, namespace):
    body = config_map("x")
    body["metadata"]["finalizers"] = ["example.com/hold"]
    await admin.create(CONFIG_MAPS, body, namespace=namespace)
    answer = await admin.delete(CONFIG_MAPS, "x", namespace=namespace)
    assert answer["kind"] == "ConfigMap"
    assert answer["metadata"]["deletionTimestamp"]
    await admin.patch(CONFIG_MAPS, "x", {"metadata": {"finalizers": None}}, namespace=namespace)


async def test_a_delete_that_nothing_holds_returns_a_status(admin, namespace):
    await admin.create(CONFIG_MAPS, config_map("x"), namespace=namespace)
    answer = await admin.delete(CONFIG_MAPS, "x", namespace=namespace, propagation="Background")
    assert answer["kind"] == "Status"


async def test_all_kinds_of_patch(admin, namespace):
    await admin.patch(CONFIG_MAPS, "x", config_map("x", a="1"), kind=PatchKind.APPLY, namespace=namespace)
    steps = [{"op": "test", "path": "/data/a", "value": "1"}, {"op": "add", "path": "/data/b", "value": "2"}]
    patched = await admin.patch(CONFIG_MAPS, "x", steps, kind=PatchKind.JSON, namespace=namespace)
    assert patched["data"] == {"a": "1", "b": "2"}
    merged = await admin.patch(CONFIG_MAPS, "x", {"data": {"a": None}}, kind=PatchKind.MERGE, namespace=namespace)
    assert merged["data"] == {"b": "2"}


async def test_applying_what_another_manager_owns_is_a_conflict_unless_forced(admin, namespace):
    apply = {"kind": PatchKind.APPLY, "namespace": namespace}
    await admin.patch(CONFIG_MAPS, "x", config_map("x", a="1"), field_manager="one", **apply)
    with pytest.raises(Conflict, match="one"):
        await admin.patch(CONFIG_MAPS, "x", config_map("x", a="2"), field_manager="two", **apply)
    forced = await admin.patch(CONFIG_MAPS, "x", config_map("x", a="2"), field_manager="two", force=True, **apply)
    assert forced["data"] == {"a": "2"}


async def test_a_list_is_cut_into_pages_and_filtered(admin, namespace):
    await asyncio.gather(*(admin.create(CONFIG_MAPS, config_map(f"x{n}"), namespace=namespace) for n in range(12)))
    page = await admin.list_page(CONFIG_MAPS, namespace=namespace, limit=5)
    assert len(page.items) == 5
    assert page.more
    names = {item["metadata"]["name"] for item in await admin.list(CONFIG_MAPS, namespace=namespace, limit=5)}
    assert names >= {f"x{n}" for n in range(12)}
    labelled = await admin.list(CONFIG_MAPS, namespace=namespace, labels="app in (x1,x2)")
    assert sorted(item["metadata"]["name"] for item in labelled) == ["x1", "x2"]
    by_field = await admin.list(CONFIG_MAPS, namespace=namespace, fields="metadata.name=x3")
    assert [item["metadata"]["name"] for item in by_field] == ["x3"]


async def test_metadata_alone_can_be_listed(admin, namespace):
    await admin.create(CONFIG_MAPS, config_map("x", big="value"), namespace=namespace)
    page = await admin.list_page(CONFIG_MAPS, namespace=namespace, fields="metadata.name=x", metadata_only=True)
    assert page.items[0]["metadata"]["name"] == "x"
    assert "data" not in page.items[0]


async def test_what_breaks_the_schema_says_where(admin, namespace):
    with pytest.raises(Invalid) as caught:
        await admin.create(CONFIG_MAPS, config_map("Not A Name"), namespace=namespace)
    assert caught.value.causes[0].field == "metadata.name"


async def test_a_body_that_is_not_an_object_is_rejected(admin, namespace):
    with pytest.raises(Rejected):
        await admin.create(CONFIG_MAPS, {"kind": "Pod", "apiVersion": "v1"}, namespace=namespace)


async def test_a_kind_that_is_not_served_is_a_missing_kind(admin):
    with pytest.raises(NotFound) as caught:
        await admin.list(Resource("example.com", "v1", "things", "Thing"))
    assert caught.value.missing_kind


async def test_a_terminating_namespace_forbids_creation(admin):
    body = {"metadata": {"name": "going", "finalizers": ["example.com/hold"]}}
    await admin.create(NAMESPACES, body)
    await admin.delete(NAMESPACES, "going")
    with pytest.raises(Forbidden) as caught:
        await admin.create(CONFIG_MAPS, config_map("x"), namespace="going")
    assert [cause.reason for cause in caught.value.causes] == ["NamespaceTerminating"]
    await admin.patch(NAMESPACES, "going", {"metadata": {"finalizers": None}})


async def test_a_budget_that_never_allows_blocks_an_eviction_and_is_named(admin, namespace):
    await until(admin, SERVICE_ACCOUNTS, "default", bool, namespace=namespace)  # no pod without one
    await admin.create(PODS, pod("web"), namespace=namespace)
    budget = {"metadata": {"name": "never"}, "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "web"}}}}
    await admin.create(BUDGETS, budget, namespace=namespace)
    await admin.patch(
        PODS,
        "web",
        {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}},
        namespace=namespace,
        subresource="status",
    )
    await until(admin, BUDGETS, "never", lambda b: b.get("status", {}).get("observedGeneration"), namespace=namespace)
    with pytest.raises(Blocked, match="never") as caught:
        await evict(admin, "web", namespace)
    assert caught.value.causes[0].reason == "DisruptionBudget"


async def test_an_eviction_that_is_allowed_deletes_the_pod(admin, namespace):
    await until(admin, SERVICE_ACCOUNTS, "default", bool, namespace=namespace)
    await admin.create(PODS, pod("web"), namespace=namespace)
    await evict(admin, "web", namespace)
    await admin.delete(PODS, "web", namespace=namespace, grace_seconds=0)
    await until_gone(admin, PODS, "web", namespace=namespace)


async def evict(admin, name, namespace):
    body = {**EVICTION, "metadata": {"name": name, "namespace": namespace}}
    return await admin.create_subresource(PODS, name, "eviction", body, namespace=namespace)


async def test_a_service_accounts_token_works_and_is_forbidden_what_it_may_not(small_cluster, admin, namespace):
    await until(admin, SERVICE_ACCOUNTS, "default", bool, namespace=namespace)
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 600}}
    answer = await admin.create_subresource(SERVICE_ACCOUNTS, "default", "token", request, namespace=namespace)
    token = answer["status"]["token"]
    async with Client.from_inline(small_cluster.url, ca=small_cluster.authority.pem, token=token) as client:
        with pytest.raises(Forbidden, match="secrets") as caught:
            await client.list(SECRETS, namespace=namespace)
    assert token not in caught.value.message


async def test_a_wrong_token_is_unauthorized(small_cluster):
    async with Client.from_inline(small_cluster.url, ca=small_cluster.authority.pem, token="wrong") as client:
        with pytest.raises(Unauthorized):
            await client.list(NODES)


async def test_a_server_signed_by_another_ca_is_not_trusted(small_cluster, tmp_path):
    async with Client.from_inline(small_cluster.url, token=small_cluster.access.tokens["admin"]) as client:
        with pytest.raises(Untrusted):
            await client.list(NODES)


async def test_a_kubeconfig_file_leads_to_the_cluster(small_cluster):
    async with await Client.from_kubeconfig(small_cluster.kubeconfig) as client:
        assert (await client.get(NAMESPACES, "default"))["kind"] == "Namespace"
        assert client.skew_seconds is not None
        assert abs(client.skew_seconds) < 5

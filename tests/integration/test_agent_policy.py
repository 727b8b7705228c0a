"""What an agent's token can do under the shipped roles and policy, on a real API server: ask for its own host, only."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from crds.names import (
    AGENT_FIELD_MANAGER,
    ANNOTATION_RECLAIM_REASON,
    ANNOTATION_RECLAIM_REQUESTED,
    ANNOTATION_RECLAIM_REQUESTED_AT,
    LABEL_RECLAIM_AGENT,
    RECLAIM_ANNOTATIONS,
    RECLAIM_NAMESPACE,
)
from local.binaries import Assets
from local.cluster import LocalCluster
from service.kube.client import Client, PatchKind
from service.kube.errors import Denied, Forbidden
from service.kube.resource import CONFIG_MAPS, NODES, PODS, SECRETS, SERVICE_ACCOUNTS, Resource
from tests.integration.agents import ACCOUNT, Host, install, new_host
from tests.integration.policy_door import POLICIES
from tests.waiting import until

FORGED = {"manager": "kubelet", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {}}
REQUEST = {
    ANNOTATION_RECLAIM_REQUESTED: "true",
    ANNOTATION_RECLAIM_REASON: "process matched",
    ANNOTATION_RECLAIM_REQUESTED_AT: "2026-11-16T21:00:00Z",
}


@pytest.fixture(scope="module")
def cluster(small_cluster: LocalCluster, assets: Assets) -> LocalCluster:
    install(small_cluster, assets.kubectl)
    return small_cluster


@pytest.fixture
async def admin(cluster: LocalCluster) -> AsyncIterator[Client]:
    async with cluster.client() as client:
        yield client


@pytest.fixture
async def host(admin: Client, cluster: LocalCluster) -> AsyncIterator[Host]:
    made = await new_host(admin, cluster)
    await admin.patch(NODES, made.name, {"metadata": {"annotations": {"kept": "as-is"}}})
    yield made
    await admin.delete(NODES, made.name)


@pytest.fixture
async def agent(host: Host) -> AsyncIterator[Client]:
    """A client with the bound token of the agent's pod on `host`."""
    async with as_bearer(host.cluster, await host.token()) as client:
        await until(lambda: policy_in_force(client, host))
        yield client


def as_bearer(cluster: LocalCluster, token: str) -> Client:
    return Client.from_inline(cluster.url, ca=cluster.authority.pem, token=token)


async def policy_in_force(client: Client, host: Host) -> bool:
    """A policy takes a moment after its creation; until then a forbidden dry run goes through."""
    try:
        await client.patch(NODES, host.name, {"metadata": {"labels": {"probe": "x"}}}, dry_run=True)
    except Denied:
        return True
    return False


def applied(name: str, annotations: dict[str, str]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "annotations": annotations}}


async def test_the_agent_may_ask_for_its_own_host_and_again_after_clearing(agent: Client, host: Host):
    for _ in range(2):
        await agent.patch(
            NODES,
            host.name,
            applied(host.name, REQUEST),
            kind=PatchKind.APPLY,
            field_manager=AGENT_FIELD_MANAGER,
            force=True,
        )
        assert await host.request() == REQUEST
        await host.clear()
    assert (await host.node())["metadata"]["annotations"]["kept"] == "as-is"


@pytest.mark.parametrize(
    "before",
    [
        {"managedFields": [{}]},
        {"annotations": {ANNOTATION_RECLAIM_REQUESTED: "false", ANNOTATION_RECLAIM_REASON: "by hand"}},
        {"annotations": {ANNOTATION_RECLAIM_REASON: "by hand", "kept": "changed"}, "labels": {"by": "hand"}},
    ],
    ids=["fields without a manager", "another's annotations", "another's annotations and more"],
)
async def test_the_agent_may_request_a_reclaim_whichever_manager_owns_the_fields_of_the_node(
    agent: Client, host: Host, admin: Client, before: dict[str, Any]
):
    await admin.patch(NODES, host.name, {"metadata": before}, field_manager="kubectl-edit")
    body = applied(host.name, REQUEST)
    await agent.patch(NODES, host.name, body, kind=PatchKind.APPLY, field_manager=AGENT_FIELD_MANAGER, force=True)
    assert await host.request() == REQUEST


@pytest.mark.parametrize("manager", ["kubectl-annotate", "curl"])
async def test_the_three_annotations_may_be_written_by_whatever_program(agent: Client, host: Host, manager: str):
    for reason in ("first", "second"):
        request = {**REQUEST, ANNOTATION_RECLAIM_REASON: reason}
        await agent.patch(NODES, host.name, {"metadata": {"annotations": request}}, field_manager=manager)
        assert await host.request() == request


def own_more(owners: dict[str, Any]) -> None:
    owners["labeller"]["f:spec"] = {"f:taints": {}}


def take_label(owners: dict[str, Any]) -> None:
    owners["labeller"]["f:metadata"]["f:labels"] = owners["kubelet"]["f:metadata"].pop("f:labels")


def take_annotation(owners: dict[str, Any]) -> None:
    owners["labeller"]["f:metadata"]["f:annotations"] |= owners["kubelet"]["f:metadata"].pop("f:annotations")


def disown_label(owners: dict[str, Any]) -> None:
    del owners["kubelet"]["f:metadata"]["f:labels"]


@pytest.mark.parametrize("forge", [own_more, take_label, take_annotation, disown_label])
async def test_the_field_managers_of_labels_and_other_annotations_cannot_be_rewritten(
    agent: Client, host: Host, admin: Client, forge: Callable[[dict[str, Any]], None]
):
    """Or the next apply of the new owner, who does not know of them, would take them off the Node."""
    theirs = {"annotations": {"theirs": "x"}, "labels": {"zone": "secure"}}
    await admin.patch(NODES, host.name, {"metadata": theirs}, field_manager="kubelet")
    labelled = applied(host.name, {"labelled": "y"})
    await admin.patch(NODES, host.name, labelled, kind=PatchKind.APPLY, field_manager="labeller")
    entries = (await host.node())["metadata"]["managedFields"]
    forge({entry["manager"]: entry["fieldsV1"] for entry in entries})
    with pytest.raises(Denied, match="who owns which field"):
        await agent.patch(NODES, host.name, {"metadata": {"managedFields": entries}}, field_manager=AGENT_FIELD_MANAGER)


async def test_the_api_server_finds_nothing_to_warn_of_in_the_policys_expressions(cluster: LocalCluster, admin: Client):
    async def checked() -> dict[str, Any]:
        found = await admin.get(POLICIES, ACCOUNT)
        return found["status"] if found.get("status", {}).get("observedGeneration") else {}

    assert (await until(checked)).get("typeChecking", {}) == {}


async def test_another_node_is_refused(agent: Client, host: Host, admin: Client):
    other = await new_host(admin, host.cluster)
    with pytest.raises(Denied, match="only the Node that its pod runs on"):
        await agent.patch(
            NODES, other.name, applied(other.name, REQUEST), kind=PatchKind.APPLY, field_manager=AGENT_FIELD_MANAGER
        )
    assert await other.request() == {}
    await admin.delete(NODES, other.name)


@pytest.mark.parametrize(
    ("patch", "says"),
    [
        pytest.param({"spec": {"taints": []}}, "annotations only", id="removal of taints"),
        pytest.param({"spec": {"unschedulable": True}}, "annotations only", id="cordon"),
        pytest.param({"spec": {"providerID": "other://host"}}, "annotations only", id="provider id"),
        pytest.param({"metadata": {"labels": {LABEL_RECLAIM_AGENT: "off"}}}, "annotations only", id="label"),
        pytest.param({"metadata": {"finalizers": ["a.example/b"]}}, "annotations only", id="finalizer"),
        pytest.param(
            {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "b"}]}},
            "annotations only",
            id="owner",
        ),
        pytest.param({"metadata": {"managedFields": [{}]}}, "who owns which field", id="field owners forgotten"),
        pytest.param({"metadata": {"managedFields": [FORGED]}}, "who owns which field", id="field owner made up"),
        pytest.param({"metadata": {"generateName": "x"}}, "who owns which field", id="generated name"),
        pytest.param({"metadata": {"annotations": {"other": "x"}}}, "set only the annotations", id="new annotation"),
        pytest.param({"metadata": {"annotations": {"kept": "x"}}}, "set only the annotations", id="changed annotation"),
        pytest.param({"metadata": {"annotations": {"kept": None}}}, "remove none", id="removed annotation"),
        pytest.param(
            {"metadata": {"annotations": {**REQUEST, "other": "x"}}}, "set only the annotations", id="one too many"
        ),
        pytest.param(
            {"metadata": {"annotations": REQUEST}, "spec": {"taints": []}}, "annotations only", id="request and taints"
        ),
        pytest.param(
            {"metadata": {"annotations": {ANNOTATION_RECLAIM_REQUESTED: "yes"}}}, 'to "true" only', id="other value"
        ),
        pytest.param(
            {"metadata": {"annotations": {ANNOTATION_RECLAIM_REASON: "x" * 257}}}, "at most 256", id="long reason"
        ),
    ],
)
async def test_anything_but_the_three_annotations_is_refused(
    agent: Client, host: Host, patch: dict[str, Any], says: str
):
    with pytest.raises(Denied, match=says):
        await agent.patch(NODES, host.name, patch)


async def test_a_standing_request_cannot_be_withdrawn_by_the_agent(agent: Client, host: Host):
    await agent.patch(NODES, host.name, {"metadata": {"annotations": REQUEST}})
    with pytest.raises(Denied, match="remove none"):
        await agent.patch(NODES, host.name, {"metadata": {"annotations": dict.fromkeys(RECLAIM_ANNOTATIONS)}})
    assert await host.request() == REQUEST


async def test_a_token_without_a_node_claim_may_write_nothing(agent: Client, host: Host, admin: Client):
    answer = await admin.create_subresource(
        SERVICE_ACCOUNTS, ACCOUNT, "token", {"spec": {"expirationSeconds": 3600}}, namespace=RECLAIM_NAMESPACE
    )
    async with as_bearer(host.cluster, answer["status"]["token"]) as unbound:
        with pytest.raises(Denied, match="only the Node that its pod runs on"):
            await unbound.patch(NODES, host.name, {"metadata": {"annotations": REQUEST}})


async def test_the_policy_holds_even_if_a_role_grants_the_agent_everything(agent: Client, host: Host, admin: Client):
    bindings = Resource(
        group="rbac.authorization.k8s.io",
        version="v1",
        plural="clusterrolebindings",
        kind="ClusterRoleBinding",
        namespaced=False,
    )
    careless = {
        "metadata": {"name": "careless"},
        "roleRef": {"apiGroup": bindings.group, "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": RECLAIM_NAMESPACE}],
    }
    await admin.create(bindings, careless)
    try:
        await until(lambda: allowed(agent, SECRETS))
        with pytest.raises(Denied, match="nor write their subresources"):
            await agent.patch(NODES, host.name, {"status": {"phase": "x"}}, subresource="status")
        with pytest.raises(Denied, match="may not create, delete"):
            await agent.create(NODES, {"metadata": {"name": "made-up"}})
        with pytest.raises(Denied, match="may not create, delete"):
            await agent.delete(NODES, host.name)
    finally:
        await admin.delete(bindings, "careless")
        await until(lambda: denied(agent, SECRETS))


async def allowed(client: Client, resource: Resource) -> bool:
    try:
        await client.list(resource, namespace=RECLAIM_NAMESPACE)
    except Forbidden:
        return False
    return True


async def denied(client: Client, resource: Resource) -> bool:
    return not await allowed(client, resource)


async def test_the_agent_reads_nodes_and_the_config_maps_of_its_namespace_and_nothing_else(agent: Client, host: Host):
    assert host.name in [item["metadata"]["name"] for item in await agent.list(NODES)]
    await agent.list(CONFIG_MAPS, namespace=RECLAIM_NAMESPACE)
    for resource, namespace in (
        (CONFIG_MAPS, "default"),
        (CONFIG_MAPS, None),
        (SECRETS, RECLAIM_NAMESPACE),
        (PODS, None),
    ):
        with pytest.raises(Forbidden):
            await agent.list(resource, namespace=namespace)


@pytest.mark.parametrize(
    "attempt",
    [
        pytest.param(lambda agent, _: agent.create(NODES, {"metadata": {"name": "made-up"}}), id="create a node"),
        pytest.param(lambda agent, host: agent.delete(NODES, host.name), id="delete its node"),
        pytest.param(
            lambda agent, host: agent.patch(NODES, host.name, {"status": {"phase": "x"}}, subresource="status"),
            id="write its status",
        ),
        pytest.param(
            lambda agent, _: agent.create(CONFIG_MAPS, {"metadata": {"name": "x"}}, namespace=RECLAIM_NAMESPACE),
            id="write a config map",
        ),
        pytest.param(
            lambda agent, _: agent.patch(
                NODES, "made-up", applied("made-up", REQUEST), kind=PatchKind.APPLY, field_manager=AGENT_FIELD_MANAGER
            ),
            id="apply a node into being",
        ),
    ],
)
async def test_the_agents_role_grants_nothing_beyond_patching_nodes(agent: Client, host: Host, attempt: Any):
    with pytest.raises(Forbidden):
        await attempt(agent, host)


async def test_others_are_not_touched_by_the_policy(agent: Client, host: Host, admin: Client):
    await admin.patch(NODES, host.name, {"metadata": {"annotations": {"kept": "changed"}}, "spec": {"taints": []}})
    assert "owner" not in [taint["key"] for taint in (await host.node())["spec"].get("taints", [])]


async def test_the_daemon_set_reaches_labelled_nodes_whatever_their_taints(cluster: LocalCluster, admin: Client):
    labelled, plain = await new_host(admin, cluster), await new_host(admin, cluster)
    labels = {LABEL_RECLAIM_AGENT: "enabled", "kubernetes.io/os": "linux"}
    taints = [{"key": "gone", "effect": "NoExecute"}, {"key": "busy", "effect": "NoSchedule"}]
    await admin.patch(NODES, plain.name, {"metadata": {"labels": {"kubernetes.io/os": "linux"}}})
    await admin.patch(NODES, labelled.name, {"metadata": {"labels": labels}, "spec": {"taints": taints}})

    async def reached() -> set[str]:
        return await nodes_with_an_agent(admin) & {labelled.name, plain.name}

    assert await until(reached) == {labelled.name}
    for made in (labelled, plain):
        await admin.delete(NODES, made.name)


async def nodes_with_an_agent(admin: Client) -> set[str]:
    """Where the DaemonSet's controller wants its pods; there is no scheduler here to bind them."""
    pods = await admin.list(PODS, namespace=RECLAIM_NAMESPACE)
    terms = [
        pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
        for pod in pods
        if pod["metadata"].get("ownerReferences")
    ]
    return {term[0]["matchFields"][0]["values"][0] for term in terms}

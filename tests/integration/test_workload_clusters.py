"""Workload clusters by kubeconfig Secret, on real API servers behind wires that fail."""

import asyncio
import base64
import gc
import math
import secrets
import ssl
import time
import weakref
from contextlib import asynccontextmanager
from itertools import pairwise

import pytest
import yaml

from local.pki import Authority
from service.kube.errors import Unavailable
from service.kube.resource import NODES, PODS, SECRETS
from service.kube.transport import NO_ANSWER, Call, Limits
from service.runtime.backoff import Backoff
from service.runtime.informer import Informer
from service.runtime.key import Key
from service.workload import connection
from service.workload.clusters import LINGER_SECONDS, WorkloadClusters
from service.workload.connection import ClusterListener, WorkloadCluster, WorkloadUnreachable
from tests.integration.wires import tls_wire, wire
from tests.waiting import running, until

ME = Key("a", "me")


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    """Real behaviour, with pauses that a test can wait for; a server that answers is given time to."""
    monkeypatch.setattr(connection, "RECONNECT_BACKOFF", Backoff(base=0.05, cap=0.3, jitter=0.5))
    monkeypatch.setattr(connection, "LIMITS", Limits(calls=8, call_seconds=10.0, connect_seconds=10.0))


@pytest.fixture
async def admin(small_cluster):
    async with small_cluster.client() as client:
        yield client


@pytest.fixture
async def node(admin):
    name = f"node-{secrets.token_hex(4)}"
    await admin.create(NODES, {"metadata": {"name": name}, "spec": {"providerID": f"test://{name}"}})
    yield name
    await admin.delete(NODES, name)


class Management:
    """The namespace in which the kubeconfig Secret of cluster `prod` lies."""

    def __init__(self, cluster, client, namespace):
        self.cluster, self.client, self.namespace = cluster, client, namespace
        self.key = Key(namespace, "prod")

    def secret(self, url, *, token=None, ca=None, user=None, kind="cluster.x-k8s.io/secret"):
        authority = base64.b64encode(ca or self.cluster.authority.pem).decode()
        config = {
            "current-context": "here",
            "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {"server": url, "certificate-authority-data": authority}}],
            "users": [{"name": "u", "user": user or {"token": token or self.cluster.access.tokens["admin"]}}],
        }
        return {
            "metadata": {"name": "prod-kubeconfig", "labels": {"cluster.x-k8s.io/cluster-name": "prod"}},
            "type": kind,
            "data": {"value": base64.b64encode(yaml.safe_dump(config).encode()).decode()},
        }

    async def store(self, *args, **kwargs):
        await self.client.create(SECRETS, self.secret(*args, **kwargs), namespace=self.namespace)

    async def rotate(self, *args, **kwargs):
        data = {"data": self.secret(*args, **kwargs)["data"]}
        await self.client.patch(SECRETS, "prod-kubeconfig", data, namespace=self.namespace)


@pytest.fixture
def management(small_cluster, admin, namespace):
    return Management(small_cluster, admin, namespace)


@asynccontextmanager
async def opened(management, linger_seconds=LINGER_SECONDS, **listener):
    workloads = WorkloadClusters(management.client, ClusterListener(**listener), linger_seconds=linger_seconds)
    async with running(workloads.run()):
        await asyncio.sleep(0)
        workload = workloads.hold(management.key, ME)
        await asyncio.wait_for(workload.settled.wait(), 60)
        yield workloads, workload


async def test_the_nodes_of_a_cluster_are_seen_and_followed(small_cluster, management, node):
    await management.store(small_cluster.url)
    changes = []
    seen = lambda cluster, change: changes.append((cluster, change.key.name))  # noqa: E731
    async with opened(management, node=seen) as (_, workload):
        assert workload.state.reachable
        assert workload.nodes.get(Key("", node))["spec"]["providerID"] == f"test://{node}"
        await workload.client().patch(NODES, node, {"spec": {"unschedulable": True}})
        await until(lambda: workload.nodes.get(Key("", node))["spec"].get("unschedulable"))
        assert (management.key, node) in changes


async def test_a_heartbeat_is_not_reported_as_a_change(small_cluster, management, node):
    await management.store(small_cluster.url)
    events = []
    seen = lambda _cluster, change: events.append((change.key.name, without_heartbeats(change.object)))  # noqa: E731
    async with opened(management, node=seen) as (_, workload):
        beat = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "ok"}
        for second in range(3):
            status = {"status": {"conditions": [beat | {"lastHeartbeatTime": f"2026-01-01T00:00:0{second}Z"}]}}
            written = await management.client.patch(NODES, node, status, subresource="status")
        version = int(written["metadata"]["resourceVersion"])
        await until(lambda: workload.nodes.newest >= version)
    ours = [what for name, what in events if name == node]
    assert ours
    # Others may have changed the Node too, such as its annotations.
    assert all(one != other for one, other in pairwise(ours))


def without_heartbeats(raw):
    """A Node without its heartbeat times."""
    conditions = [{**one, "lastHeartbeatTime": ""} for one in raw["status"].get("conditions") or ()]
    return raw["metadata"].get("labels"), raw["metadata"].get("annotations"), raw["spec"], conditions


async def test_one_connection_and_one_watch_serve_all_holders(small_cluster, management, node):
    async with wire(small_cluster.url) as line:
        await management.store(line.url)
        async with opened(management) as (workloads, workload):
            await until(lambda: line.connections == 2)  # one for calls, one for the watch
            others = [workloads.hold(management.key, Key("a", f"other{n}")) for n in range(20)]
            assert all(other is workload for other in others)
            assert len(workloads.holders(management.key)) == 21
            await others[0].client().get(NODES, node)
            assert line.connections == 2


async def test_a_connection_is_closed_when_it_has_no_holder(small_cluster, management):
    await management.store(small_cluster.url)
    async with opened(management, linger_seconds=0.01) as (workloads, workload):
        workloads.hold(management.key, Key("a", "other"))
        workloads.release(ME)
        await asyncio.sleep(0.05)
        assert workloads.get(management.key) is workload
        workloads.release(Key("a", "other"))
        await until(lambda: workloads.get(management.key) is None)
        assert workloads.hold(management.key, ME) is not workload


async def test_no_secret_means_unreachable_until_there_is_one(small_cluster, management):
    changed: list[Key] = []
    async with opened(management, state=changed.append) as (_, workload):
        changed.clear()
        assert workload.state.reason == "KubeconfigNotFound"
        with pytest.raises(WorkloadUnreachable, match="prod-kubeconfig") as caught:
            workload.client()
        assert caught.value.reason == "KubeconfigNotFound"
        await management.store(small_cluster.url)
        await until(lambda: workload.state.reachable)
        assert changed == [management.key]


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"user": {"exec": {"command": "sh"}}}, "exec"),
        ({"user": {"tokenFile": "/etc/hostname"}}, "tokenFile"),
        ({"kind": "Opaque"}, "type"),
        ({"ca": b"no certificate"}, "CA certificate"),
    ],
)
async def test_a_kubeconfig_that_overreaches_is_refused(small_cluster, management, changes, complaint):
    async with wire(small_cluster.url) as line:
        await management.store(line.url, **changes)
        async with opened(management) as (_, workload):
            assert workload.state.reason == "KubeconfigRefused"
            assert complaint in workload.state.message
        assert line.connections == 0


async def test_a_server_signed_by_another_ca_is_not_trusted(small_cluster, management):
    await management.store(small_cluster.url, ca=Authority.create("another CA").pem)
    async with opened(management) as (_, workload):
        assert workload.state.reason == "NoAnswer"
        await management.rotate(small_cluster.url)
        await until(lambda: workload.state.reachable)


async def greet(_reader, writer):
    writer.write(b"SSH-2.0-OpenSSH_9.2\r\n")
    await writer.drain()
    writer.close()


async def test_a_kubeconfig_reveals_neither_open_ports_nor_served_certificates(small_cluster, management):
    async with await asyncio.start_server(greet, "127.0.0.1", 0) as other_service:
        port = other_service.sockets[0].getsockname()[1]
        addresses = (
            "https://127.0.0.1:1",
            f"https://127.0.0.1:{port}",
            "https://no-such-host.invalid:6443",
            small_cluster.url,
        )
        said, another = set(), Authority.create("another CA").pem
        await management.store(addresses[0], ca=another)
        for address in addresses:
            await management.rotate(address, ca=another)
            async with opened(management) as (_, workload):
                said.add((workload.state.reason, workload.state.message))
        assert said == {("NoAnswer", f"list /api/v1/nodes: {NO_ANSWER}")}


async def test_a_new_ca_is_taken_up_though_the_watch_stands_on_the_old_one(small_cluster, management, node, tmp_path):
    old, new = Authority.create("old CA"), Authority.create("new CA")
    serving = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    serving.load_cert_chain(*old.serving("old").write(tmp_path / "old"))
    trust = ssl.create_default_context(cadata=small_cluster.authority.pem.decode())
    async with tls_wire(small_cluster.url, trust=trust, serving=serving) as line:
        await management.store(line.url, ca=old.pem)
        async with opened(management) as (_, workload):
            serving.load_cert_chain(*new.serving("new").write(tmp_path / "new"))
            client = workload.client()
            client.transport._pools.pop("call").close()  # as happens when they have been idle for a while
            await asyncio.gather(*(client.get(NODES, node) for _ in range(2)), return_exceptions=True)
            await until(lambda: workload.state.reason == "NoAnswer")
            await management.rotate(line.url, ca=new.pem)
            await until(lambda: workload.state.reachable)
            assert (await workload.client().get(NODES, node))["kind"] == "Node"


async def test_a_refused_token_is_said_and_a_new_one_taken_up(small_cluster, management):
    await management.store(small_cluster.url, token="expired")
    async with opened(management) as (_, workload):
        assert workload.state.reason == "Unauthorized"
        await management.rotate(small_cluster.url)
        await until(lambda: workload.state.reachable)


async def test_a_rotated_token_is_swapped_in_on_the_next_call_without_a_new_list(small_cluster, management, node):
    calls: list[Call] = []
    await management.store(small_cluster.url)
    async with opened(management, call=calls.append) as (_, workload):
        await until(lambda: "watch" in [call.verb for call in calls])  # it is recorded after the list that it follows
        workload._client.transport.credentials.token = "expired meanwhile"
        await management.rotate(small_cluster.url, token=small_cluster.access.tokens["capi"])
        assert (await workload.client().get(NODES, node))["kind"] == "Node"
        assert workload.state.reachable
        assert [call.verb for call in calls].count("list") == 1
        assert [call.verb for call in calls].count("watch") == 1


async def test_a_cut_connection_is_resumed_without_a_new_list_and_stays_reachable(small_cluster, management, node):
    calls: list[Call] = []
    states: list[Key] = []
    broke: list[str] = []
    async with wire(small_cluster.url) as line:
        await management.store(line.url)
        listener = {"state": states.append, "restart": lambda resource, _reason: broke.append(resource)}
        async with opened(management, call=calls.append, **listener) as (_, workload):
            states.clear()
            await until(lambda: "watch" in [call.verb for call in calls])
            line.cut()
            await management.client.patch(NODES, node, {"metadata": {"labels": {"seen": "yes"}}})
            await until(lambda: "labels" in workload.nodes.get(Key("", node))["metadata"])
        assert [call.verb for call in calls].count("list") == 1
        assert states == []
        assert broke == ["nodes"]


async def test_calls_to_an_unreachable_cluster_fail_at_once_and_it_is_connected_again_by_itself(
    small_cluster, management, node
):
    async with wire(small_cluster.url) as line:
        await management.store(line.url)
        async with opened(management) as (_, workload):
            line.refusing = True
            line.cut()
            await until(lambda: not workload.state.reachable)
            assert workload.state.reason == "NoAnswer"
            with pytest.raises(WorkloadUnreachable):
                workload.client()
            await management.client.patch(NODES, node, {"metadata": {"labels": {"seen": "yes"}}})
            tries, since = line.connections, time.monotonic()
            await asyncio.sleep(0.5)
            assert line.connections - tries < 40 * (time.monotonic() - since)
            line.refusing = False
            await until(lambda: workload.state.reachable)
            await until(lambda: "labels" in workload.nodes.get(Key("", node))["metadata"])


async def test_a_frozen_cluster_is_given_up_after_two_silent_calls_though_its_watch_stands(
    small_cluster, management, node, monkeypatch
):
    monkeypatch.setattr(connection, "LIMITS", Limits(calls=8, call_seconds=3.0, connect_seconds=10.0))
    async with wire(small_cluster.url) as line:
        await management.store(line.url)
        async with opened(management) as (_, workload):
            await until(lambda: workload._reflector._watching_since < math.inf)  # the list alone makes it reachable
            line.silent = True
            client = workload.client()
            results = await asyncio.gather(*(client.get(NODES, node) for _ in range(2)), return_exceptions=True)
            assert all(isinstance(result, Unavailable) for result in results)
            with pytest.raises(WorkloadUnreachable, match="does not answer"):
                workload.client()
            line.silent = False
            line.cut()
            await until(lambda: workload.state.reachable)
            assert (await workload.client().get(NODES, node))["kind"] == "Node"


async def test_a_frozen_cluster_does_not_hold_up_another(small_cluster, management, node, monkeypatch):
    monkeypatch.setattr(connection, "LIMITS", Limits(calls=8, call_seconds=300.0, connect_seconds=300.0))
    async with wire(small_cluster.url) as line:
        await management.store(line.url)
        other = {**management.secret(small_cluster.url)}
        other["metadata"] = {"name": "other-kubeconfig", "labels": {"cluster.x-k8s.io/cluster-name": "other"}}
        await management.client.create(SECRETS, other, namespace=management.namespace)
        async with opened(management) as (workloads, _):
            line.silent = True
            healthy = workloads.hold(Key(management.namespace, "other"), Key("a", "you"))
            await until(lambda: healthy.state.reachable)
            assert (await healthy.client().get(NODES, node))["kind"] == "Node"


async def test_another_server_behind_the_same_secret_is_listed_again(small_cluster, management, node):
    await management.store("https://127.0.0.1:1")
    async with opened(management) as (_, workload):
        assert not workload.state.reachable
        workload.nodes.absorb({"metadata": {"name": "ghost", "uid": "g", "resourceVersion": str(10**12)}})
        await management.rotate(small_cluster.url)
        await until(lambda: workload.state.reachable)
        assert Key("", node) in workload.nodes
        assert Key("", "ghost") not in workload.nodes


async def test_the_guard_of_the_lease_holds_for_workload_clusters_too(small_cluster, management, node):
    class LeaseLost(Exception):
        pass

    def guard():
        raise LeaseLost

    await management.store(small_cluster.url)
    async with opened(management, guard=guard) as (_, workload):
        with pytest.raises(LeaseLost):
            await workload.client().patch(NODES, node, {"spec": {"unschedulable": True}})


async def test_a_bug_on_the_way_to_one_cluster_does_not_end_the_others(small_cluster, management, monkeypatch):
    await management.store(small_cluster.url)
    workloads = WorkloadClusters(management.client)
    async with running(workloads.run()) as task:
        await asyncio.sleep(0)
        workload = workloads.hold(management.key, ME)
        monkeypatch.setattr(workload, "_read_access", lambda: 1 / 0)
        await asyncio.wait_for(workload.settled.wait(), 60)
        assert workload.state.reason == "ConnectionBroken"
        assert not task.done()


async def test_a_cluster_that_is_left_is_freed_at_once(small_cluster, management, node):
    """What waits for a search for cycles waits long, with the buffers of its connections."""
    await management.store(small_cluster.url)
    gc.collect()
    gc.disable()
    try:
        workloads = WorkloadClusters(management.client, linger_seconds=0.0)
        async with running(workloads.run()):
            await asyncio.sleep(0)
            left = weakref.ref(workloads.hold(management.key, ME))

            def present() -> WorkloadCluster:
                found = left()
                assert found is not None
                return found

            await until(lambda: present().state.reachable)
            kept, ended = watched(present(), "kept"), watched(present(), "ended")
            await asyncio.wait_for(asyncio.gather(kept().synced(), ended().synced()), 60)
            present().unwatch("ended")
            await until(lambda: ended() is None, within=20)
            workloads.release(ME)
            await until(lambda: left() is None and kept() is None, within=20)
    finally:
        gc.enable()


def watched(workload, name):
    """A reference to a watch beside that of the Nodes."""
    return weakref.ref(workload.watch(name, lambda client: Informer(client, PODS)))

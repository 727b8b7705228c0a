"""List and watch on a real API server, through everything that happens to connections."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from local.cluster import Options
from service.kube.client import Client
from service.kube.errors import Expired
from service.kube.resource import CONFIG_MAPS
from service.kube.transport import Call
from service.runtime.backoff import Backoff
from service.runtime.cache import Cache
from service.runtime.key import Key
from service.runtime.watch import ListWatch, Reflector
from tests.integration.wires import wire
from tests.waiting import running, until

QUICK = Backoff(base=0.05, cap=0.5, jitter=0.5)


def config_map(name, **data):
    return {**CONFIG_MAPS.envelope(), "metadata": {"name": name}, "data": data}


def client_for(cluster, url=None):
    token = cluster.access.tokens["admin"]
    return Client.from_inline(url or cluster.url, ca=cluster.authority.pem, token=token)


class Watched:
    """A cache that follows the ConfigMaps of a namespace."""

    def __init__(self, client, namespace, **options):
        self.cache = Cache()
        self.restarts: list[str] = []
        source = ListWatch(client, CONFIG_MAPS, namespace=namespace, **options)
        self.reflector = Reflector(source, self.cache, backoff=QUICK)
        self.reflector.on_restart = self.restarts.append
        self.namespace = namespace

    def names(self):
        return {key.name for key in self.cache} - {"kube-root-ca.crt"}


@asynccontextmanager
async def watched(client, namespace, **options):
    found = Watched(client, namespace, **options)
    async with running(found.reflector.run()):
        await asyncio.wait_for(found.reflector.synced.wait(), 60)
        yield found


@pytest.fixture
async def admin(small_cluster):
    async with client_for(small_cluster) as client:
        yield client


async def test_creations_changes_and_deletions_reach_the_cache(admin, namespace):
    await admin.create(CONFIG_MAPS, config_map("before"), namespace=namespace)
    async with watched(admin, namespace) as found:
        assert found.names() == {"before"}
        await admin.create(CONFIG_MAPS, config_map("x", a="1"), namespace=namespace)
        await until(lambda: "x" in found.names())
        await admin.patch(CONFIG_MAPS, "x", {"data": {"a": "2"}}, namespace=namespace)
        await until(lambda: found.cache.get(Key(namespace, "x"))["data"] == {"a": "2"})
        await admin.delete(CONFIG_MAPS, "x", namespace=namespace)
        await until(lambda: found.names() == {"before"})


async def test_a_large_list_comes_in_pages(admin, namespace):
    names = {f"x{n}" for n in range(30)}
    await asyncio.gather(*(admin.create(CONFIG_MAPS, config_map(n), namespace=namespace) for n in names))
    calls: list[Call] = []
    admin.observe_calls(calls.append)
    async with watched(admin, namespace, page_size=7) as found:
        assert found.names() == names
    assert sum(call.verb == "list" for call in calls) >= 5


async def test_a_late_watch_event_does_not_replace_the_answer_to_a_newer_write(admin, namespace):
    async with watched(admin, namespace) as found:
        await admin.create(CONFIG_MAPS, config_map("x"), namespace=namespace)
        for n in range(20):
            found.cache.absorb(await admin.patch(CONFIG_MAPS, "x", {"data": {"n": str(n)}}, namespace=namespace))
            for _ in range(3):
                await asyncio.sleep(0.001)  # let the watch events of this and earlier writes arrive
                assert found.cache.get(Key(namespace, "x"))["data"]["n"] == str(n)


async def test_a_deletion_while_the_wire_is_cut_is_not_lost(small_cluster, admin, namespace):
    await admin.create(CONFIG_MAPS, config_map("x"), namespace=namespace)
    async with wire(small_cluster.url) as line, client_for(small_cluster, line.url) as client:
        async with watched(client, namespace) as found:
            line.refusing = True
            line.cut()
            await until(lambda: found.reflector.error)
            await admin.delete(CONFIG_MAPS, "x", namespace=namespace)
            await admin.create(CONFIG_MAPS, config_map("y"), namespace=namespace)
            line.refusing = False
            await until(lambda: found.names() == {"y"})
        assert found.reflector.error is None
        assert found.restarts


async def test_a_silent_wire_is_noticed_and_replaced(small_cluster, admin, namespace):
    async with (
        wire(small_cluster.url) as line,
        client_for(small_cluster, line.url) as client,
        watched(client, namespace, idle_seconds=2) as found,
    ):
        line.silent = True
        await admin.create(CONFIG_MAPS, config_map("x"), namespace=namespace)
        await until(lambda: found.reflector.error)
        assert found.names() == set()
        line.silent = False
        line.cut()  # what was swallowed cannot be repaired: TLS notices gaps
        await until(lambda: found.names() == {"x"})


async def test_a_compacted_history_is_listed_again_and_a_deletion_meanwhile_is_not_lost(new_cluster):
    flags = ("--etcd-compaction-interval=1s", "--watch-cache=false")
    cluster = new_cluster(Options(apiserver_flags=flags))
    async with client_for(cluster) as admin, wire(cluster.url) as line, client_for(cluster, line.url) as client:
        await admin.create(CONFIG_MAPS, config_map("x"), namespace="default")
        async with watched(client, "default") as found:
            line.refusing = True
            line.cut()
            await until(lambda: found.reflector.error)
            await admin.delete(CONFIG_MAPS, "x", namespace="default")
            await until(lambda: compacted_beyond(admin, found.reflector._position))
            line.refusing = False
            await until(lambda: found.names() == set() and found.reflector.error is None)
        assert "Expired" in found.restarts


async def compacted_beyond(admin, version):
    """Whether the server still remembers that version; asks by the same means, a watch."""
    try:
        async for _ in admin.watch(CONFIG_MAPS, str(version), namespace="default", timeout_seconds=1):
            pass
    except Expired:
        return True
    return False


async def test_a_restarted_api_server_is_followed_on_without_losing_anything(new_cluster):
    cluster = new_cluster()
    async with client_for(cluster) as admin:
        await admin.create(CONFIG_MAPS, config_map("x"), namespace="default")
        await admin.create(CONFIG_MAPS, config_map("y"), namespace="default")
        async with watched(admin, "default") as found:
            cluster.apiserver.kill()
            await until(lambda: found.reflector.error)
            await asyncio.to_thread(cluster.apiserver.restart)
            async with client_for(cluster) as other:
                await other.delete(CONFIG_MAPS, "x", namespace="default")
                await other.create(CONFIG_MAPS, config_map("z"), namespace="default")
            await until(lambda: found.names() == {"y", "z"})
            await until(lambda: found.reflector.error is None)

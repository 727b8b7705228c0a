"""Certificates on a real API server: rotated under load, repaired, and made once however many start."""

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
import pytest_asyncio

from certs.bundle import decode
from certs.issue import new_authority
from crds import names
from local.binaries import Assets
from local.cluster import LocalCluster
from service.kube.client import PatchKind
from service.kube.errors import KubeError
from service.kube.resource import SECRETS
from tests.integration.gate import SECRET, Gate, gate
from tests.waiting import until

CLIENTS = 4


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def door(small_cluster: LocalCluster, assets: Assets) -> AsyncIterator[Gate]:
    async with gate(small_cluster, assets, replicas=2) as opened:
        yield opened


@dataclass(frozen=True)
class Start:
    """As it was before any rotation; tests that rotate may run before the test that reads it."""

    stored: int
    trusted: set[str]
    expected: str


@pytest_asyncio.fixture(scope="module", loop_scope="module", autouse=True)
async def start(door: Gate) -> Start:
    made = [e for replica in door.replicas for e in replica.events if e["event"] == "certificates: stored"]
    expected = base64.b64encode((await bundle(door)).trusted).decode()
    return Start(len(made), await door.trusted(), expected)


@dataclass
class Load:
    """What became of the requests made meanwhile."""

    asked: int = 0
    failed: list[str] = field(default_factory=list)


@asynccontextmanager
async def load(door: Gate) -> AsyncIterator[Load]:
    """Clients that send objects without a pause, until the block ends."""
    result, stop = Load(), asyncio.Event()

    async def ask() -> None:
        while not stop.is_set():
            result.asked += 1
            try:
                await door.admitted()
            except KubeError as error:
                result.failed.append(error.message)

    async with asyncio.TaskGroup() as group:
        for _ in range(CLIENTS):
            group.create_task(ask())
        yield result
        stop.set()


async def request(door: Gate, what: str) -> None:
    """Asks for a rotation as the documentation says."""
    note = await door.kubectl("annotate", "secret", SECRET, f"{names.ANNOTATION_ROTATE}={what}")
    assert note.returncode == 0, note.stderr


async def bundle(door: Gate):
    return decode({key: base64.b64decode(value) for key, value in (await door.secret())["data"].items()})


async def test_replicas_that_start_together_make_one_authority(start: Start):
    assert start.stored == 1
    assert start.trusted == {start.expected}


async def test_the_leaf_is_rotated_under_load_without_one_refused_request(door: Gate):
    before = await bundle(door)
    async with load(door) as result:
        seen = loads(door)
        await request(door, "leaf")
        await until(lambda: changed_leaf(door, before.leaf))
        await until(lambda: all(now > then for now, then in zip(loads(door), seen, strict=True)))
        goal = result.asked + 50
        await until(lambda: result.asked > goal)
    assert result.failed == []
    after = await bundle(door)
    assert after.authority == before.authority
    assert names.ANNOTATION_ROTATE not in ((await door.secret())["metadata"].get("annotations") or {})


async def changed_leaf(door: Gate, leaf: object) -> bool:
    return (await bundle(door)).leaf != leaf


def loads(door: Gate) -> list[int]:
    """How often each replica has loaded a certificate."""
    return [sum(e["event"] == "certificates: serving" for e in replica.events) for replica in door.replicas]


async def test_the_authority_is_rotated_under_load_without_one_refused_request(door: Gate):
    before = await bundle(door)
    async with load(door) as result:
        seen = loads(door)
        await request(door, "ca")
        announced = await until(lambda: coming(door))
        assert before.authority.certificate in announced.trusted
        assert announced.leaf == before.leaf
        await until(lambda: retired(door, before.authority.certificate), within=120)
        await until(lambda: all(now > then for now, then in zip(loads(door), seen, strict=True)))
        goal = result.asked + 50
        await until(lambda: result.asked > goal)
    assert result.failed == []
    after = await bundle(door)
    assert after.authority != before.authority
    assert await door.trusted() == {base64.b64encode(after.authority.certificate).decode()}


async def coming(door: Gate):
    found = await bundle(door)
    return found if found.coming else None


async def retired(door: Gate, certificate: bytes) -> bool:
    encoded = await door.trusted()
    return all(certificate not in base64.b64decode(each) for each in encoded)


@pytest.mark.parametrize("spoilt", [b"", new_authority(datetime.now(UTC), timedelta(days=1)).certificate])
async def test_a_ca_bundle_that_another_client_overwrites_is_restored(door: Gate, spoilt: bytes):
    good = await door.trusted()
    resource, name = door.configurations[1]
    value = base64.b64encode(spoilt).decode()
    patch = [{"op": "replace", "path": "/webhooks/0/clientConfig/caBundle", "value": value}]
    await door.client.patch(resource, name, patch, kind=PatchKind.JSON)
    await until(lambda: is_trusted(door, good))
    await until(door.asked)


async def is_trusted(door: Gate, expected: set[str]) -> bool:
    return await door.trusted() == expected


async def test_a_deleted_secret_comes_back_with_the_same_certificates(door: Gate):
    before = await bundle(door)
    async with load(door) as result:
        await door.client.delete(SECRETS, SECRET, namespace=door.namespace)
        await until(lambda: exists(door))
        goal = result.asked + 20
        await until(lambda: result.asked > goal)
    assert result.failed == []
    assert await bundle(door) == before


async def exists(door: Gate) -> bool:
    try:
        return bool(await door.secret())
    except KubeError:
        return False


async def test_webhooks_registered_again_are_trusted_at_once(door: Gate):
    await door.unregister()
    await door.register(await door.replicas[1].port("webhooks"))
    await until(door.published)
    await until(door.asked)

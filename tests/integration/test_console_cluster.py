"""`5spot console-server` on a real API server: many users, each with a token and no rights but those of its owner."""

import asyncio
import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from crds.definitions import all_definitions
from local.cluster import LocalCluster
from local.crds import apply
from service import log
from service.console import viewers
from service.console.cluster import ClusterEntrance
from service.console.limits import LoginLimit
from service.kube.client import Client
from service.kube.resource import SCHEDULE_OVERRIDES, SCHEDULED_MACHINES, SERVICE_ACCOUNTS
from tests.corpus import base
from tests.integration.api_door import moved, served
from tests.integration.consoles import WITHIN, cluster_console, message, token_of, user
from tests.waiting import until

GROUP = SCHEDULED_MACHINES.group
READING = [{"apiGroups": [GROUP], "resources": ["*"], "verbs": ["get", "list", "watch"]}]
ACTING = [{"apiGroups": [GROUP], "resources": ["*"], "verbs": ["*"]}]


@pytest.fixture
async def client(small_cluster: LocalCluster) -> AsyncIterator[Client]:
    async with served(small_cluster) as found:
        for definition in all_definitions():
            await apply(found, definition)
        yield found


@pytest.fixture
async def desk(client: Client, namespace: str) -> str:
    body = moved(base(), namespace)
    body["metadata"]["name"] = "desk-7"
    await client.create(SCHEDULED_MACHINES, body, namespace=namespace)
    return namespace


@pytest.fixture
async def alice(small_cluster: LocalCluster, client: Client, desk: str) -> str:
    """The token of a user who may look and act."""
    return token_of(await user(client, small_cluster, desk, ACTING, name="alice"))


@pytest.fixture
async def bob(small_cluster: LocalCluster, client: Client, desk: str) -> str:
    """The token of a user who may only look."""
    return token_of(await user(client, small_cluster, desk, READING, name="bob"))


@pytest.fixture
async def entrance(small_cluster: LocalCluster, tmp_path: Path) -> AsyncIterator[tuple[ClusterEntrance, str]]:
    """The console, and its address."""
    async with cluster_console(small_cluster, tmp_path) as found:
        yield found


@asynccontextmanager
async def browser(address: str, headers: dict[str, str] | None = None) -> AsyncIterator[httpx.AsyncClient]:
    own = {"Origin": address, **(headers or {})}
    async with httpx.AsyncClient(base_url=address, headers=own, timeout=WITHIN, trust_env=False) as made:
        yield made


async def test_without_a_token_there_is_a_login_form_and_nothing_else(entrance: Any) -> None:
    async with browser(entrance[1]) as page:
        assert (await page.get("/fleet")).status_code == 200
        for path in ("/api/session", "/api/machines", "/api/feed", "/api/overrides"):
            answer = await page.get(path)
            assert (answer.status_code, answer.json()["login"]) == (401, True), path


@pytest.mark.parametrize("given", ["guess", "a.b.c", "x" * 16_000])
async def test_a_token_that_the_api_server_does_not_know_opens_nothing(entrance: Any, given: str) -> None:
    async with browser(entrance[1]) as page:
        answer = await page.post("/login", json={"token": given})
        assert answer.status_code == 401
        assert "set-cookie" not in answer.headers
        assert (await page.get("/api/machines", headers={"Authorization": f"Bearer {given}"})).status_code == 401
    assert entrance[0].viewers.shared == {}


@pytest.mark.parametrize("given", ["", "a b", "a\r\nImpersonate-User: admin", "é", "x" * 40_000])
async def test_what_cannot_be_a_token_is_not_sent_on(entrance: Any, given: str) -> None:
    async with browser(entrance[1]) as page:
        assert (await page.post("/login", json={"token": given})).status_code == 422


async def test_everyone_sees_and_does_what_the_api_server_lets_them(
    entrance: Any, client: Client, desk: str, alice: str, bob: str
) -> None:
    path = f"/api/machines/{desk}/desk-7"
    async with browser(entrance[1]) as hers, browser(entrance[1]) as his:
        for page, given in ((hers, alice), (his, bob)):
            assert (await page.post("/login", json={"token": given, "namespace": desk})).status_code == 200
            assert [row["name"] for row in (await page.get("/api/machines")).json()] == ["desk-7"]
        assert (await hers.get(path)).json()["rights"]["override"] is True
        assert (await his.get(path)).json()["rights"] == {"override": False, "resume": False, "kill": False}
        assert (await his.post(f"{path}/actions", json={"action": "skip"})).status_code == 403
        assert (await his.post(f"{path}/kill-switch", json={"on": True, "name": "desk-7"})).status_code == 403
        assert await client.list(SCHEDULE_OVERRIDES, namespace=desk) == []
        assert (await hers.post(f"{path}/actions", json={"action": "skip"})).status_code == 200
        [stored] = await client.list(SCHEDULE_OVERRIDES, namespace=desk)
        assert stored["spec"]["requestedBy"] == f"system:serviceaccount:{desk}:alice"


async def test_a_proxy_in_front_sends_the_token_with_every_request(entrance: Any, desk: str, bob: str) -> None:
    async with browser(entrance[1], {"Authorization": f"Bearer {bob}"}) as page:
        page.cookies.set("5spot-namespace", desk)
        answers = await asyncio.gather(*(page.get("/api/machines") for _ in range(8)))
        assert {answer.status_code for answer in answers} == {200}
        assert len(entrance[0].viewers.shared) == 1
        assert (await page.get("/api/session")).json()["logout"] is False
        forged = await page.post("/api/lines", json={"from": 0, "to": 1, "keys": []}, headers={"Origin": "https://x"})
        assert forged.status_code == 403


async def test_sessions_of_one_user_share_their_watches_and_the_last_one_ends_them(
    entrance: Any, desk: str, bob: str
) -> None:
    shared = entrance[0].viewers.shared
    async with browser(entrance[1]) as first, browser(entrance[1]) as second:
        for page in (first, second):
            await page.post("/login", json={"token": bob, "namespace": desk})
        assert [len(each.callers) for each in shared.values()] == [2]
        await first.post("/logout", json={})
        assert (await first.get("/api/machines")).status_code == 401
        assert (await second.get("/api/machines")).status_code == 200
        async with second.stream("GET", "/api/feed") as feed:
            lines = feed.aiter_lines()
            await message(lines, lambda said: "now" in said)
            await second.post("/logout", json={})
            async with asyncio.timeout(WITHIN):
                assert [line async for line in lines if line.startswith("event")] == []
        assert shared == {}


async def test_a_user_has_one_set_of_watches_for_the_namespace_that_was_chosen_last(
    entrance: Any, desk: str, bob: str
) -> None:
    shared = entrance[0].viewers.shared
    async with browser(entrance[1]) as first, browser(entrance[1]) as second, browser(entrance[1]) as third:
        await first.post("/login", json={"token": bob})
        async with first.stream("GET", "/api/feed") as feed:
            lines = feed.aiter_lines()
            await message(lines, lambda said: "now" in said)
            assert (await second.post("/login", json={"token": bob, "namespace": desk})).status_code == 200
            assert [key.namespace for key in shared] == [desk]
            async with asyncio.timeout(WITHIN):
                assert [line async for line in lines if line.startswith("event")] == [], "its page connects again"
        assert [row["name"] for row in (await first.get("/api/machines")).json()] == ["desk-7"]
        assert (await first.get("/api/session")).json()["namespace"] == desk
        many = [third.post("/login", json={"token": bob, "namespace": f"n-{number}"}) for number in range(8)]
        assert {answer.status_code for answer in await asyncio.gather(*many)} == {200}
        assert len(shared) == 1
        await first.post("/logout", json={})
        assert (await second.get("/api/session")).json()["namespace"].startswith("n-")


async def test_a_token_that_is_revoked_ends_its_session(
    entrance: Any, client: Client, desk: str, bob: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(viewers, "VERIFIED_SECONDS", 0.0)
    async with browser(entrance[1]) as page:
        await page.post("/login", json={"token": bob, "namespace": desk})
        assert (await page.get("/api/machines")).status_code == 200
        await client.delete(SERVICE_ACCOUNTS, "bob", namespace=desk)

        async def refused() -> bool:
            return (await page.get("/api/machines")).status_code == 401

        await until(refused, within=WITHIN)
    assert entrance[0].viewers.shared == {}


async def test_who_may_not_look_everywhere_chooses_a_namespace(entrance: Any, desk: str, bob: str) -> None:
    async with browser(entrance[1]) as page:
        await page.post("/login", json={"token": bob})
        assert "ScheduledMachine" in (await page.get("/api/session")).json()["unread"]
        assert (await page.get("/api/machines")).json() == []
        assert (await page.post("/namespace", json={"namespace": "../x"})).status_code == 422
        assert (await page.post("/namespace", json={"namespace": desk})).status_code == 200
        assert [row["name"] for row in (await page.get("/api/machines")).json()] == ["desk-7"]
    assert len(entrance[0].viewers.shared) == 1


async def test_logging_in_is_limited_and_a_success_does_not_count(entrance: Any, desk: str, bob: str) -> None:
    entrance[0].limit = LoginLimit(each=(3, 600.0))
    async with browser(entrance[1]) as page:
        for _ in range(5):
            assert (await page.post("/login", json={"token": bob, "namespace": desk})).status_code == 200
        for _ in range(3):
            assert (await page.post("/login", json={"token": "guess"})).status_code == 401
        answer = await page.post("/login", json={"token": bob})
        assert answer.status_code == 429
        assert int(answer.headers["retry-after"]) > 60
        # By the header of a proxy, too.
        assert (await page.get("/api/machines", headers={"Authorization": "Bearer guess"})).status_code == 429


async def test_cookies_are_kept_from_scripts_and_other_sites(entrance: Any, desk: str, bob: str) -> None:
    entrance[0].secure = True
    async with browser(entrance[1]) as page:
        answer = await page.post("/login", json={"token": bob, "namespace": desk})
    for cookie in answer.headers.get_list("set-cookie"):
        assert {"HttpOnly", "Secure", "SameSite=strict", "Path=/"} <= set(cookie.split("; ")), cookie
    assert answer.headers.get_list("set-cookie")[0].startswith("__Host-")


async def test_no_token_is_ever_logged(entrance: Any, desk: str, bob: str) -> None:
    lines = io.StringIO()
    log.configure("debug", stream=lines)
    try:
        async with browser(entrance[1]) as page:
            await page.post("/login", json={"token": bob, "namespace": desk})
            await page.post("/login", json={"token": f"{bob}x"})
            await page.get("/api/machines", headers={"Authorization": f"Bearer {bob}x"})
            await page.get(f"/api/machines/{desk}/desk-7")
    finally:
        log.configure("error")
    assert bob[:40] not in lines.getvalue()

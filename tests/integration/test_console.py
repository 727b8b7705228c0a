"""`5spot console` on a real API server: who gets in, what is refused, what is watched, and what a user may do."""

import asyncio
import re
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
import yaml

from crds.definitions import all_definitions
from local.cluster import LocalCluster
from local.crds import apply
from service.console.local import LocalEntrance
from service.kube.client import Client
from service.kube.resource import SCHEDULE_OVERRIDES, SCHEDULED_MACHINES
from service.kube.transport import Call, Request
from tests.corpus import base
from tests.integration.api_door import moved, served
from tests.integration.consoles import WITHIN, browser, console, message, user

GROUP = SCHEDULED_MACHINES.group
READING = [{"apiGroups": [GROUP], "resources": ["*"], "verbs": ["get", "list", "watch"]}]


@pytest.fixture
async def client(small_cluster: LocalCluster) -> AsyncIterator[Client]:
    async with served(small_cluster) as found:
        for definition in all_definitions():
            await apply(found, definition)
        yield found


@pytest.fixture
async def desk(client: Client, namespace: str) -> str:
    await store(client, namespace, "desk-7")
    return namespace


@pytest.fixture
async def entrance(small_cluster: LocalCluster, desk: str) -> AsyncIterator[LocalEntrance]:
    async with console(small_cluster.kubeconfig, desk) as found:
        yield found


@pytest.fixture
async def page(entrance: LocalEntrance) -> AsyncIterator[httpx.AsyncClient]:
    async with browser(entrance) as found:
        yield found


@pytest.fixture
async def reader(
    small_cluster: LocalCluster, client: Client, desk: str, tmp_path: Path
) -> AsyncIterator[httpx.AsyncClient]:
    """The page of a user who may look and do nothing else."""
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(yaml.safe_dump(await user(client, small_cluster, desk, READING)))
    async with console(kubeconfig, desk) as found, browser(found) as made:
        yield made


async def store(client: Client, namespace: str, name: str) -> None:
    body = moved(base(), namespace)
    body["metadata"]["name"] = name
    await client.create(SCHEDULED_MACHINES, body, namespace=namespace)


async def test_the_address_can_be_opened_as_soon_as_it_is_known(small_cluster: LocalCluster, desk: str) -> None:
    async with console(small_cluster.kubeconfig, desk) as entrance:
        socket.create_connection(("127.0.0.1", entrance.port), timeout=5).close()


async def test_the_token_lets_one_browser_in_once(entrance: LocalEntrance) -> None:
    async with browser(entrance, let_in=False) as stranger:
        assert (await stranger.get("/api/machines")).status_code == 401
        wrong = await stranger.post("/session", json={"token": "guess"})
        assert (wrong.status_code, "set-cookie" in wrong.headers) == (403, False)
    async with browser(entrance) as first, browser(entrance, let_in=False) as second:
        assert (await first.get("/api/machines")).status_code == 200
        again = await second.post("/session", json={"token": entrance.token.text})
        assert again.status_code == 403
        assert "used before" in again.json()["error"]
        assert (await second.get("/api/machines")).status_code == 401


async def test_a_cookie_alone_opens_nothing_as_servers_on_other_ports_get_it_too(page: httpx.AsyncClient) -> None:
    key = page.headers.pop("X-5spot-Key")
    for given in ("", "0" * len(key), "é"):
        headers = httpx.Headers([(b"X-5spot-Key", given.encode())])
        for path in ("/api/machines", "/api/session", "/api/feed", "/api/feed?key=", "/api/feed?key=guess"):
            assert (await page.get(path, headers=headers)).status_code == 401, (given, path)
    assert (await page.get("/api/machines", headers={"X-5spot-Key": key})).status_code == 200
    async with page.stream("GET", f"/api/feed?key={key}") as feed:
        assert feed.status_code == 200


async def test_scripts_and_other_sites_do_not_get_the_cookie(entrance: LocalEntrance) -> None:
    async with browser(entrance, let_in=False) as made:
        cookie = (await made.post("/session", json={"token": entrance.token.text})).headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "attacker.example"},
        {"Host": "127.0.0.1"},
        {"Origin": "http://attacker.example"},
        {"Origin": "null"},
        {"Origin": ""},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"},
        {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "no-cors"},
    ],
    ids=["rebound name", "no port", "another origin", "opaque origin", "empty origin", "another site", "another port"],
)
async def test_requests_that_another_site_can_make_are_refused(
    page: httpx.AsyncClient, headers: dict[str, str]
) -> None:
    for method, path in (("GET", "/api/machines"), ("GET", "/api/feed"), ("POST", "/api/lines")):
        answer = await page.request(method, path, headers=headers, json={"from": 0, "to": 1, "keys": []})
        assert answer.status_code == 403, (method, path)


async def test_a_change_without_an_origin_is_refused(page: httpx.AsyncClient) -> None:
    del page.headers["Origin"]
    assert (await page.post("/api/lines", json={"from": 0, "to": 1, "keys": []})).status_code == 403


async def test_a_long_body_is_not_read(page: httpx.AsyncClient) -> None:
    async def endless() -> AsyncIterator[bytes]:
        for _ in range(200):
            yield b" " * 65536

    assert (await page.post("/api/lines", content=b" " * 100_000)).status_code == 413
    with pytest.raises(httpx.HTTPError):
        (await page.post("/api/lines", content=endless())).raise_for_status()


@pytest.mark.parametrize("name", ["%2e%2e", "%2e", "a%3FdryRun=All", "..%2f..", "A", "x" * 300])
async def test_what_cannot_be_a_name_does_not_reach_the_api_server(
    page: httpx.AsyncClient, client: Client, desk: str, name: str
) -> None:
    assert (await page.delete(f"/api/overrides/{desk}/{name}")).status_code in (404, 405, 422)
    assert (await page.get(f"/api/machines/{desk}/{name}")).status_code in (404, 422)
    assert [each["metadata"]["name"] for each in await client.list(SCHEDULED_MACHINES, namespace=desk)] == ["desk-7"]


@pytest.mark.parametrize(
    "path", ["/static/..%2fserver.py", "/static/%2e%2e/server.py", "/static/guard.py", "/static//etc/passwd"]
)
async def test_only_files_of_the_pages_are_served(page: httpx.AsyncClient, path: str) -> None:
    answer = await page.get(path)
    assert answer.status_code == 404
    assert b"import" not in answer.content


@pytest.mark.parametrize("path", ["/flet", "/machine/desk-7", "/machine/a/b/c", "/fleet/x", "//"])
async def test_a_mistyped_address_is_answered_with_the_consoles_own_page(page: httpx.AsyncClient, path: str) -> None:
    answer = await page.get(str(page.base_url).rstrip("/") + path)
    assert (answer.status_code, answer.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert answer.content == (await page.get("/fleet")).content


@pytest.mark.parametrize(("method", "path"), [("GET", "/api/flet"), ("GET", "/api/machines/"), ("POST", "/flet")])
async def test_what_scripts_ask_for_in_vain_is_answered_in_json(
    page: httpx.AsyncClient, method: str, path: str
) -> None:
    answer = await page.request(method, path)
    assert (answer.status_code, answer.headers["content-type"]) == (404, "application/json")


@pytest.mark.parametrize("path", ["/", "/fleet", "/machine/a/b", "/static/main.js", "/favicon.ico", "/health", "/flet"])
async def test_a_head_is_answered_like_a_get_without_its_body(page: httpx.AsyncClient, path: str) -> None:
    head, whole = await page.head(path), await page.get(path)
    assert (head.status_code, head.content) == (whole.status_code, b"")
    assert head.headers["content-length"] == whole.headers["content-length"] == str(len(whole.content))


async def test_an_address_that_ends_with_a_slash_is_not_redirected_to_another_scheme(page: httpx.AsyncClient) -> None:
    for path in ("/fleet/", "/machine/a/b/"):
        assert (await page.get(path)).status_code == 200, path


async def test_pages_run_no_script_but_their_own(page: httpx.AsyncClient) -> None:
    answer = await page.get("/fleet")
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert re.findall(r"<script(?![^>]*\bsrc=)|<style|\bon\w+=|\bstyle=|https?://", answer.text) == []
    loaded = re.findall(r'(?:src|href)="(/static/[^"]+)"', answer.text)
    assert loaded
    for each in loaded:
        assert (await page.get(each)).status_code == 200, each


async def test_a_page_hears_of_a_new_machine(page: httpx.AsyncClient, client: Client, desk: str) -> None:
    assert [row["name"] for row in (await page.get("/api/machines")).json()] == ["desk-7"]
    async with page.stream("GET", "/api/feed") as feed:
        lines = feed.aiter_lines()
        await store(client, desk, "desk-8")
        found = await message(lines, lambda said: said.get("rows"))
        assert found["rows"][0]["name"] == "desk-8"
        stored = await client.get(SCHEDULED_MACHINES, "desk-8", namespace=desk)
        whole = {**SCHEDULED_MACHINES.envelope(), **stored, "status": {"phase": "Inactive", "message": "waits"}}
        await client.replace(SCHEDULED_MACHINES, "desk-8", whole, namespace=desk, subresource="status")
        found = await message(lines, lambda said: said.get("rows"))
        assert (found["rows"][0]["phase"], found["rows"][0]["message"]) == ("Inactive", "waits")
        await client.delete(SCHEDULED_MACHINES, "desk-8", namespace=desk)
        await message(lines, lambda said: f"{desk}/desk-8" in said.get("gone", ()))


@pytest.mark.parametrize("levels", [900, 1500], ids=["deep", "deeper than our decoder goes"])
async def test_an_object_of_any_depth_has_a_page_and_holds_up_no_other(
    page: httpx.AsyncClient, client: Client, desk: str, levels: int
) -> None:
    await store(client, desk, "desk-8")
    change = '{"spec":{"bootstrapSpec":{"spec":' + '{"k":' * levels + "1" + "}" * (levels + 3)
    path = SCHEDULED_MACHINES.item("desk-8", desk)
    headers = {"Content-Type": "application/merge-patch+json"}
    await client.transport.call(Request("patch", "PATCH", path, "scheduledmachines", change.encode(), headers))
    answer = await page.get(f"/api/machines/{desk}/desk-8")
    assert answer.status_code == 200, answer.text
    assert "too large for this page" in answer.json()["yaml"]
    assert {row["name"] for row in (await page.get("/api/machines")).json()} == {"desk-7", "desk-8"}


async def test_a_page_that_listens_again_is_told_to_read_everything(page: httpx.AsyncClient) -> None:
    async with page.stream("GET", "/api/feed", headers={"Last-Event-ID": "1"}) as feed:
        assert (await message(feed.aiter_lines(), lambda said: "now" in said))["all"] is True


async def test_at_rest_there_are_four_watches_and_nothing_else(small_cluster: LocalCluster, desk: str) -> None:
    calls: list[Call] = []
    async with (
        asyncio.timeout(WITHIN),
        console(small_cluster.kubeconfig, desk, calls=calls) as found,
        browser(found) as page,
        page.stream("GET", "/api/feed") as feed,
    ):
        lines = feed.aiter_lines()
        while sum(call.verb == "watch" for call in calls) < 4:
            await message(lines, lambda said: "now" in said)
        before = len(calls)
        for path in ("/api/session", "/api/machines", "/api/calendars") * 10:
            assert (await page.get(path)).status_code == 200
    assert [call.resource for call in calls[before:]] == []
    assert sorted(call.resource for call in calls if call.verb == "watch") == [
        "clusterschedulecalendars",
        "schedulecalendars",
        "scheduledmachines",
        "scheduleoverrides",
    ]


async def test_an_override_by_a_click_is_stored_and_ends_by_a_click(
    page: httpx.AsyncClient, client: Client, desk: str
) -> None:
    assert (await page.get(f"/api/machines/{desk}/desk-7")).json()["rights"] == {
        "override": True,
        "resume": True,
        "kill": True,
    }
    answer = await page.post(f"/api/machines/{desk}/desk-7/actions", json={"action": "skip", "reason": "fire drill"})
    assert answer.status_code == 200, answer.text
    [stored] = await client.list(SCHEDULE_OVERRIDES, namespace=desk)
    assert stored["spec"]["state"] == "Closed"
    assert stored["spec"]["reason"] == "fire drill"
    ended = await page.delete(f"/api/overrides/{desk}/{stored['metadata']['name']}")
    assert ended.status_code == 200
    assert await client.list(SCHEDULE_OVERRIDES, namespace=desk) == []


async def test_the_kill_switch_needs_the_name_as_confirmation(
    page: httpx.AsyncClient, client: Client, desk: str
) -> None:
    path = f"/api/machines/{desk}/desk-7/kill-switch"
    assert (await page.post(path, json={"on": True, "name": "desk"})).status_code == 400
    assert (await page.post(path, json={"on": True, "name": "desk-7"})).status_code == 200
    assert (await client.get(SCHEDULED_MACHINES, "desk-7", namespace=desk))["spec"]["killSwitch"] is True


async def test_a_user_without_rights_is_offered_nothing_and_a_forged_request_is_refused(
    reader: httpx.AsyncClient, client: Client, desk: str
) -> None:
    details = (await reader.get(f"/api/machines/{desk}/desk-7")).json()
    assert details["rights"] == {"override": False, "resume": False, "kill": False}
    path = f"/api/machines/{desk}/desk-7"
    forged = await asyncio.gather(
        reader.post(f"{path}/actions", json={"action": "skip"}),
        reader.post(f"{path}/kill-switch", json={"on": True, "name": "desk-7"}),
        reader.post(
            "/api/overrides",
            json={"namespace": desk, "machines": ["desk-7"], "state": "Closed", "until": "2126-01-01T00:00:00Z"},
        ),
    )
    assert [answer.status_code for answer in forged] == [403, 403, 403]
    assert await client.list(SCHEDULE_OVERRIDES, namespace=desk) == []
    assert not (await client.get(SCHEDULED_MACHINES, "desk-7", namespace=desk))["spec"].get("killSwitch")


async def test_a_page_says_which_kind_its_user_may_not_watch(reader: httpx.AsyncClient) -> None:
    session = (await reader.get("/api/session")).json()
    assert list(session["unread"]) == ["ClusterScheduleCalendar"]
    assert session["user"].startswith("system:serviceaccount:")

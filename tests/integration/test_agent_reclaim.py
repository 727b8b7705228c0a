"""The agent as a real process, with its own bound token, against a real API server and real processes."""

import json
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from crds.names import (
    AGENT_FIELD_MANAGER,
    ANNOTATION_RECLAIM_REASON,
    ANNOTATION_RECLAIM_REQUESTED,
    ANNOTATION_RECLAIM_REQUESTED_AT,
    RECLAIM_CONFIG_KEY,
    RECLAIM_CONFIG_PREFIX,
    RECLAIM_NAMESPACE,
)
from local.binaries import Assets
from local.cluster import LocalCluster
from service.kube.resource import CONFIG_MAPS, NODES
from tests.integration.agents import Host as Workstation
from tests.integration.agents import agent, events_available, install, lookalike, new_host, owner_starts
from tests.waiting import until


@pytest.fixture(scope="module")
def cluster(small_cluster: LocalCluster, assets: Assets) -> LocalCluster:
    install(small_cluster, assets.kubectl)
    return small_cluster


@pytest.fixture
async def host(cluster: LocalCluster) -> AsyncIterator[Workstation]:
    async with cluster.client() as client:
        made = await new_host(client, cluster)
        yield made
        await client.delete(NODES, made.name)


@pytest.mark.parametrize("source", ["auto", "polling"])
async def test_a_process_of_the_owner_requests_a_reclaim_of_its_own_node_only(
    host: Workstation, cluster: LocalCluster, tmp_path: Path, source: str
):
    program = lookalike(tmp_path)
    neighbour = await new_host(host.client, cluster)
    await host.configure(f"not-{program.name}", program.name)
    with agent(host, await host.token(), tmp_path, f"--source={source}") as running:
        await running.says("config")
        with owner_starts(program) as process:
            request = await host.requested()
    assert request[ANNOTATION_RECLAIM_REQUESTED] == "true"
    assert request[ANNOTATION_RECLAIM_REASON] == (
        f'process "{program.name}" (pid {process.pid}) matched "{program.name}" by its name'
    )
    asked_at = datetime.strptime(request[ANNOTATION_RECLAIM_REQUESTED_AT], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    assert abs(datetime.now(UTC) - asked_at) < timedelta(minutes=10)
    (entry,) = [
        entry for entry in (await host.node())["metadata"]["managedFields"] if entry["manager"] == AGENT_FIELD_MANAGER
    ]
    assert entry["operation"] == "Apply"
    assert await neighbour.request() == {}
    await host.client.delete(NODES, neighbour.name)


async def test_the_log_says_which_source_is_in_use(host: Workstation, tmp_path: Path):
    with agent(host, await host.token(), tmp_path) as running:
        line = await running.says("source")
    assert line["source"] == ("events" if events_available() else "polling")
    assert line["why"]


async def test_where_the_kernel_refuses_events_polling_finds_the_process(host: Workstation, tmp_path: Path):
    program = lookalike(tmp_path)
    await host.configure(program.name)
    elsewhere = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child")
    with agent(host, await host.token(), tmp_path, under=elsewhere) as running:
        line = await running.says("source")
        assert (line["source"], line["level"]) == ("polling", "warning")
        with owner_starts(program) as process:
            assert f"pid {process.pid}" in (await host.requested())[ANNOTATION_RECLAIM_REASON]


async def test_a_process_that_already_runs_is_found_at_start_by_its_command_line(host: Workstation, tmp_path: Path):
    program = lookalike(tmp_path)
    await host.configure(f"{program.name} 301")
    with owner_starts(program, "301"), agent(host, await host.token(), tmp_path):
        reason = (await host.requested())[ANNOTATION_RECLAIM_REASON]
    assert reason.endswith("by its command line")


async def test_patterns_are_reloaded_while_running(host: Workstation, tmp_path: Path):
    program = lookalike(tmp_path)
    with owner_starts(program), agent(host, await host.token(), tmp_path) as running:
        await host.configure()
        await host.configure("nothing-of-this-name")
        await until(lambda: "nothing-of-this-name" in str(running.lines("config")))
        assert await host.request() == {}
        await host.configure(program.name)
        await host.requested()


async def test_an_unreadable_list_makes_the_agent_inert_until_it_is_put_right(host: Workstation, tmp_path: Path):
    program = lookalike(tmp_path)
    await host.configure(program.name)
    name = f"{RECLAIM_CONFIG_PREFIX}{host.name}"
    broken = {"data": {RECLAIM_CONFIG_KEY: f'["{program.name}"'}}
    await host.client.patch(CONFIG_MAPS, name, broken, namespace=RECLAIM_NAMESPACE)
    with owner_starts(program), agent(host, await host.token(), tmp_path) as running:
        assert "not JSON" in (await running.says("config-problem"))["problem"]
        assert await host.request() == {}
        mended = {"data": {RECLAIM_CONFIG_KEY: json.dumps([program.name])}}
        await host.client.patch(CONFIG_MAPS, name, mended, namespace=RECLAIM_NAMESPACE)
        await host.requested()


async def test_a_match_outlives_both_the_process_and_an_outage_of_the_api_server(
    new_cluster: Callable[[], LocalCluster], assets: Assets, tmp_path: Path
):
    own = new_cluster()
    install(own, assets.kubectl)
    program = lookalike(tmp_path)
    async with own.client() as client:
        host = await new_host(client, own)
        await host.configure(program.name)
        with agent(host, await host.token(), tmp_path) as running:
            await running.says("config")
            own.apiserver.kill()
            with owner_starts(program) as process:
                await running.says("request-delayed")
            own.apiserver.restart()
            assert f"pid {process.pid}" in (await host.requested())[ANNOTATION_RECLAIM_REASON]


async def test_an_api_server_that_hangs_delays_the_request_but_does_not_swallow_it(
    host: Workstation, cluster: LocalCluster, tmp_path: Path
):
    program = lookalike(tmp_path)
    await host.configure(program.name)
    with agent(host, await host.token(), tmp_path) as running:
        await running.says("config")
        cluster.apiserver.pause()
        try:
            with owner_starts(program) as process:
                assert "timed out" in (await running.says("request-delayed"))["problem"]
        finally:
            cluster.apiserver.resume()
        assert f"pid {process.pid}" in (await host.requested())[ANNOTATION_RECLAIM_REASON]


async def test_after_clearing_the_agent_asks_again_while_the_process_runs(host: Workstation, tmp_path: Path):
    program = lookalike(tmp_path)
    await host.configure(program.name)
    with (
        owner_starts(program),
        agent(host, await host.token(), tmp_path, "--refire-interval=0.1") as running,
    ):
        await host.requested()
        await host.clear()
        await running.says("requested", times=2)
        await host.requested()


async def test_after_clearing_the_agent_stays_quiet_until_a_process_starts_again(host: Workstation, tmp_path: Path):
    program = lookalike(tmp_path)
    await host.configure(program.name)
    with agent(host, await host.token(), tmp_path, "--refire-interval=0") as running:
        with owner_starts(program):
            await host.requested()
        await host.clear()
        await running.says("cleared")
        with owner_starts(program) as second:
            assert f"pid {second.pid}" in (await host.requested())[ANNOTATION_RECLAIM_REASON]
            await running.says("requested", times=2)
    assert len(running.lines("requested")) == 2


async def test_one_request_is_written_once_however_many_processes_start(host: Workstation, tmp_path: Path):
    program = lookalike(tmp_path)
    await host.configure(program.name)
    with agent(host, await host.token(), tmp_path) as running:
        await running.says("config")
        with owner_starts(program), owner_starts(program), owner_starts(program):
            first = await host.requested()
            await host.configure(program.name, "more")
            await running.says("config", times=2)
            assert await host.request() == first
    assert len(running.lines("requested")) == 1


async def test_an_agent_that_starts_leaves_a_reclaim_request_as_it_is(host: Workstation, tmp_path: Path):
    program = lookalike(tmp_path)
    await host.configure(program.name)
    by_hand = {ANNOTATION_RECLAIM_REQUESTED: "true", ANNOTATION_RECLAIM_REASON: "asked for by hand"}
    await host.client.patch(NODES, host.name, {"metadata": {"annotations": by_hand}})
    with owner_starts(program), agent(host, await host.token(), tmp_path) as running:
        await running.says("config")
        await host.configure(program.name, "more")
        await running.says("config", times=2)
        assert await host.request() == by_hand


async def test_a_node_of_another_host_is_refused_and_the_match_kept(host: Workstation, tmp_path: Path):
    program = lookalike(tmp_path)
    await host.configure(program.name)
    await host.set_machine_id("0" * 32)
    with owner_starts(program), agent(host, await host.token(), tmp_path) as running:
        assert "machineID" in (await running.says("wrong-host"))["problem"]
        assert "machineID" in (await running.says("refused-wrong-host"))["problem"]
        assert await host.request() == {}
        await host.set_machine_id(host.machine_id)
        await host.requested()


async def test_a_rotated_token_is_taken_up(host: Workstation, tmp_path: Path):
    program = lookalike(tmp_path)
    await host.configure(program.name)
    with owner_starts(program), agent(host, "not-a-token", tmp_path) as running:
        assert "401" in (await running.says("watch-interrupted"))["problem"]
        (tmp_path / "token").write_text(await host.token())
        await host.requested()


async def test_a_node_that_registers_again_under_its_name_gets_a_new_reclaim_request(host: Workstation, tmp_path: Path):
    program = lookalike(tmp_path)
    await host.configure(program.name)
    with owner_starts(program), agent(host, await host.token(), tmp_path, "--refire-interval=0") as running:
        await host.requested()
        old = await host.node()
        await host.client.delete(NODES, host.name)
        await running.says("cleared")
        fresh = {"metadata": {"name": host.name}, "status": old["status"]}
        await host.client.create(NODES, fresh)
        (tmp_path / "token").write_text(await host.token())
        await host.requested()
        assert (await host.node())["metadata"]["uid"] != old["metadata"]["uid"]


async def test_sigterm_ends_the_agent_cleanly(host: Workstation, tmp_path: Path):
    await host.configure("nothing-of-this-name")
    with agent(host, await host.token(), tmp_path) as running:
        await running.says("config")
        assert running.stop() == 0
    assert running.lines("stopped")[0]["signal"] == "SIGTERM"

"""The composition root as a process: started, asked, stopped and killed like the kubelet would."""

import asyncio
import signal
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
import yaml

from certs.bundle import Policy, first_bundle
from crds import names
from service.app import Component, EndedEarlyError, Supervisor
from service.controller.shared import Shared
from service.http.admission import Admission
from service.kube.client import Client
from service.settings import Settings
from tests.service.process import Process, started
from tests.waiting import running, until
from tests.webhooks.reviews import machine, review

BUNDLE = first_bundle(("localhost", "127.0.0.1"), datetime.now(UTC), Policy())


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A certificate as cert-manager would mount it, and a kubeconfig that leads nowhere."""
    (tmp_path / "tls.crt").write_bytes(BUNDLE.leaf.certificate)
    (tmp_path / "tls.key").write_bytes(BUNDLE.leaf.key)
    cluster = {"server": "https://127.0.0.1:1"}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "x",
        "clusters": [{"name": "x", "cluster": cluster}],
        "users": [{"name": "x", "user": {"token": "t"}}],
        "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
    }
    (tmp_path / "config").write_text(yaml.safe_dump(config))
    return tmp_path


def flags(files: Path, **more: str) -> list[str]:
    given = {
        "bind-address": "127.0.0.1",
        "webhook-port": "0",
        "health-port": "0",
        "metrics-port": "0",
        "kubeconfig": str(files / "config"),
        "certificates": "files",
        "certificate-file": str(files / "tls.crt"),
        "key-file": str(files / "tls.key"),
        "drain-seconds": "0.5",
    } | more
    return [word for name, value in given.items() for word in (f"--{name}", value)]


def alone(files: Path, **more: str) -> list[str]:
    """Without a controller, which would wait for an API server."""
    return ["--no-controller", *flags(files, **more)]


async def ask(port: int, path: str) -> tuple[int, dict]:
    async with httpx.AsyncClient() as client:
        answer = await client.get(f"http://127.0.0.1:{port}{path}")
        return answer.status_code, answer.json()


def trusting() -> httpx.AsyncClient:
    return httpx.AsyncClient(verify=ssl.create_default_context(cadata=BUNDLE.trusted.decode()))


async def test_the_service_serves_drains_on_sigterm_and_exits_with_zero(files: Path):
    # Long enough to be asked twice in, on a machine that does much else.
    async with started(alone(files, **{"drain-seconds": "4"})) as process, trusting() as client:
        webhooks, health, metrics = [await process.port(name) for name in ("webhooks", "health", "metrics")]
        await until(lambda: ready(health))
        assert (await ask(health, "/health"))[0] == 200
        url = f"https://localhost:{webhooks}{names.VALIDATE_PATH}"
        # In no namespace: what a namespace allows, only an API server could tell.
        body = orjson.dumps(review(machine(), namespace=""))
        assert (await client.post(url, content=body)).json()["response"]["allowed"] is True
        async with httpx.AsyncClient() as plain:
            page = (await plain.get(f"http://127.0.0.1:{metrics}/metrics")).text
        assert 'fivespot_admission_requests_total{outcome="allowed",webhook="validate"} 1.0' in page
        assert "fivespot_certificate_expiry_timestamp_seconds 0.0" not in page

        process.child.send_signal(signal.SIGTERM)
        await until(lambda: any(event["event"] == "stopping" for event in process.events))
        status, answer = await ask(health, "/ready")
        assert (status, answer["problems"]) == (503, {"service": "is stopping"})
        assert (await client.post(url, content=body)).status_code == 200
        assert await process.ended() == 0
    assert process.events[-1]["event"] == "stopped"


async def ready(port: int) -> bool:
    try:
        return (await ask(port, "/ready"))[0] == 200
    except httpx.ConnectError:
        return False


async def test_ctrl_c_does_not_wait_for_the_drain(files: Path):
    async with started(alone(files, **{"drain-seconds": "600"})) as process:
        await until_listening(process)
        process.child.send_signal(signal.SIGINT)
        assert await process.ended() == 0


async def test_a_second_sigterm_cuts_the_drain_short(files: Path):
    async with started(alone(files, **{"drain-seconds": "600"})) as process:
        await until_listening(process)
        process.child.send_signal(signal.SIGTERM)
        await until(lambda: any(event["event"] == "stopping" for event in process.events))
        process.child.send_signal(signal.SIGTERM)
        assert await process.ended() == 0


async def until_listening(process: Process) -> None:
    port = await process.port("health")
    await until(lambda: ready(port))


async def test_what_cannot_be_set_ends_the_process_with_one_sentence(files: Path):
    async with started(alone(files, **{"log-level": "loud"})) as process:
        assert await process.ended() == 1
    assert [event["event"].startswith("5spot: --log-level") for event in process.events] == [True]


async def test_without_a_certificate_the_service_lives_but_is_not_ready(files: Path):
    (files / "tls.key").unlink()
    async with started(alone(files)) as process:
        port = await process.port("health")
        await until(lambda: answers(port))
        assert (await ask(port, "/health"))[0] == 200
        status, answer = await ask(port, "/ready")
        assert status == 503
        assert set(answer["problems"]) == {"certificate", "webhooks"}


async def answers(port: int) -> bool:
    try:
        return bool(await ask(port, "/health"))
    except httpx.ConnectError:
        return False


@asynccontextmanager
async def prepared(
    files: Path, **components: Callable[[Shared], Component]
) -> AsyncIterator[tuple[Supervisor, Shared]]:
    """The service inside this process, with components of the test's own."""
    words = flags(files)
    given: dict[str, Any] = {
        words[n].removeprefix("--").replace("-", "_"): words[n + 1] for n in range(0, len(words), 2)
    }
    settings = Settings(**given)
    async with Client.from_inline("https://127.0.0.1:1", token="t") as client:
        shared = Shared(settings=settings, client=client, clock=settings.clock())
        with Supervisor(shared, [make(shared) for make in components.values()]) as service:
            yield service, shared


def admission(service: Supervisor) -> Admission:
    assert service.admission is not None
    return service.admission


async def test_a_component_that_dies_takes_the_whole_service_with_it(files: Path):
    async def dying() -> None:
        raise ValueError("out of ideas")

    async with prepared(files, dying=lambda _: Component("dying", dying)) as (service, _):
        with pytest.raises(ExceptionGroup) as caught:
            await asyncio.wait_for(service.run(), 60)
    assert caught.group_contains(ValueError, match="out of ideas")


async def test_a_component_that_just_returns_has_died_too(files: Path):
    async def leaving() -> None:
        return

    async with prepared(files, leaving=lambda _: Component("leaving", leaving)) as (service, _):
        with pytest.raises(ExceptionGroup) as caught:
            await asyncio.wait_for(service.run(), 60)
    assert caught.group_contains(EndedEarlyError, match="leaving ended")


async def test_readiness_waits_for_every_component(files: Path):
    reason: list[str | None] = ["caches are not synced"]

    def waiting(shared: Shared) -> Component:
        return Component("controller", lambda: wait_for(shared.stopping), lambda: reason[0])

    async with prepared(files, waiting=waiting) as (service, shared), running(service.run()):
        await until(lambda: answers(service.health.port))
        await until(lambda: admission(service).endpoint.listening)
        assert (await ask(service.health.port, "/ready"))[1]["problems"] == {"controller": "caches are not synced"}
        reason[0] = None
        assert (await ask(service.health.port, "/ready"))[0] == 200
        shared.stopping.set()
        await until(service._health.tasks["health"].done)


async def test_components_put_their_work_down_before_the_webhooks_stop(files: Path):
    order: list[str] = []

    def careful(shared: Shared) -> Component:
        async def run() -> None:
            await shared.stopping.wait()
            await asyncio.sleep(0.05)
            order.append("component" if listening() else "too late")

        return Component("careful", run)

    async with prepared(files, careful=careful) as (service, shared):
        listening = lambda: not service._health.tasks["webhooks"].done()  # noqa: E731
        running_service = asyncio.create_task(service.run())
        await until(lambda: admission(service).endpoint.listening)
        shared.stopping.set()
        await asyncio.wait_for(running_service, 60)
    assert order == ["component"]


async def test_a_component_that_had_to_abandon_its_work_still_gives_back_what_it_holds(files: Path):
    given_back: list[str] = []

    def slow(shared: Shared) -> Component:
        async def run() -> None:
            await shared.stopping.wait()
            await asyncio.sleep(shared.settings.stop_seconds)  # as for a worker that hangs
            await asyncio.sleep(0.2)
            given_back.append("lease")

        return Component("slow", run)

    async with prepared(files, slow=slow) as (service, shared):
        shared.settings = shared.settings.model_copy(update={"stop_seconds": 0.1})
        running_service = asyncio.create_task(service.run())
        await until(lambda: admission(service).endpoint.listening)
        shared.stopping.set()
        await asyncio.wait_for(running_service, 30)
    assert given_back == ["lease"]


async def test_a_component_that_does_not_stop_is_abandoned(files: Path):
    async def stubborn() -> None:
        await asyncio.Event().wait()

    async with prepared(files, stubborn=lambda _: Component("stubborn", stubborn)) as (service, shared):
        running_service = asyncio.create_task(service.run())
        await until(lambda: admission(service).endpoint.listening)
        shared.stopping.set()
        shared.abort.set()
        await asyncio.wait_for(running_service, shared.settings.stop_seconds)
    assert service._health.tasks["stubborn"].cancelled()


async def test_the_webhooks_ask_the_informer_of_clusters(files: Path):
    def watching(shared: Shared) -> Component:
        return Component(
            "watcher", lambda: wait_for(shared.stopping), cluster_exists=lambda _namespace, name: name != "production"
        )

    async with prepared(files, watching=watching) as (service, _), running(service.run()), trusting() as client:
        await until(lambda: admission(service).endpoint.listening)
        url = f"https://localhost:{admission(service).endpoint.port}{names.VALIDATE_PATH}"
        answer = await client.post(url, content=orjson.dumps(review(machine())))
        assert "no Cluster production" in answer.json()["response"]["warnings"][0]


async def test_the_webhooks_refuse_kinds_that_turn_out_to_be_cluster_scoped(files: Path):
    async with prepared(files) as (service, shared), running(service.run()), trusting() as client:
        await until(lambda: admission(service).endpoint.listening)
        url = f"https://localhost:{admission(service).endpoint.port}{names.VALIDATE_PATH}"
        body = orjson.dumps(review(machine()))
        assert (await client.post(url, content=body)).json()["response"]["allowed"]
        shared.cluster_scoped.add(("infrastructure.cluster.x-k8s.io", "RemoteMachine"))
        refusal = (await client.post(url, content=body)).json()["response"]
        assert [cause["field"] for cause in refusal["status"]["details"]["causes"]] == ["spec.infrastructureSpec.kind"]


async def wait_for(event: asyncio.Event) -> None:
    await event.wait()

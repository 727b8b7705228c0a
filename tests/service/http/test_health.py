import asyncio

import httpx
import pytest

from service.http.health import Health, create_app
from tests.waiting import running


@pytest.fixture
def health() -> Health:
    return Health()


@pytest.fixture
async def ask(health: Health):
    async with httpx.AsyncClient(transport=httpx.ASGITransport(create_app(health)), base_url="http://health") as client:

        async def ask(path: str) -> tuple[int, dict[str, str]]:
            answer = await client.get(path)
            return answer.status_code, answer.json()["problems"]

        yield ask


async def test_a_process_whose_tasks_run_is_healthy(health: Health, ask):
    async with running(asyncio.Event().wait()) as task:
        health.tasks["worker"] = task
        assert await ask("/health") == (200, {})
        assert await ask("/ready") == (200, {})


async def test_a_task_that_ended_makes_the_process_unhealthy_and_unready(health: Health, ask):
    health.tasks["worker"] = asyncio.ensure_future(asyncio.sleep(0))
    await health.tasks["worker"]
    assert await ask("/health") == (503, {"worker": "has ended"})
    assert await ask("/ready") == (503, {"worker": "has ended"})


async def test_what_is_not_ready_says_why_and_is_healthy_all_the_same(health: Health, ask):
    health.checks = {"certificate": lambda: None, "caches": lambda: "not synced yet"}
    assert await ask("/ready") == (503, {"caches": "not synced yet"})
    assert await ask("/health") == (200, {})


async def test_a_process_that_stops_is_healthy_but_takes_no_more_work(health: Health, ask):
    health.tasks["worker"] = asyncio.ensure_future(asyncio.sleep(0))
    await health.tasks["worker"]
    health.stopping = True
    assert await ask("/health") == (200, {})
    assert await ask("/ready") == (503, {"service": "is stopping"})

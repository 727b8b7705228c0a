import subprocess
import sys

import httpx
import orjson
import pytest
from prometheus_client.parser import text_string_to_metric_families

from crds import names
from service import metrics
from tests.webhooks.reviews import machine, review
from webhooks.routes import create_app
from webhooks.verdict import Gate


@pytest.fixture
async def page():
    transport = httpx.ASGITransport(metrics.create_app())
    async with httpx.AsyncClient(transport=transport, base_url="http://metrics") as client:

        async def read() -> dict[str, float]:
            text = (await client.get("/metrics")).text
            return {
                f"{sample.name}{sorted(sample.labels.items())}": sample.value
                for family in text_string_to_metric_families(text)
                for sample in family.samples
            }

        yield read


async def test_every_metric_of_ours_has_our_prefix_and_a_help_text():
    for family in metrics.REGISTRY.collect():
        assert family.documentation
        assert family.name.startswith(("fivespot_", "python_"))


def test_what_alerts_count_is_there_before_it_happens_for_the_first_time():
    code = "import prometheus_client as p, service.metrics as m; print(p.generate_latest(m.REGISTRY).decode())"
    fresh = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.splitlines()
    for name, results in {
        "drains": ("completed", "timed_out", "skipped"),
        "evictions": ("accepted", "blocked"),
        "forced_pod_deletions": ("accepted", "failed"),
    }.items():
        assert {f'fivespot_{name}_total{{result="{result}"}} 0.0' for result in results} <= set(fresh)


async def test_admission_is_counted_by_outcome_and_measured(page):
    app = create_app(Gate(), metrics.AdmissionRecorder(), metrics.instrument)
    before = await page()
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://webhooks") as client:
        for given in (machine(), machine(priority=999), machine(priority=999)):
            await client.post(names.VALIDATE_PATH, content=orjson.dumps(review(given)))
        await client.get(names.VALIDATE_PATH)
        await client.post("/elsewhere")
    after = await page()

    def grown(key: str) -> float:
        return after.get(key, 0.0) - before.get(key, 0.0)

    assert grown("fivespot_admission_requests_total[('outcome', 'allowed'), ('webhook', 'validate')]") == 1
    assert grown("fivespot_admission_requests_total[('outcome', 'invalid'), ('webhook', 'validate')]") == 2
    assert grown("fivespot_admission_violations_total[('field', 'spec.priority')]") == 2
    handler = f"('handler', '{names.VALIDATE_PATH}')"
    assert grown(f"fivespot_admission_duration_seconds_count[{handler}, ('status', '2xx')]") == 3
    assert grown(f"fivespot_admission_duration_seconds_count[{handler}, ('status', '4xx')]") == 1
    assert grown("fivespot_admission_duration_seconds_count[('handler', 'none'), ('status', '4xx')]") == 1


@pytest.mark.parametrize(
    ("field", "label"),
    [
        ("spec.priority", "spec.priority"),
        ("spec.nodeTaints[3].key", "spec.nodeTaints"),
        ("spec.schedule.daysOfWeek[0]", "spec.schedule"),
        ("spec.whatever", "other"),
        ("x" * 100, "other"),
        ("", "other"),
    ],
)
def test_users_cannot_invent_labels(field: str, label: str):
    before = metrics.ADMISSION_VIOLATIONS.labels(label)._value.get()
    metrics.AdmissionRecorder().answered("validate", "invalid", (field,))
    assert metrics.ADMISSION_VIOLATIONS.labels(label)._value.get() == before + 1


async def test_the_page_is_served_in_the_format_that_is_asked_for():
    transport = httpx.ASGITransport(metrics.create_app())
    async with httpx.AsyncClient(transport=transport, base_url="http://metrics") as client:
        plain = await client.get("/metrics")
        assert plain.headers["content-type"].startswith("text/plain")
        assert "fivespot_build_info" in plain.text
        accept = {"accept": "application/openmetrics-text; version=1.0.0"}
        assert (await client.get("/metrics", headers=accept)).text.endswith("# EOF\n")

"""`5spot report` on a real API server, and on a real Prometheus with two weeks of the operator's metrics in it."""

import asyncio
import csv
import io
import json
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from crds import names
from local.cluster import LocalCluster
from local.ports import ANY_PORTS
from service.cli import main
from service.kube.resource import SCHEDULED_MACHINES
from tests.corpus import base
from tests.integration.api_door import moved, served
from tests.monitoring.prometheus import programs as prometheus_programs

HOUR, DAY, STEP = timedelta(hours=1), timedelta(days=1), timedelta(minutes=5)


def service(begins: datetime) -> dict[str, Any]:
    moments = {
        "opened": begins,
        "requested": begins,
        "ready": begins + timedelta(seconds=40),
        "shutdown": begins + 8 * HOUR,
        "gone": begins + 8 * HOUR + timedelta(minutes=6),
    }
    return {**{name: at.strftime("%Y-%m-%dT%H:%M:%SZ") for name, at in moments.items()}, "reason": "WindowClosed"}


@pytest.fixture
async def desk(small_cluster: LocalCluster, namespace: str) -> str:
    """A namespace with a machine that served on two days, as far as its history says."""
    now = datetime.now(UTC).replace(microsecond=0)
    async with served(small_cluster) as client:
        body = moved(base(), namespace)
        body["metadata"] |= {"name": "desk-7", "annotations": {names.ANNOTATION_HOURLY_COST: "2"}}
        stored = await client.create(SCHEDULED_MACHINES, body, namespace=namespace)
        status = {"phase": "Inactive", "history": [service(now - 3 * DAY), service(now - 2 * DAY)]}
        await client.replace(
            SCHEDULED_MACHINES, "desk-7", stored | {"status": status}, namespace=namespace, subresource="status"
        )
    return namespace


async def report(cluster: LocalCluster, *words: str) -> int:
    return await asyncio.to_thread(main, ["report", "--kubeconfig", str(cluster.kubeconfig), *words])


async def test_the_history_of_a_real_object_is_reported_in_every_form(
    small_cluster: LocalCluster, desk: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await report(small_cluster, "-n", desk, "-o", "json") == 0
    found = json.loads(capsys.readouterr().out)
    # The object is new, so what happened before its creation is not counted against always on.
    assert found["totals"]["machines"] == 1
    assert found["machines"][0]["name"] == "desk-7"
    assert await report(small_cluster, "-n", desk, "-o", "csv") == 0
    (line,) = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert line["namespace"] == desk
    assert await report(small_cluster, "-n", desk, "-o", "html") == 0
    assert "<b>desk-7</b>" in capsys.readouterr().out
    assert await report(small_cluster, "-n", desk) == 0
    assert "desk-7" in capsys.readouterr().out


def test_wrong_usage_says_what_to_write(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "--since", "soon"]) == 2
    assert "--since needs a time such as 30d" in capsys.readouterr().err
    assert main(["report", "--prometheus", "nowhere"]) == 2
    assert "--prometheus needs an address" in capsys.readouterr().err


def test_a_prometheus_that_does_not_answer_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "--prometheus", f"http://127.0.0.1:{ANY_PORTS.pick()}"]) == 2
    assert "Prometheus at 127.0.0.1 does not answer" in capsys.readouterr().err


# A real Prometheus

MACHINES = 20
DAYS = 14
NIGHT = range(18, 24)
"""Each machine serves from 18:00 to midnight, and is Ready a step after it was requested."""


def fortnight(until: datetime) -> Iterator[tuple[str, float, datetime]]:
    """The operator's metrics over two weeks and a day, as a scrape every five minutes finds them."""
    services = late = 0.0
    at = until - (DAYS + 1) * DAY
    while at <= until:
        serving = at.hour in NIGHT
        joining = serving and at.hour == NIGHT[0] and at.minute < 5
        if serving and at.hour == NIGHT[0] and at.minute == 5:
            services += MACHINES
            late += MACHINES / 4
        yield 'fivespot_scheduledmachines{phase="Active"}', MACHINES if serving else 0, at
        yield 'fivespot_scheduledmachines{phase="Inactive"}', 0 if serving else MACHINES, at
        yield "fivespot_scheduledmachines_ready", MACHINES if serving and not joining else 0, at
        yield 'fivespot_ready_lateness_seconds_bucket{le="60.0"}', services - late, at
        yield "fivespot_ready_lateness_seconds_count", services, at
        yield 'fivespot_time_to_ready_seconds_bucket{kind="RemoteMachine",le="30.0"}', services / 2, at
        yield 'fivespot_time_to_ready_seconds_bucket{kind="RemoteMachine",le="60.0"}', services, at
        yield 'fivespot_time_to_ready_seconds_bucket{kind="RemoteMachine",le="+Inf"}', services, at
        yield 'fivespot_time_to_ready_seconds_count{kind="RemoteMachine"}', services, at
        yield 'fivespot_drains_total{result="timed_out"}', services / 10, at
        at += STEP


def openmetrics(until: datetime) -> str:
    """Grouped by series, as the format asks for."""
    by_family: dict[str, list[str]] = {}
    for series, value, at in fortnight(until):
        by_family.setdefault(series, []).append(f"{series} {value} {at.timestamp():.0f}")
    lines = [line for series in sorted(by_family) for line in by_family[series]]
    return "\n".join(lines) + "\n# EOF\n"


@pytest.fixture
def prometheus(tmp_path: Path) -> Iterator[str]:
    programs = prometheus_programs()
    # Some of it lies ahead: on a busy machine it takes a while until it is asked for.
    until = datetime.now(UTC).replace(second=0, microsecond=0) + HOUR
    until -= timedelta(minutes=until.minute % 5)
    (tmp_path / "metrics.txt").write_text(openmetrics(until))
    data = tmp_path / "data"
    subprocess.run(
        [programs / "promtool", "tsdb", "create-blocks-from", "openmetrics", tmp_path / "metrics.txt", data],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    (tmp_path / "prometheus.yml").write_text("{}\n")
    port = ANY_PORTS.pick()
    flags = (
        f"--config.file={tmp_path}/prometheus.yml",
        f"--storage.tsdb.path={data}",
        "--storage.tsdb.retention.time=10y",
        f"--web.listen-address=127.0.0.1:{port}",
    )
    with (tmp_path / "log").open("wb") as log:
        server = subprocess.Popen([programs / "prometheus", *flags], stdout=log, stderr=log)
    try:
        wait_until_ready(f"http://127.0.0.1:{port}/-/ready", tmp_path / "log")
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait()


def wait_until_ready(url: str, log: Path) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    raise AssertionError(log.read_text())


def test_two_weeks_in_a_real_prometheus_is_reported_as_it_was(
    prometheus: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", "--prometheus", prometheus, "--since", f"{DAYS}d", "-o", "json"]) == 0
    totals = json.loads(capsys.readouterr().out)["totals"]
    assert totals["machines"] == MACHINES
    assert totals["hours"] == pytest.approx(DAYS * 24 * MACHINES, rel=0.001)
    assert totals["servedHours"] == pytest.approx(DAYS * (6 - 1 / 12) * MACHINES, rel=0.005)
    assert totals["freeHours"] == pytest.approx(DAYS * 18 * MACHINES, rel=0.005)
    assert totals["windowsDue"] == pytest.approx(DAYS * MACHINES, rel=0.001)
    assert totals["punctuality"] == pytest.approx(0.75, abs=0.001)
    assert totals["drainsCutShort"] == pytest.approx(DAYS * MACHINES / 10, rel=0.02)
    spread = totals["secondsToReady"]["RemoteMachine"]
    assert (spread["p50"], spread["p90"]) == (pytest.approx(30.0), pytest.approx(54.0))
    assert main(["report", "--prometheus", prometheus, "--since", f"{DAYS}d"]) == 0
    assert "From the operator's metrics in Prometheus" in capsys.readouterr().out

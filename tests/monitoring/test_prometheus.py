"""Every alert is provoked once and fires, and every query of the dashboard returns data, in a real Prometheus.

Two releases run, as processes: one whose clock is sixty times as fast as real, and one that the first keeps from
acting, with a wrong clock and a certificate of thirty days.
"""

import asyncio
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from crds import names
from crds.definitions import all_definitions
from local import access
from local.binaries import Assets
from local.cluster import Options, start_on_free_port
from local.operator import NAMESPACE, ClockPace, Operator
from local.pki import Authority
from local.plane import ControlPlane
from local.ports import ANY_PORTS, LOOPBACK
from local.processes import Keeper, Server
from local.provider.kinds import HOSTS
from service.commands.prometheus import read_report
from service.fleet.usage import ReportPeriod, Totals
from service.kube.client import PatchKind
from service.kube.errors import KubeError
from service.kube.resource import NAMESPACES, PODS, SCHEDULED_MACHINES, Resource
from tests.charts.helm import Helm, only
from tests.charts.test_monitoring import board
from tests.conftest import aside, kept
from tests.e2e.manifests import machine
from tests.integration.test_poisoned import store_raw
from tests.monitoring.prometheus import Prometheus, at_once, programs

Raw = dict[str, Any]
OTHER = "other-release"
SPEED = 60.0
BUDGETS = Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget")
ALWAYS: Raw = {"daysOfWeek": ["mon-sun"]}
CLOSED: Raw = {"cron": "0 0 29 2 *"}
OFTEN: Raw = {"cron": "*/10 * * * *", "duration": "5m"}
"""Opens and closes every ten seconds on a clock that fast."""
VALUES: Raw = {"enabled": True, "certificateDays": 31, "lateSeconds": 1}
"""A certificate of thirty days counts as not renewed, and a Machine that comes after a second as late."""
WRONG_CLOCK = "import time\nright = time.time\ntime.time = lambda: right() + 20\n"


@dataclass
class Stage:
    """The control plane, the release that acts, and the Prometheus that reads both releases."""

    plane: ControlPlane
    keeper: Keeper
    prometheus: Prometheus
    operator: Operator | None = None
    other: Server | None = None

    def store(self, *bodies: Raw, resource: Resource = SCHEDULED_MACHINES, workload: bool = False) -> None:
        cluster = self.plane.workload if workload else self.plane.management

        async def store() -> None:
            async with cluster.client() as client:
                for body in bodies:
                    whole, name = {**resource.envelope(), **body}, body["metadata"]["name"]
                    space = None if resource is NAMESPACES else "default"
                    options: Raw = {"kind": PatchKind.APPLY, "field_manager": "user", "force": True}
                    await client.patch(resource, name, whole, namespace=space, **options)

        aside(store())

    def refuses(self, body: Raw) -> bool:
        try:
            self.store(body)
        except KubeError:
            return True
        return False

    def node(self, name: str) -> str:
        """The Node that serves for a machine; empty while there is none."""
        found: list[str] = []

        async def read() -> None:
            async with self.plane.management.client() as client:
                status = (await client.get(SCHEDULED_MACHINES, name, namespace="default")).get("status") or {}
                found.append((status.get("nodeRef") or {}).get("name", ""))

        aside(read())
        return found[0]


@pytest.fixture
def stage(assets: Assets, helm: Helm, pytestconfig: pytest.Config) -> Iterator[Stage]:
    rules = [at_once(alerts(helm, namespace), namespace) for namespace in (NAMESPACE, OTHER)]
    with kept(pytestconfig) as keeper:
        prometheus = Prometheus.start(keeper, rules)
        with ControlPlane(assets, keeper, Options(definitions=all_definitions())) as plane:
            found = Stage(plane, keeper, prometheus)
            yield found
            operator = found.operator.server if found.operator else None
            for server in (operator, found.other, prometheus.server):
                if server is not None:
                    server.kill()


def alerts(helm: Helm, namespace: str) -> Raw:
    rendered = helm.template({"prometheusRule": VALUES}, namespace=namespace)
    (group,) = only(rendered, "PrometheusRule")["spec"]["groups"]
    return dict(group)


@pytest.mark.timeout(1200)
def test_every_alert_fires_and_every_panel_has_data(stage: Stage, helm: Helm):
    known = {rule["alert"] for rule in alerts(helm, NAMESPACE)["rules"]}
    wait_for(lambda: f"FivespotAbsent {NAMESPACE}" in stage.prometheus.fired())
    start_both(stage)
    make_trouble(stage)
    block_a_drain(stage)
    open_late(stage)
    expected = {f"{name} {NAMESPACE}" for name in known - OF_THE_OTHER} | {f"{name} {OTHER}" for name in OF_THE_OTHER}
    wait_for(lambda: not expected - stage.prometheus.fired(), lambda: expected - stage.prometheus.fired())
    assert stage.prometheus.failing_rules() == []

    stage.plane.management.apiserver.restart()
    missing = {query(target["expr"]) for panel in board(helm)["panels"] for target in panel.get("targets", ())}
    assert len(missing) > 35

    def all_seen() -> bool:
        missing.difference_update({each for each in missing if stage.prometheus.seen(each)})
        return not missing

    wait_for(all_seen, lambda: missing)
    totals = reported(stage)
    assert totals.machines >= 4, "those of tests before this one may not be gone yet"
    assert totals.due > 0
    assert totals.cut_short >= 1
    assert totals.to_ready["RemoteMachine"].count > 0
    (row,) = [
        each["metric"] for each in stage.prometheus.ask("fivespot_scheduledmachine_trouble")
        if each["metric"]["object"] == "broken"
    ]  # fmt: skip
    assert (row["object_namespace"], row["phase"]) == ("default", "Error")
    assert row["message"]


def reported(stage: Stage) -> Totals:
    """What `5spot report` makes of it."""
    now = datetime.now(UTC)
    return asyncio.run(read_report(stage.prometheus.url, ReportPeriod(now - timedelta(hours=1), now))).totals


def test_promtool_finds_nothing_wrong_with_the_alerts_as_they_are(helm: Helm, tmp_path: Path):
    rules = tmp_path / "rules.yaml"
    rules.write_text(yaml.safe_dump({"groups": [alerts(helm, NAMESPACE)]}))
    words = [str(programs() / "promtool"), "check", "rules", "--lint-fatal", str(rules)]
    done = subprocess.run(words, text=True, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"SUCCESS: {len(alerts(helm, NAMESPACE)['rules'])} rules found" in done.stdout


OF_THE_OTHER = {
    "FivespotForeignRelease",
    "FivespotShardWithoutHolder",
    "FivespotCertificateExpiring",
    "FivespotClockWrong",
}
"""What is provoked on the second release."""


def start_both(stage: Stage) -> None:
    cluster, keeper = stage.plane.management, stage.keeper
    flags = ("--machine-metrics",)
    stage.operator = Operator.start(cluster, keeper, ClockPace(speed=SPEED), ANY_PORTS, flags)
    stage.other = start_on_free_port(lambda port: other_release(stage, port), ANY_PORTS)
    metrics = {NAMESPACE: stage.operator.endpoints.metrics, OTHER: f"http://{LOOPBACK}:{port_of(stage.other)}"}
    stage.prometheus.read(*(
        {"targets": [url.removeprefix("http://")], "labels": {"namespace": namespace, "pod": f"{namespace}-0"}}
        for namespace, url in metrics.items()
    ))  # fmt: skip
    # From a first scrape on, what is counted is seen to grow.
    wait_for(lambda: len(stage.prometheus.ask("fivespot_build_info")) == len(metrics))


def other_release(stage: Stage, port: int) -> Server:
    """A second release for the same namespaces: its clock is wrong, and its certificate ends soon."""
    stage.store({"metadata": {"name": OTHER}}, resource=NAMESPACES)
    folder = stage.keeper.directory / OTHER
    folder.mkdir(exist_ok=True)
    (folder / "sitecustomize.py").write_text(WRONG_CLOCK)
    Authority.create("issuer").serving("webhooks").write(folder)
    health = ANY_PORTS.pick(port)
    argv = [
        "env",
        f"PYTHONPATH={folder}:{Path.cwd()}",
        sys.executable,
        "-m",
        "service",
        "run",
        f"--kubeconfig={stage.plane.management.kubeconfig_of(access.OPERATOR)}",
        f"--namespace={OTHER}",
        f"--bind-address={LOOPBACK}",
        "--certificates=files",
        f"--certificate-file={folder}/tls.crt",
        f"--key-file={folder}/tls.key",
        "--webhook-port=0",
        f"--metrics-port={port}",
        f"--health-port={health}",
    ]
    probe = f"http://{LOOPBACK}:{port}/metrics"
    return Server(OTHER, argv, stage.keeper, lambda: access.answers(probe))


def port_of(server: Server) -> str:
    (found,) = (word.partition("=")[2] for word in server.argv if word.startswith("--metrics-port="))
    return found


def make_trouble(stage: Stage) -> None:
    """A machine that comes and goes, two that cannot work, one object that is too deep, and one that is refused."""
    stage.store(
        machine("often", infrastructure={"address": "10.0.0.1"}, schedule=OFTEN, gracefulShutdownTimeout="1m"),
        machine("broken", infrastructure=failing("10.0.0.2", "InvalidConfiguration"), schedule=ALWAYS),
        machine("silent", infrastructure=failing("10.0.0.3", "NodeNeverJoins"), schedule=ALWAYS),
        machine("drained", infrastructure={"address": "10.0.0.4"}, schedule=ALWAYS),
    )
    assert stage.refuses(machine("wrong", schedule={"hoursOfDay": ["25"]}))
    aside(store_unreadable(stage))


async def store_unreadable(stage: Stage) -> None:
    """Labelled as one of the operator's own: it watches no others."""
    meta = {"name": "deep-infra", "labels": {names.LABEL_OWNER: "deep"}}
    body = {"metadata": meta, "spec": {"address": "10.0.0.5", "deep": "DEEP"}}
    async with stage.plane.management.client() as client:
        await store_raw(client, HOSTS, body, "DEEP", "default")


def failing(address: str, how: str) -> Raw:
    return {"address": address, "simulate": {"failure": how}}


def block_a_drain(stage: Stage) -> None:
    """A budget that allows no eviction, until the drain's time is up."""
    wait_for(lambda: stage.node("drained"))
    pod = {
        "metadata": {"name": "kept", "labels": {"app": "kept"}},
        "spec": {"nodeName": stage.node("drained"), "containers": [{"name": "main", "image": "pause"}]},
    }
    budget = {
        "metadata": {"name": "kept"},
        "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "kept"}}},
    }
    stage.store(budget, resource=BUDGETS, workload=True)
    stage.store(pod, resource=PODS, workload=True)
    limits = {"nodeDrainTimeout": "30m", "gracefulShutdownTimeout": "40m"}
    stage.store(machine("drained", infrastructure={"address": "10.0.0.4"}, schedule=CLOSED, **limits))


def open_late(stage: Stage) -> None:
    """The process stands still for half of the time, so that about every second window opens late."""
    assert stage.operator is not None
    server, late = stage.operator.server, f"FivespotActivationLate {NAMESPACE}"
    deadline = time.monotonic() + 300
    while late not in stage.prometheus.fired():
        assert time.monotonic() < deadline
        server.pause()
        time.sleep(5)
        server.resume()
        time.sleep(6)  # the machine comes and goes, and Prometheus reads that


def query(expression: str) -> str:
    """As Grafana asks it, with everything chosen."""
    for variable, value in {"$cluster": ".*", "$namespace": ".*", "$__rate_interval": "30s"}.items():
        expression = expression.replace(variable, value)
    return expression


def wait_for(fact: Callable[[], Any], lacks: Callable[[], Any] = lambda: "") -> None:
    """Prometheus reads and evaluates once a second, on a clock of its own."""
    deadline = time.monotonic() + 300
    while not fact():
        assert time.monotonic() < deadline, lacks()
        time.sleep(0.5)

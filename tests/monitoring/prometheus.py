"""A Prometheus of a test's own, on loopback: what it reads, what it has seen, and which alerts have fired."""

import json
import math
import urllib.parse
import urllib.request
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from local import access
from local import prometheus as local_prometheus
from local.cluster import start_on_free_port
from local.errors import LocalError
from local.ports import ANY_PORTS, LOOPBACK
from local.processes import Keeper, Server
from local.progress import Progress

Raw = dict[str, Any]
EVERY = "1s"


def programs() -> Path:
    """The folder with prometheus and promtool; skips the test where they cannot be had."""
    try:
        return local_prometheus.ensure(Progress())
    except LocalError as error:
        pytest.skip(str(error))


@dataclass(frozen=True)
class Prometheus:
    """A running server."""

    server: Server
    url: str
    folder: Path

    @classmethod
    def start(cls, keeper: Keeper, rules: Iterable[Raw]) -> "Prometheus":
        """With these rules and nothing to read yet; skips the test where Prometheus cannot be had."""
        binaries = programs()
        folder = keeper.directory / "prometheus"
        folder.mkdir()
        _configure(folder, rules)
        made: list[Prometheus] = []

        def make(port: int) -> Server:
            url = f"http://{LOOPBACK}:{port}"
            argv = [
                str(binaries / "prometheus"),
                f"--config.file={folder}/prometheus.yaml",
                f"--storage.tsdb.path={folder}/data",
                f"--web.listen-address={LOOPBACK}:{port}",
                "--log.level=warn",
            ]
            server = Server("prometheus", argv, keeper, lambda: access.answers(f"{url}/-/ready"))
            made.append(cls(server, url, folder))
            return server

        start_on_free_port(make, ANY_PORTS)
        return made[-1]

    def read(self, *targets: Raw) -> None:
        """Reads the metrics of these from now on."""
        (self.folder / "new.json").write_text(json.dumps(targets))
        (self.folder / "new.json").rename(self.folder / "targets.json")

    def ask(self, query: str) -> list[Raw]:
        """What a query returns now."""
        found: list[Raw] = self._get("query", query=query)
        return found

    def seen(self, query: str) -> list[float]:
        """All values that a query had in the last half hour, but for those that are not a number."""
        _, now = self._get("query", query="time()")
        series = self._get("query_range", query=query, start=str(float(now) - 1800), end=now, step="2")
        values = (float(value) for each in series for _, value in each["values"])
        return [value for value in values if not math.isnan(value)]

    def fired(self) -> set[str]:
        """The alerts that have fired so far."""
        found = self.ask('last_over_time(ALERTS{alertstate="firing"}[1h])')
        return {f"{each['metric']['alertname']} {each['metric']['of']}" for each in found}

    def failing_rules(self) -> list[Raw]:
        """Rules that could not be evaluated."""
        groups = self._get("rules")["groups"]
        return [rule for group in groups for rule in group["rules"] if rule["health"] == "err"]

    def _get(self, what: str, **parameters: str) -> Any:
        url = f"{self.url}/api/v1/{what}?{urllib.parse.urlencode(parameters)}"
        with urllib.request.urlopen(url, timeout=30) as answer:
            data = json.load(answer)["data"]
        return data.get("result", data)


def _configure(folder: Path, rules: Iterable[Raw]) -> None:
    found = {"files": [str(folder / "targets.json")], "refresh_interval": EVERY}
    config = {
        "global": {"scrape_interval": EVERY, "evaluation_interval": EVERY},
        "rule_files": [str(folder / "rules.yaml")],
        "scrape_configs": [{"job_name": "5spot", "file_sd_configs": [found]}],
    }
    (folder / "targets.json").write_text("[]")
    (folder / "rules.yaml").write_text(yaml.safe_dump({"groups": list(rules)}))
    (folder / "prometheus.yaml").write_text(yaml.safe_dump(config))


def at_once(rules: Raw, namespace: str) -> Raw:
    """A group of the chart's alerts that wait for nothing, and say whose they are."""
    changed = [{**rule, "for": "0s", "labels": {**rule["labels"], "of": namespace}} for rule in rules["rules"]]
    return {**rules, "name": namespace, "rules": changed}

"""The real helm and the chart, as a test calls them."""

import json
import subprocess
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

Raw = dict[str, Any]

ROOT = Path(__file__).parents[2]
CHART = ROOT / "charts" / "5spot"
IMAGE = Path(__file__).with_name("image.yaml")
"""The one value that the chart cannot do without."""
RENDERING = {"template", "install", "upgrade", "lint"}
RELEASE = "5spot"
NAMESPACE = "5spot-system"


class HelmError(AssertionError):
    """helm refused; the message is what it said."""


@dataclass(frozen=True)
class Helm:
    program: Path

    def run(self, *words: str, values: Raw | None = None, kubeconfig: Path | None = None) -> str:
        """What helm prints; values go in by standard input."""
        argv = [str(self.program), *words]
        if words[0] in RENDERING:
            argv += [f"--values={IMAGE}"]
        if values is not None:
            argv += ["--values=-"]
        if kubeconfig is not None:
            argv += [f"--kubeconfig={kubeconfig}"]
        given = yaml.safe_dump(values) if values is not None else None
        done = subprocess.run(argv, input=given, text=True, capture_output=True, check=False)
        if done.returncode:
            raise HelmError(f"{done.stderr}{done.stdout}")
        return done.stdout

    def template(
        self, values: Raw | None = None, *flags: str, namespace: str = NAMESPACE, chart: Path = CHART
    ) -> list[Raw]:
        """All objects that the chart makes of these values."""
        return deepcopy(self._rendered(json.dumps(values or {}, sort_keys=True), flags, namespace, chart))

    @cache  # noqa: B019 - there is one helm a session
    def _rendered(self, values: str, flags: tuple[str, ...], namespace: str, chart: Path) -> list[Raw]:
        words = ("template", RELEASE, str(chart), f"--namespace={namespace}", *flags)
        out = self.run(*words, values=json.loads(values))
        return [document for document in yaml.load_all(out, Loader=yaml.CSafeLoader) if document]


def of_kind(documents: list[Raw], kind: str) -> list[Raw]:
    return [document for document in documents if document["kind"] == kind]


def only(documents: list[Raw], kind: str) -> Raw:
    (found,) = of_kind(documents, kind)
    return found

"""The helm that tests use, as the release calls it."""

import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from release.contents import ReleaseError

Raw = dict[str, Any]
NAMESPACE = "5spot-system"


@dataclass(frozen=True, slots=True)
class Helm:
    """One program, without a cluster."""

    program: Path

    def template(self, chart: Path, values: Raw, namespace: str = NAMESPACE) -> list[Raw]:
        """All objects that a chart makes of these values, without the pod of `helm test`."""
        words = ("template", "5spot", str(chart), f"--namespace={namespace}", "--skip-tests", "--values=-")
        out = self._run(*words, given=yaml.safe_dump(values))
        return [document for document in yaml.load_all(out, Loader=yaml.CSafeLoader) if document]

    def package(self, chart: Path, target: Path) -> Path:
        """Packs a chart, as Helm judges which files belong to it."""
        self._run("package", str(chart), f"--destination={target}")
        (made,) = target.glob("*.tgz")
        return made

    def _run(self, *words: str, given: str | None = None) -> str:
        done = subprocess.run(  # noqa: S603 -- our own words
            [str(self.program), *words], input=given, text=True, capture_output=True, check=False
        )
        if done.returncode:
            raise ReleaseError(f"`helm {words[0]}` failed:\n{done.stderr}{done.stdout}")
        return done.stdout

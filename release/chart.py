"""The packaged chart: the one of the checkout with what only a release knows, packed the same way each time."""

import re
import shutil
import tempfile
from pathlib import Path
from typing import Any, Final

import yaml

from charts.generate import readme
from release import archive, changelog
from release.contents import CHART, LOCAL, PLACEHOLDER, ROOT, Release, ReleaseError
from release.helm import Helm, Raw

CRD: Final = "CustomResourceDefinition"
EXAMPLES: Final = ("office-hours.yaml", "calendars/scotland.yaml", "calendars/company.yaml")
"""Shown on Artifact Hub for the kinds that they are of."""


def package(release: Release, helm: Helm, target: Path) -> None:
    """Writes the chart's archive."""
    with tempfile.TemporaryDirectory(prefix="5spot-chart-") as folder:
        copy = Path(folder, CHART.name)
        shutil.copytree(CHART, copy)
        _fill_in(copy, release, helm)
        files = archive.unpack(helm.package(copy, Path(folder)))
    archive.pack(files, target)


def _fill_in(copy: Path, release: Release, helm: Helm) -> None:
    """Defaults that only a release knows, the README that names them, and the annotations of Artifact Hub."""
    values = (copy / "values.yaml").read_text(encoding="utf-8")
    if release.repository:
        values = _replaced(values, f"repository: {PLACEHOLDER}", f"repository: {release.repository}")
    if release.runbooks:
        values = _replaced(values, 'runbookUrl: ""', f"runbookUrl: {release.runbooks}")
    (copy / "values.yaml").write_text(values, encoding="utf-8")
    (copy / "README.md").write_text(_readme(release, values), encoding="utf-8")
    described = yaml.safe_load((copy / "Chart.yaml").read_text(encoding="utf-8"))
    if (described["version"], described["appVersion"]) != (release.version, release.version):
        raise ReleaseError(f"charts/5spot/Chart.yaml: version and appVersion must be {release.version}.")
    described["annotations"] |= annotations(release, helm)
    if release.source:
        described |= {"home": release.source, "sources": [release.source]}
    (copy / "Chart.yaml").write_text(_yaml(described), encoding="utf-8")


def _replaced(text: str, old: str, new: str) -> str:
    if text.count(old) != 1:
        raise ReleaseError(f"charts/5spot/values.yaml has no single line `{old}` to fill in.")
    return text.replace(old, new)


def _readme(release: Release, values: str) -> str:
    text = readme(values)
    if release.chart_repository:
        command = rf"helm install 5spot {release.chart_repository}/5spot --version {release.version} \1"
        text = re.sub(r"helm install 5spot charts/5spot (.*) \\\n.*", command, text, count=1)
    if release.source:
        text = text.replace("../../docs/", f"{release.source}/blob/v{release.version}/docs/")
    return text


def annotations(release: Release, helm: Helm) -> dict[str, str]:
    """What Artifact Hub shows beside the chart, each a YAML document of its own."""
    said = changelog.section((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), release.version)
    rendered = helm.template(CHART, {"image": {"repository": release.repository or LOCAL}})
    definitions = [document for document in rendered if document["kind"] == CRD]
    changes = [{"kind": kind, "description": entry} for kind, entry in changelog.entries(said)]
    lists: dict[str, list[Any]] = {
        "crds": [_described(definition) for definition in definitions],
        "crdsExamples": _examples(),
        "images": [{"name": "5spot", "image": release.image}],
        "changes": changes,
    }
    if release.source:
        lists["links"] = [{"name": "documentation", "url": f"{release.source}/tree/v{release.version}/docs"}]
    return {f"artifacthub.io/{name}": _yaml(entries) for name, entries in lists.items()}


def _described(definition: Raw) -> Raw:
    spec = definition["spec"]
    (version,) = (each for each in spec["versions"] if each["storage"])
    return {
        "kind": spec["names"]["kind"],
        "version": version["name"],
        "name": definition["metadata"]["name"],
        "displayName": re.sub(r"(?<=[a-z])(?=[A-Z])", " ", spec["names"]["kind"]),
        "description": version["schema"]["openAPIV3Schema"]["description"],
    }


def _examples() -> list[Raw]:
    texts = ((ROOT / "examples" / name).read_text(encoding="utf-8") for name in EXAMPLES)
    return [document for text in texts for document in yaml.safe_load_all(text)]


def _yaml(value: Any) -> str:
    return yaml.safe_dump(value, sort_keys=False, width=1000, allow_unicode=True)

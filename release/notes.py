"""The release's notes: what is new, what the files are, and how to check and install them."""

from collections.abc import Mapping
from typing import Final

from release import changelog
from release.contents import CHECKSUMS, INSTALL, INSTALL_AGENT, ROOT, SBOM, Release

HEAD: Final = """\
# 5-Spot {version}

Kubernetes 1.32 or newer and Cluster API are needed. `sha256sum --check {sums}` checks these files; the same sources
make the same ones.

| file | what it is |
|---|---|
{files}

{install}
"""
BY_KUBECTL: Final = f"""\
Without Helm: `kubectl apply --server-side -f {INSTALL}`, and in workload clusters with the agent
`kubectl apply --server-side -f {INSTALL_AGENT}`."""
BY_HELM: Final = """\
With Helm: `helm install 5spot {chart} --version {version} --namespace 5spot-system --create-namespace`.
"""
LOCALLY: Final = """\
The image is in no registry: push its archive to one, and set `image.repository` to it in the chart.
"""

WHEEL: Final = "the command line and the operator, as a Python wheel: `uv tool install` it, or `pipx install`"


def notes(release: Release, names: list[str], digests: Mapping[str, str]) -> str:
    """The notes for these files; images among them are named with their digest."""
    said = changelog.section((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), release.version)
    rows = [f"| `{name}` | {_meaning(name, digests)} |" for name in names]
    head = HEAD.format(version=release.version, sums=CHECKSUMS, files="\n".join(rows), install=_install(release))
    return f"{head}\n## Changes\n\n{said}\n"


def _install(release: Release) -> str:
    if release.chart_repository is None:
        return LOCALLY + BY_KUBECTL
    return BY_HELM.format(chart=f"{release.chart_repository}/5spot", version=release.version) + BY_KUBECTL


def _meaning(name: str, digests: Mapping[str, str]) -> str:
    plain = {
        INSTALL: "the operator, for `kubectl apply`",
        INSTALL_AGENT: "the reclaim agent, for `kubectl apply` in workload clusters",
        SBOM: "what the image contains beside its base, as CycloneDX",
    }
    if name in plain:
        return plain[name]
    if name in digests:
        return f"the image in OCI's layout, digest `{digests[name]}`"
    return {".tgz": "the Helm chart", ".whl": WHEEL}[name[-4:]]

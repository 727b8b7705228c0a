"""install.yaml and install-agent.yaml: what the chart makes of its default values, for those who do without Helm."""

from collections.abc import Iterable
from typing import Any, Final

import yaml

from release.contents import CHART, INSTALL, INSTALL_AGENT, LOCAL, Release
from release.helm import NAMESPACE, Helm, Raw

AGENT_ONLY: Final[Raw] = {"operator": {"enabled": False}, "agent": {"enabled": True}}
SPACE: Final[Raw] = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
HELMS_OWN: Final = ("helm.sh/chart", "helm.sh/resource-policy")
MANAGED_BY: Final = "app.kubernetes.io/managed-by"
HEAD: Final = """\
# {title} {version}. Made from the Helm chart with its default values; for others, use the chart.
#
#   kubectl apply --server-side -f {file}
#
# {image}
"""
PUBLISHED: Final = "The image is {image}."
IMPORTED: Final = (
    f"The image {{image}} is in no registry: import its archive on every node, or put your own name of it here: "
    f"sed 's#{LOCAL}#REGISTRY/5spot#'"
)


class _Dumper(yaml.CSafeDumper):
    """Texts of several lines stay readable."""


def _text(dumper: _Dumper, value: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)


_Dumper.add_representer(str, _text)


def operator(release: Release, helm: Helm) -> str:
    """The operator with CRDs, roles and webhooks, in its namespace."""
    documents = [SPACE, *helm.template(CHART, _values(release))]
    return _head(release, "5-Spot", INSTALL) + _dump(documents)


def agent(release: Release, helm: Helm) -> str:
    """The agent, for workload clusters; for a release in another namespace, the chart makes that of the agent."""
    documents = helm.template(CHART, {**_values(release), **AGENT_ONLY}, namespace="kube-system")
    return _head(release, "The reclaim agent of 5-Spot", INSTALL_AGENT) + _dump(documents)


def _values(release: Release) -> Raw:
    return {"image": {"repository": release.repository or LOCAL}}


def _head(release: Release, title: str, file: str) -> str:
    image = (PUBLISHED if release.repository else IMPORTED).format(image=release.image)
    return HEAD.format(title=title, version=release.version, file=file, image=image)


def _dump(documents: Iterable[Raw]) -> str:
    plain = [without_helm(document) for document in documents]
    return yaml.dump_all(plain, Dumper=_Dumper, sort_keys=False, width=120, explicit_start=True)


def without_helm(node: Any) -> Any:
    """The same without the labels and annotations that only mean something to Helm."""
    if isinstance(node, list):
        return [without_helm(each) for each in node]
    if not isinstance(node, dict):
        return node
    kept = {key: without_helm(value) for key, value in node.items() if not _helms_own(key, value)}
    emptied = {key for key, value in kept.items() if key == "annotations" and value == {} != node[key]}
    return {key: value for key, value in kept.items() if key not in emptied}


def _helms_own(key: str, value: Any) -> bool:
    return key in HELMS_OWN or (key == MANAGED_BY and value == "Helm")

"""The page on installing it lists the roles as the chart makes them, that on GitOps the webhooks."""

import re
from typing import Any

import yaml

from tests.charts.helm import ROOT, Helm, of_kind
from tests.docs import pages

PAGE = (ROOT / "docs" / "install.md").read_text()
ROW = re.compile(
    r"^\| (watched namespaces|cluster|its own namespace) \| `([^`]+)`[^|]*\| (?:`([^`]+)` )?\| ([a-z ]+) \|",
    re.MULTILINE,
)


def granted(helm: Helm) -> set[tuple[str, str, str, str]]:
    """What the operator's own roles grant; those for users of overrides and classes are left out."""
    rendered = helm.template({"watchNamespaces": ["team"], "rbac": {"overrideRoles": False, "classRoles": False}})
    found = set()
    for role in of_kind(rendered, "ClusterRole") + of_kind(rendered, "Role"):
        space = role["metadata"].get("namespace")
        where = {None: "cluster", "team": "watched namespaces"}.get(space, "its own namespace")
        for rule in role["rules"]:
            (resource,), group = rule["resources"], rule["apiGroups"][0]
            label = f"{resource}.{group}" if group and resource != "*" else resource
            found.add((where, label, *rule.get("resourceNames", [""]), " ".join(rule["verbs"])))
    return found


def test_the_table_of_roles_is_the_charts(helm: Helm):
    assert set(ROW.findall(PAGE)) == granted(helm)


def test_every_value_that_the_page_names_exists():
    table = (ROOT / "charts" / "5spot" / "README.md").read_text()
    named = set(re.findall(r"`((?:webhooks|providers|rbac|crds|networkPolicy|agent|tenancy)\.[a-zA-Z.]+)[`=]", PAGE))
    assert len(named) >= 8
    assert {name for name in named if f"| {name} |" not in table} == set()


def test_flux_ignores_the_ca_of_every_webhook_and_nothing_else(helm: Helm):
    rendered = helm.template()
    for rule in manifest_for("HelmRelease")["spec"]["driftDetection"]["ignore"]:
        (configuration,) = of_kind(rendered, rule["target"]["kind"])
        count = len(configuration["webhooks"])
        assert rule["paths"] == [f"/webhooks/{number}/clientConfig/caBundle" for number in range(count)]


def test_argo_cd_ignores_the_ca_in_every_kind_of_webhook_configuration(helm: Helm):
    rules = manifest_for("Application")["spec"]["ignoreDifferences"]
    configurations = {each["kind"] for each in helm.template() if each["kind"].endswith("WebhookConfiguration")}
    assert {rule["kind"] for rule in rules} == configurations


def manifest_for(kind: str) -> Any:
    """The example of this kind on the page about GitOps."""
    examples = (yaml.safe_load(block.text) for block in pages.blocks("yaml", pages=(ROOT / "docs" / "gitops.md",)))
    (found,) = (each for each in examples if each.get("kind") == kind)
    return found

"""The page on installing it lists the roles as the chart makes them."""

import re

from tests.charts.helm import ROOT, Helm, of_kind

PAGE = (ROOT / "docs" / "install.md").read_text()
ROW = re.compile(
    r"^\| (watched namespaces|cluster|its own namespace) \| `([^`]+)`[^|]*\| (?:`([^`]+)` )?\| ([a-z ]+) \|",
    re.MULTILINE,
)


def granted(helm: Helm) -> set[tuple[str, str, str, str]]:
    rendered = helm.template({"watchNamespaces": ["team"]})
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

"""Values that are odd but allowed make a chart that works, and what cannot work is refused."""

import re

import pytest
import yaml

from tests.charts.helm import CHART, HelmError, of_kind, only

DESCRIBING = "app.kubernetes.io/part-of"
SELECTING = "app.kubernetes.io/instance"


class OneOfEach(yaml.CSafeLoader):
    """Refuses a key that is there twice, as API servers warn of it and other tools fail."""

    def construct_mapping(self, node, deep=False):
        keys = [key.value for key, _ in node.value]
        assert len(keys) == len(set(keys)), keys
        return super().construct_mapping(node, deep)


def rendered(helm, release, values=None, namespace="here"):
    out = helm.run("template", release, str(CHART), f"--namespace={namespace}", values=values or {})
    return [each for each in yaml.load_all(out, Loader=OneOfEach) if each]


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"image": {"tag": "latest"}}, "tag"),
        ({"replica": 3}, "replica"),
        ({"settings": {"logLevels": "debug"}}, "logLevels"),
        ({"settings": {"logLevel": "loud"}}, "logLevel"),
        ({"settings": {"leases": False}}, "one pod only"),
        ({"shards": 65}, "shards"),
        ({"watchNamespaces": ["Team A"]}, "watchNamespaces"),
        ({"serviceAccount": {"create": False}}, "serviceAccount.name is needed"),
        ({"webhooks": {"certificates": "vault"}}, "certificates"),
        ({"webhooks": {"certManager": {"issuerRef": {"kind": "ClusterIssuer"}}}}, "issuerRef"),
        ({"imagePullSecrets": [{"name": "Registry"}]}, "imagePullSecrets"),
        ({"prometheusRule": {"lateSeconds": 300}}, "lateSeconds"),
        ({"terminationGracePeriodSeconds": 29}, "terminationGracePeriodSeconds: 29 is too short"),
        ({"settings": {"stopSeconds": 50.5}}, "up to 60.5 seconds"),
        ({"resources": {"limit": {"cpu": "1"}}}, "limit"),
        ({"nameOverride": "My App"}, "nameOverride"),
        ({"image": {"repository": "registry.example.org/5spot:1.0"}}, "repository"),
        ({"settings": {"notifySource": "5-Spot, production"}}, "notifySource"),
        ({"settings": {"notifySource": ""}}, "notifySource"),
        ({"image": {"repository": "https://registry.example.org/5spot"}}, "repository"),
        ({"image": {"repository": "registry.example.org//5spot"}}, "repository"),
        ({"podDisruptionBudget": {"maxUnavailable": "0%"}}, "maxUnavailable"),
    ],
)
def test_values_that_cannot_work_are_refused_by_name(helm, values, why):
    with pytest.raises(HelmError, match=re.escape(why)):
        helm.template(values)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("networkPolicy.apiServers", {"networkPolicy": {"apiServers": ["10.0.0.10/32"]}}),
        ("networkPolicy.metricsFrom", {"networkPolicy": {"metricsFrom": [{"podSelector": {}}]}}),
        ("networkPolicy.egress.enabled", {"networkPolicy": {"egress": {"enabled": True}}}),
        ("console.from", {"console": {"from": [{"podSelector": {}}]}}),
    ],
)
def test_a_limit_that_needs_a_network_policy_is_refused_without_one(helm, name, values):
    helm.template(values)
    values = {**values, "networkPolicy": {**values.get("networkPolicy", {}), "enabled": False}}
    with pytest.raises(HelmError, match=rf"{name}: limits nothing without a NetworkPolicy; set networkPolicy\.enabled"):
        helm.template(values)


@pytest.mark.parametrize(
    "values",
    [{}, {"image": {"digest": "sha256:" + "0" * 64}}, {"operator": {"enabled": False}, "agent": {"enabled": True}}],
)
def test_a_repository_that_is_the_placeholder_is_refused_with_what_to_set(helm, values):
    placeholder = yaml.safe_load((CHART / "values.yaml").read_text())["image"]["repository"]
    values = {**values, "image": {**values.get("image", {}), "repository": placeholder}}
    with pytest.raises(HelmError, match=r"REGISTRY/5spot is a placeholder; .* --set image\.repository="):
        helm.template(values)


@pytest.mark.parametrize("repository", ["5spot", "registry.example.org:5000/team/5spot", "ghcr.io/5spot"])
def test_a_registry_may_have_a_port(helm, repository):
    rendered(helm, "5spot", {"image": {"repository": repository}})


@pytest.mark.parametrize("release", ["5spot", "prod", "7up", "prod.eu", "x" * 38 + "--" + "x" * 13])
def test_services_have_names_that_older_clusters_take_too(helm, release):
    documents = rendered(helm, release, {"shards": 2})
    for service in of_kind(documents, "Service"):
        assert re.fullmatch(r"[a-z]([-a-z0-9]*[a-z0-9])?", service["metadata"]["name"])
    assert re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", only(documents, "Deployment")["metadata"]["name"])


def test_names_that_look_like_numbers_stay_names(helm):
    values = {"watchNamespaces": ["2024"], "fullnameOverride": "7", "nameOverride": "5", "tenancy": {"enabled": True}}
    sets = [{"namespace": "2024", "matchLabels": {"a": "b"}}]
    documents = rendered(helm, "1e3", {**values, "agent": {"clusterResourceSets": sets}}, namespace="007")

    def texts(node):
        if isinstance(node, list):
            return all(map(texts, node))
        if isinstance(node, dict):
            named = (node[key] for key in ("name", "namespace", "serviceAccountName") if key in node)
            return all(isinstance(each, str) for each in named) and all(map(texts, node.values()))
        return True

    odd = [each for each in documents if each["kind"] != "CustomResourceDefinition" and not texts(each)]
    assert odd == []
    assert {type(value) for each in documents for value in each["metadata"].get("labels", {}).values()} == {str}


def test_labels_may_be_replaced_but_for_those_that_selectors_go_by(helm):
    mine = {DESCRIBING: "platform", SELECTING: "mine", "release": "mine"}
    values = {"commonLabels": mine, "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}}}
    documents = rendered(helm, "5spot", {**values, "podLabels": {DESCRIBING: "pods", SELECTING: "mine"}})
    deployment, monitor = only(documents, "Deployment"), only(documents, "ServiceMonitor")
    pods = deployment["spec"]["template"]["metadata"]["labels"]
    assert deployment["metadata"]["labels"][DESCRIBING] == "platform"
    assert (pods[DESCRIBING], pods["release"]) == ("pods", "mine")
    assert monitor["metadata"]["labels"]["release"] == "prometheus"
    assert deployment["spec"]["selector"]["matchLabels"].items() <= pods.items()
    assert pods[SELECTING] == deployment["metadata"]["labels"][SELECTING] == "5spot"

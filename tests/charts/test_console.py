"""The console in a cluster, as the chart runs it: apart from the operator, and without any right."""

import pytest
from typer.main import get_command

from service.commands import console_server
from tests.charts.helm import HelmError, of_kind, only

ORIGIN = "https://console.example.com"
ON = {"console": {"enabled": True, "origins": [ORIGIN]}}


def of_console(documents):
    return [each for each in documents if each["metadata"]["name"].endswith("-console")]


def pod(documents):
    return only(of_console(documents), "Deployment")["spec"]["template"]


def test_it_is_off_by_default(helm):
    assert of_console(helm.template()) == []


def test_its_pod_has_no_token_and_no_account_of_ours(helm):
    spec = pod(helm.template(ON))["spec"]
    assert spec["automountServiceAccountToken"] is False
    assert "serviceAccountName" not in spec
    assert {volume["name"]: set(volume) - {"name"} for volume in spec["volumes"]} == {"cluster": {"configMap"}}


def test_it_adds_no_right_to_anyone(helm):
    kinds = ("Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding", "ServiceAccount")
    with_it, without = helm.template(ON), helm.template()
    for kind in kinds:
        assert of_kind(with_it, kind) == of_kind(without, kind)


def test_it_is_a_deployment_of_its_own_that_no_selector_of_the_operator_takes(helm):
    documents = helm.template(ON)
    operator, console = (only_named(documents, name) for name in ("5spot", "5spot-console"))
    assert operator["spec"]["template"]["spec"]["containers"][0]["command"] == ["5spot", "run"]
    labels = console["spec"]["template"]["metadata"]["labels"]
    assert not operator["spec"]["selector"]["matchLabels"].items() <= labels.items()
    for service in of_kind(documents, "Service"):
        own = service["metadata"]["name"] == "fivespot-console"
        assert (service["spec"]["selector"].items() <= labels.items()) is own


def only_named(documents, name):
    (found,) = [each for each in of_kind(documents, "Deployment") if each["metadata"]["name"] == name]
    return found


def test_its_arguments_are_options_of_the_command(helm):
    on = {"console": ON["console"] | {"tlsSecret": "console-tls"}}
    (container,) = pod(helm.template(on))["spec"]["containers"]
    known = {each for option in console_server_options() for each in option}
    assert {word.partition("=")[0] for word in container["args"]} <= known
    assert container["command"] == ["5spot", "console-server"]
    assert container["ports"][0]["containerPort"] == console_server.PORT
    assert container["readinessProbe"]["httpGet"]["scheme"] == "HTTPS"
    assert container["readinessProbe"]["httpGet"]["httpHeaders"] == [{"name": "Host", "value": "console.example.com"}]


def console_server_options():
    return [parameter.opts for parameter in get_command(console_server.app).params]


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"enabled": True}, "console.origins"),
        ({"enabled": True, "origins": ["http://console.example.com"]}, "origins"),
        ({"enabled": True, "origins": [f"{ORIGIN}/path"]}, "origins"),
    ],
    ids=["no address", "no TLS", "a path"],
)
def test_addresses_that_cannot_work_are_refused(helm, values, why):
    with pytest.raises(HelmError, match=why):
        helm.template({"console": values})


def test_connections_come_only_from_where_they_may(helm):
    ingress = {"namespaceSelector": {"matchLabels": {"name": "ingress"}}}
    on = {"console": ON["console"] | {"from": [ingress]}}
    policy = only(of_console(helm.template(on)), "NetworkPolicy")
    assert policy["spec"]["ingress"] == [{"ports": [{"port": "console"}], "from": [ingress]}]

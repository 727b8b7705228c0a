"""What the chart says; that an API server takes it is test_install.py and test_matrix.py."""

import os
import re
import shutil
from base64 import b64encode

import pytest
import yaml

from crds import policies
from crds.definitions import all_definitions
from crds.providers import ProviderPolicy
from service.settings import Settings, variables
from tests.charts.helm import CHART, NAMESPACE, of_kind, only
from tests.integration.agents import documents as agent_documents
from webhooks.configuration import Registration, ServiceRef, manifests

ACCOUNT = f"system:serviceaccount:{NAMESPACE}:5spot"


@pytest.fixture(scope="module")
def default(helm):
    return helm.template()


def container(documents):
    workload = only(documents, "Deployment")
    return workload["spec"]["template"]["spec"]["containers"][0]


def environment(documents):
    return {entry["name"]: entry.get("value") for entry in container(documents)["env"]}


def without_release_policy(documents):
    """Without the policy that tests/charts/test_release_policy.py is about."""
    return [each for each in documents if each["metadata"]["name"] != "5spot-release"]


def by_name(webhooks):
    """Their order does not matter: each is asked."""
    return {each["name"]: each for each in webhooks}


def without_labels(document):
    return {**document, "metadata": {"name": document["metadata"]["name"]}}


@pytest.mark.parametrize("namespaces", [[], ["team-b", "team-a"]])
def test_the_webhooks_are_registered_as_the_code_says(helm, namespaces):
    rendered = helm.template({"watchNamespaces": namespaces})
    service = ServiceRef(NAMESPACE, "fivespot-webhook")
    registration = Registration(service, None, namespaces, ACCOUNT, calendars=True, overrides=True, classes=True)
    for wanted in manifests(registration):
        found = only(rendered, wanted["kind"])
        assert by_name(found["webhooks"]) == by_name(wanted["webhooks"])
        assert without_labels(found | {"webhooks": []}) == without_labels(wanted | {"webhooks": []})


def test_the_operator_finds_the_names_of_what_it_keeps_right(helm):
    rendered = helm.template({"fullnameOverride": "other"})
    given = environment(rendered)
    assert (
        given["FIVESPOT_MUTATING_CONFIGURATION"] == only(rendered, "MutatingWebhookConfiguration")["metadata"]["name"]
    )
    validating = only(rendered, "ValidatingWebhookConfiguration")
    assert given["FIVESPOT_VALIDATING_CONFIGURATION"] == validating["metadata"]["name"] == "other-validating"
    services = {service["metadata"]["name"] for service in of_kind(rendered, "Service")}
    assert given["FIVESPOT_WEBHOOK_SERVICE"] in services
    assert validating["webhooks"][0]["clientConfig"]["service"]["name"] in services


OTHER_GROUP = {"bootstrapGroups": ["kubeadm.example.org"]}


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"settings": {"logLevel": "debug", "leaseSeconds": 20, "capiContract": "v1beta1", "drainSeconds": 1.5}},
        {"replicas": 1, "settings": {"leases": False}, "webhooks": {"enabled": False}},
        {"webhooks": {"certificates": "cert-manager"}, "watchNamespaces": ["a", "b"], "shards": 3},
        {"providers": {**OTHER_GROUP, "bootstrapKinds": ["A", "*B"], "refusedKinds": ["*List"]}},
    ],
    ids=["default", "settings", "alone", "cert-manager", "providers"],
)
def test_every_variable_is_a_setting_with_a_usable_value(helm, monkeypatch, values):
    given = environment(helm.template(values))
    known = {name for key, field in Settings.model_fields.items() for name in variables(key, field)}
    assert set(given) <= known
    for name in [name for name in os.environ if name in known]:
        monkeypatch.delenv(name)
    for name, value in given.items():
        monkeypatch.setenv(name, value if value is not None else NAMESPACE)

    settings = Settings()
    assert settings.webhooks is values.get("webhooks", {}).get("enabled", True)
    assert settings.instance_count == values.get("shards", 1)
    assert settings.namespaces == tuple(values.get("watchNamespaces", ()))
    assert settings.log_level == values.get("settings", {}).get("logLevel", "info")
    assert settings.leases is values.get("settings", {}).get("leases", True)
    if "providers" in values:
        assert settings.bootstrap_groups == ("kubeadm.example.org",)
        assert settings.bootstrap_kinds == ("A", "*B")
        assert settings.infrastructure_kinds == ("*Machine",)
        assert settings.refused_kinds == ("*List",)


SWAPPED = {
    "bootstrapGroups": ["infrastructure.cluster.x-k8s.io", "k0smotron.io"],
    "infrastructureGroups": ["bootstrap.cluster.x-k8s.io", "k0smotron.io"],
    "bootstrapKinds": ["*Machine"],
    "infrastructureKinds": ["*Config"],
}
FOR_PROVIDERS = pytest.mark.parametrize(
    ("values", "policy"),
    [
        ({}, ProviderPolicy()),
        (
            {"bootstrapGroups": ["b.example.org", "a.example.org"], "infrastructureGroups": ["metal.example.org"]},
            ProviderPolicy(frozenset({"a.example.org", "b.example.org"}), frozenset({"metal.example.org"})),
        ),
        ({"refusedKinds": ["*List", "Root"]}, ProviderPolicy(refused_kinds=("*List", "Root"))),
        (
            {"bootstrapKinds": ["*Config", "Ignition"], "infrastructureKinds": ["Bare*Host"]},
            ProviderPolicy(bootstrap_kinds=("*Config", "Ignition"), infrastructure_kinds=("Bare*Host",)),
        ),
        (
            SWAPPED,
            ProviderPolicy(
                frozenset(SWAPPED["bootstrapGroups"]),
                frozenset(SWAPPED["infrastructureGroups"]),
                ("*Machine",),
                ("*Config",),
            ),
        ),
    ],
    ids=["default", "groups", "refused kinds", "kinds", "swapped"],
)


@FOR_PROVIDERS
def test_the_crd_is_the_one_made_of_the_models_for_these_providers(helm, values, policy):
    found = of_kind(helm.template({"providers": values}), "CustomResourceDefinition")
    assert {each["metadata"]["annotations"]["helm.sh/resource-policy"] for each in found} == {"keep"}
    specs = {each["metadata"]["name"]: each["spec"] for each in found}
    wanted = list(all_definitions(policy))
    assert specs == {each["metadata"]["name"]: each["spec"] for each in wanted}


def rules(documents, resource):
    """The kinds and namespaces of the roles that grant something on a resource, with the verbs."""
    return {
        (role["kind"], role["metadata"].get("namespace")): rule["verbs"]
        for role in documents
        if role["kind"] in ("ClusterRole", "Role")
        for rule in role["rules"]
        if resource in rule["resources"]
    }


def test_config_maps_are_out_of_reach_until_calendars_need_them(helm):
    asked = {"calendars": {"configMaps": True}}
    assert rules(helm.template(), "configmaps") == {}
    assert "FIVESPOT_CALENDAR_CONFIG_MAPS" not in environment(helm.template())
    assert environment(helm.template(asked))["FIVESPOT_CALENDAR_CONFIG_MAPS"] == "true"
    assert rules(helm.template(asked), "configmaps") == {("ClusterRole", None): ["list", "watch"]}
    narrow = rules(helm.template({**asked, "watchNamespaces": ["team"]}), "configmaps")
    assert set(narrow) == {("Role", "team"), ("Role", NAMESPACE)}


def test_in_some_namespaces_calendars_of_the_cluster_are_read_and_never_written(helm):
    narrow = helm.template({"watchNamespaces": ["team"]})
    assert rules(narrow, "clusterschedulecalendars") == {("ClusterRole", None): ["list", "watch"]}
    assert rules(narrow, "clusterschedulecalendars/status") == {}
    assert set(rules(narrow, "schedulecalendars/status")) == {("Role", "team")}
    assert set(rules(helm.template(), "clusterschedulecalendars/status")) == {("ClusterRole", None)}


def test_users_edit_the_calendars_of_their_namespaces_and_read_those_of_the_cluster(helm):
    rendered = helm.template({"rbac": {"aggregate": True}})
    roles = {each["metadata"]["name"]: each["rules"][0]["resources"] for each in of_kind(rendered, "ClusterRole")}
    assert roles["5spot-edit"] == ["scheduledmachines", "schedulecalendars"]
    readable = ["scheduledmachines", "schedulecalendars", "clusterschedulecalendars"]
    assert roles["5spot-view"] == [*readable, "scheduledmachineclasses", "scheduleoverrides"]


def test_classes_are_written_by_the_platform_team_and_read_by_tenants(helm):
    rendered = helm.template({"rbac": {"aggregate": True}})
    rules = {each["metadata"]["name"]: each["rules"] for each in of_kind(rendered, "ClusterRole")}
    assert set(rules["5spot-class-reader"][0]["verbs"]) == {"get", "list", "watch"}
    writers = {
        name
        for name, given in rules.items()
        for rule in given
        if "scheduledmachineclasses" in rule["resources"] and {"create", "update", "patch"} & set(rule["verbs"])
    }
    assert writers == {"5spot-class-admin"}
    without = of_kind(helm.template({"rbac": {"classRoles": False}}), "ClusterRole")
    assert not any("-class-" in role["metadata"]["name"] for role in without)


def granting(documents, verb):
    """The ClusterRoles that grant a verb on ScheduledMachines, and whether a role of the cluster includes them."""
    return {
        role["metadata"]["name"]: [key for key in role["metadata"]["labels"] if "aggregate" in key]
        for role in of_kind(documents, "ClusterRole")
        if any("scheduledmachines" in rule["resources"] and verb in rule["verbs"] for rule in role["rules"])
    }


def test_the_right_to_override_is_part_of_no_other_role(helm):
    rendered = helm.template({"rbac": {"aggregate": True}})
    assert granting(rendered, "override") == {"5spot-override": []}
    names = {role["metadata"]["name"] for role in of_kind(rendered, "ClusterRole")}
    assert {"5spot-override", "5spot-override-objects"} <= names
    without = of_kind(helm.template({"rbac": {"overrideRoles": False, "classRoles": False}}), "ClusterRole")
    assert [role["metadata"]["name"] for role in without] == ["5spot"]


def test_who_may_override_is_asked_only_by_webhooks(helm):
    assert rules(helm.template(), "subjectaccessreviews") == {("ClusterRole", None): ["create"]}
    assert rules(helm.template({"webhooks": {"enabled": False}}), "subjectaccessreviews") == {}


@FOR_PROVIDERS
def test_the_policies_are_those_made_of_the_rules_for_these_providers(helm, values, policy):
    rendered = helm.template({"providers": values, "webhooks": {"enabled": False}})
    wanted = [document for documents in policies.manifests(policy).values() for document in documents]
    found = [each for each in without_release_policy(rendered) if each["kind"].startswith("ValidatingAdmissionPolicy")]
    assert sorted(found, key=str) == sorted(wanted, key=str)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({}, "RemoteMachine.infrastructure.cluster.x-k8s.io: address, port=22"),
        (
            {"Metal.example.com": "network.address"},
            "Metal.example.com: network.address; RemoteMachine.infrastructure.cluster.x-k8s.io: address, port=22",
        ),
        ({"RemoteMachine.infrastructure.cluster.x-k8s.io": None}, ""),
    ],
    ids=["default", "one more", "none"],
)
def test_what_a_host_is_reaches_the_operator(helm, given, wanted):
    assert environment(helm.template({"providers": {"hostIdentity": given}}))["FIVESPOT_HOST_IDENTITY"] == wanted


def test_the_operators_pods_are_as_restricted_as_pods_can_be(default):
    pod = only(default, "Deployment")["spec"]["template"]["spec"]
    user = {"runAsNonRoot": True, "runAsUser": 65532, "runAsGroup": 65532}
    assert pod["securityContext"] == {**user, "seccompProfile": {"type": "RuntimeDefault"}}
    assert container(default)["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert container(default)["resources"]["limits"]["memory"]


def test_the_probes_ask_where_the_service_answers(default):
    ports = {port["name"]: port["containerPort"] for port in container(default)["ports"]}
    defaults = {name: Settings.model_fields[f"{name}_port"].default for name in ("webhook", "health", "metrics")}
    assert ports == {
        "webhooks": defaults["webhook"], "health": defaults["health"], "metrics": defaults["metrics"]
    }  # fmt: skip
    assert container(default)["livenessProbe"]["httpGet"] == {"path": "/health", "port": "health"}
    assert container(default)["readinessProbe"]["httpGet"] == {"path": "/ready", "port": "health"}


def test_pods_get_the_time_that_an_orderly_stop_takes(helm, default):
    pod = only(default, "Deployment")["spec"]["template"]["spec"]
    fields = Settings.model_fields
    needed = fields["drain_seconds"].default + fields["stop_seconds"].default
    assert pod["terminationGracePeriodSeconds"] > needed
    helm.template({"terminationGracePeriodSeconds": int(needed)})  # less is refused, see below


def test_there_is_a_pod_for_each_shard(helm):
    rendered = helm.template({"shards": 5})
    assert only(rendered, "Deployment")["spec"]["replicas"] == 5
    assert environment(rendered)["OPERATOR_INSTANCE_COUNT"] == "5"
    assert "OPERATOR_INSTANCE_ID" not in environment(rendered)  # replicas share the shards out among themselves


def test_one_pod_has_no_budget_that_would_hold_up_a_node(helm):
    assert of_kind(helm.template({"replicas": 1}), "PodDisruptionBudget") == []
    assert only(helm.template(), "PodDisruptionBudget")["spec"]["maxUnavailable"] == 1


def test_selectors_find_the_pods(default):
    labels = only(default, "Deployment")["spec"]["template"]["metadata"]["labels"].items()
    selectors = [service["spec"]["selector"] for service in of_kind(default, "Service")]
    selectors += [
        only(default, kind)["spec"]["selector"]["matchLabels"] for kind in ("Deployment", "PodDisruptionBudget")
    ]
    selectors += [only(default, "NetworkPolicy")["spec"]["podSelector"]["matchLabels"]]
    check = only(default, "Pod")["metadata"]["labels"].items()
    for selector in selectors:
        assert selector.items() <= labels
        assert not selector.items() <= check


def test_what_helm_test_starts_gets_to_where_it_has_to(helm):
    monitoring = {"namespaceSelector": {"matchLabels": {"name": "monitoring"}}}
    placed = {"nodeSelector": {"pool": "system"}, "tolerations": [{"operator": "Exists"}]}
    rendered = helm.template({"networkPolicy": {"metricsFrom": [monitoring]}, **placed})
    check = only(rendered, "Pod")
    (metrics,) = [rule for rule in only(rendered, "NetworkPolicy")["spec"]["ingress"] if "from" in rule]
    assert metrics["from"] == [monitoring, {"podSelector": {"matchLabels": check["metadata"]["labels"]}}]
    assert {key: check["spec"][key] for key in placed} == placed


def test_helm_test_expects_no_leases_where_there_are_none(helm):
    def rendered_test(values):
        return {entry["name"] for entry in only(helm.template(values), "Pod")["spec"]["containers"][0]["env"]}

    assert "WITHOUT_LEASES" not in rendered_test({})
    assert "WITHOUT_LEASES" in rendered_test({"replicas": 1, "settings": {"leases": False}})


def test_connections_may_be_limited_to_where_api_servers_are(helm):
    def api_servers(**egress):
        rendered = helm.template({"networkPolicy": {"egress": {"enabled": True, "ports": [6443], **egress}}})
        names, others = only(rendered, "NetworkPolicy")["spec"]["egress"]
        assert {entry["port"] for entry in names["ports"]} == {53}
        return others

    anywhere, peers = {"ports": [{"port": 6443, "protocol": "TCP"}]}, [{"ipBlock": {"cidr": "10.0.0.0/8"}}]
    assert api_servers() == anywhere
    assert api_servers(to=peers) == {**anywhere, "to": peers}


def test_only_api_servers_reach_the_webhooks_where_their_addresses_are_given(helm):
    def ingress(**policy):
        rules = only(helm.template({"networkPolicy": policy}), "NetworkPolicy")["spec"]["ingress"]
        return {rule["ports"][0]["port"]: rule.get("from") for rule in rules}

    assert ingress() == {"health": None, "webhooks": None, "metrics": None}
    check = {"podSelector": {"matchLabels": only(helm.template({}), "Pod")["metadata"]["labels"]}}
    callers = [{"ipBlock": {"cidr": "10.0.0.10/32"}}, {"ipBlock": {"cidr": "fd00::/64"}}, check]
    limited = ingress(apiServers=["10.0.0.10/32", "fd00::/64"])
    assert limited == {"health": None, "webhooks": callers, "metrics": None}


@pytest.mark.parametrize("certificates", ["self-managed", "cert-manager"])
def test_callers_are_verified_by_the_ca_of_a_secret(helm, certificates):
    rendered = helm.template({"webhooks": {"certificates": certificates, "clientCASecret": "callers"}})
    pod = only(rendered, "Deployment")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    (volume,) = [each for each in pod["volumes"] if each["name"] == "client-ca"]
    assert volume["secret"] == {"secretName": "callers", "items": [{"key": "ca.crt", "path": "ca.crt"}]}
    (mount,) = [each for each in container["volumeMounts"] if each["name"] == "client-ca"]
    environment = {entry["name"]: entry.get("value") for entry in container["env"]}
    assert environment["FIVESPOT_WEBHOOK_CLIENT_CA_FILE"] == f"{mount['mountPath']}/ca.crt"
    (check,) = only(rendered, "Pod")["spec"]["containers"]
    assert "WEBHOOK_URL" not in {entry["name"] for entry in check["env"]}, "it has no certificate to call with"


def test_notifications_take_their_credentials_from_a_secret_that_is_mounted(helm):
    rendered = helm.template({"notifications": {"url": "https://events.example.org", "secret": "sink"}})
    pod = only(rendered, "Deployment")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    (volume,) = [each for each in pod["volumes"] if each["name"] == "notifications"]
    (mount,) = [each for each in container["volumeMounts"] if each["name"] == "notifications"]
    environment = {entry["name"]: entry.get("value") for entry in container["env"]}
    assert (volume["secret"], mount["readOnly"]) == ({"secretName": "sink"}, True)
    assert environment["FIVESPOT_NOTIFY_SECRET_FOLDER"] == mount["mountPath"]
    assert environment["FIVESPOT_NOTIFY_URL"] == "https://events.example.org"


def test_by_default_no_notifications_are_sent(helm):
    rendered = helm.template({})
    (container,) = only(rendered, "Deployment")["spec"]["template"]["spec"]["containers"]
    assert not [entry for entry in container["env"] if "NOTIFY" in entry["name"]]


def test_cert_manager_takes_the_place_of_the_operators_own_certificates(helm):
    rendered = helm.template({"webhooks": {"certificates": "cert-manager"}})
    (certificate,) = [each for each in of_kind(rendered, "Certificate") if "dnsNames" in each["spec"]]
    for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"):
        assert "annotations" not in only(rendered, kind)["metadata"], "the CA injector would remove other CAs"
    volume = only(rendered, "Deployment")["spec"]["template"]["spec"]["volumes"][0]
    assert volume["secret"]["secretName"] == certificate["spec"]["secretName"]
    given = {
        "webhooks": {
            "certificates": "cert-manager",
            "certManager": {"issuerRef": {"kind": "ClusterIssuer", "name": "x"}},
        }
    }
    assert only(helm.template(given), "Certificate")["spec"]["issuerRef"] == {"kind": "ClusterIssuer", "name": "x"}
    assert of_kind(helm.template(given), "Issuer") == []


def test_what_cert_manager_renews_is_signed_by_a_ca_that_stays(helm):
    rendered = helm.template({"webhooks": {"certificates": "cert-manager"}})
    issuers = {each["metadata"]["name"]: each["spec"] for each in of_kind(rendered, "Issuer")}
    authority, serving = sorted(
        (each["spec"] for each in of_kind(rendered, "Certificate")), key=lambda spec: "dnsNames" in spec
    )
    assert "isCA" not in serving
    assert issuers[serving["issuerRef"]["name"]] == {"ca": {"secretName": authority["secretName"]}}
    assert authority["isCA"]
    assert issuers[authority["issuerRef"]["name"]] == {"selfSigned": {}}
    assert authority["privateKey"]["rotationPolicy"] == "Never"
    assert authority["secretName"] != serving["secretName"]


def test_without_webhooks_there_are_policies_and_nothing_of_webhooks(helm, tmp_path):
    chart = tmp_path / "5spot"
    shutil.copytree(CHART, chart)
    policy = {"apiVersion": "v1", "kind": "Example", "metadata": {"name": "from-the-folder"}}
    (chart / "files" / "policies").mkdir(exist_ok=True)
    (chart / "files" / "policies" / "zz-example.yaml").write_text(
        yaml.safe_dump(policy) + "---\n" + yaml.safe_dump(policy)
    )

    rendered = helm.template({"webhooks": {"enabled": False}}, chart=chart)
    assert len(of_kind(rendered, "Example")) == 2
    assert "fivespot-webhook" not in {each["metadata"]["name"] for each in of_kind(rendered, "Service")}
    assert not {each["kind"] for each in rendered} & {"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"}
    assert of_kind(helm.template(chart=chart), "Example") == []


def test_tenants_are_restricted_on_request_by_rules_that_live_beside_the_operator(helm):
    assert of_kind(without_release_policy(helm.template()), "ValidatingAdmissionPolicyBinding") == []
    asked = without_release_policy(helm.template({"tenancy": {"enabled": True}}, namespace="elsewhere"))
    rules, binding = only(asked, "ConfigMap"), only(asked, "ValidatingAdmissionPolicyBinding")
    named = {"name": rules["metadata"]["name"], "namespace": "elsewhere", "parameterNotFoundAction": "Deny"}
    assert rules["metadata"]["namespace"] == "elsewhere"
    assert binding["spec"]["paramRef"] == named
    assert binding["spec"]["policyName"] == only(asked, "ValidatingAdmissionPolicy")["metadata"]["name"]


def test_a_rule_for_tenants_that_is_given_leaves_the_others_in_force(helm):
    def rules(given):
        rendered = helm.template({"tenancy": {"enabled": True, "rules": given}})
        return {name: text.split() for name, text in only(rendered, "ConfigMap")["data"].items()}

    manifest = yaml.safe_load((CHART / "files" / "tenancy" / "configmap.yaml").read_text())
    shipped = {name: text.split() for name, text in manifest["data"].items()}
    assert rules({}) == shipped
    mine = {"allowedAddresses": ["10.0.0.0/8", "fd00::/8"], "forbiddenFields": ["bootstrapSpec.cloudInit"]}
    assert rules(mine) == shipped | mine
    assert rules({"allowedKinds": None}) == {name: words for name, words in shipped.items() if name != "allowedKinds"}


def test_the_agent_is_as_in_its_own_manifests_but_for_the_image(helm):
    rendered = helm.template({"operator": {"enabled": False}, "agent": {"enabled": True}}, namespace="kube-system")
    wanted = agent_documents()
    for daemon_set in (only(wanted, "DaemonSet"), only(rendered, "DaemonSet")):
        daemon_set["spec"]["template"]["spec"]["containers"][0].pop("imagePullPolicy", None)
    assert sorted(map(str, rendered)) == sorted(map(str, wanted))
    other = helm.template({"agent": {"enabled": True}, "image": {"repository": "my/5spot", "tag": "9"}})
    assert only(other, "DaemonSet")["spec"]["template"]["spec"]["containers"][0]["image"] == "my/5spot:9"
    assert of_kind(other, "Namespace") == []  # the release is in it already


def test_cluster_api_gets_the_same_agent_to_hand_on(helm):
    rendered = helm.template({"agent": {"clusterResourceSets": [{"namespace": "team", "matchLabels": {"a": "b"}}]}})
    (carried,) = [each for each in of_kind(rendered, "ConfigMap") if each["metadata"]["namespace"] == "team"]
    objects = [each for each in yaml.safe_load_all(carried["data"]["agent.yaml"]) if each]
    assert {each["kind"] for each in objects} == {each["kind"] for each in agent_documents()}
    handed = only(rendered, "ClusterResourceSet")["spec"]
    assert handed["resources"] == [{"kind": "ConfigMap", "name": carried["metadata"]["name"]}]


def test_several_sets_of_clusters_in_one_namespace_have_names_of_their_own(helm):
    sets = [{"namespace": space, "matchLabels": {"a": label}} for space, label in ("tb", "td", "uf")]
    rendered = helm.template({"agent": {"clusterResourceSets": sets}})
    for kind in ("ClusterResourceSet", "ConfigMap"):
        found = [(each["metadata"]["namespace"], each["metadata"]["name"]) for each in of_kind(rendered, kind)]
        assert found == [("t", "5spot-agent"), ("t", "5spot-agent-2"), ("u", "5spot-agent")]
    for handed in of_kind(rendered, "ClusterResourceSet"):
        assert [each["name"] for each in handed["spec"]["resources"]] == [handed["metadata"]["name"]]


def test_the_agent_is_fetched_with_the_same_secrets(helm):
    secrets, sets = [{"name": "registry"}, {"name": "b"}], [{"namespace": "team", "matchLabels": {"a": "b"}}]
    rendered = helm.template({"imagePullSecrets": secrets, "agent": {"enabled": True, "clusterResourceSets": sets}})
    (carried,) = [each for each in of_kind(rendered, "ConfigMap") if each["metadata"]["namespace"] == "team"]
    objects = [each for each in yaml.safe_load_all(carried["data"]["agent.yaml"]) if each]
    for documents in (rendered, objects):
        assert only(documents, "DaemonSet")["spec"]["template"]["spec"]["imagePullSecrets"] == secrets


def test_nothing_is_fetched_by_a_tag_that_moves(helm):
    digest = "sha256:" + b64encode(b"x" * 24).hex()[:64]
    for values in ({}, {"agent": {"enabled": True}}, {"shards": 2}):
        text = yaml.safe_dump_all(helm.template(values))
        images = re.findall(r"image: (\S+)", text)
        assert images
        assert all(re.fullmatch(r"\S+:\d+\.\d+\.\d+", image) for image in images)
    assert container(helm.template({"image": {"digest": digest}}))["image"] == f"5spot@{digest}"


def test_only_with_leases_and_roles_of_its_own_a_release_is_announced(helm):
    def policies_of(values):
        return [each for each in helm.template(values) if each["metadata"]["name"] == "5spot-release"]

    assert len(policies_of({})) == 2
    assert policies_of({"settings": {"leases": False}, "replicas": 1}) == []
    assert policies_of({"rbac": {"create": False}}) == []

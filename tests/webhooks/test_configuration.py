import base64

import pytest

from webhooks.configuration import Registration, ServiceRef, manifests

SERVICE = ServiceRef(namespace="5spot-system", name="5spot-webhook")


def webhooks(registration: Registration):
    return [webhook for configuration in manifests(registration) for webhook in configuration["webhooks"]]


@pytest.mark.parametrize("webhook", webhooks(Registration(SERVICE)), ids=lambda webhook: webhook["name"])
def test_a_webhook_is_asked_about_creation_and_update_of_our_objects_only(webhook):
    assert webhook["rules"] == [
        {
            "apiGroups": ["5spot.finos.org"],
            "apiVersions": ["v1alpha1"],
            "resources": ["scheduledmachines"],
            "operations": ["CREATE", "UPDATE"],
            "scope": "Namespaced",
        }
    ]
    assert webhook["failurePolicy"] == "Fail"
    assert webhook["sideEffects"] == "None"
    assert 2 <= webhook["timeoutSeconds"] <= 3


def test_each_is_reached_at_its_own_path_of_the_service():
    mutating, validating = webhooks(Registration(SERVICE))
    assert mutating["clientConfig"]["service"]["path"] == "/mutate-5spot-finos-org-v1alpha1-scheduledmachine"
    assert validating["clientConfig"]["service"]["path"] == "/validate-5spot-finos-org-v1alpha1-scheduledmachine"
    assert "caBundle" not in validating["clientConfig"]


def test_a_service_outside_the_cluster_is_reached_by_url():
    mutating, _ = webhooks(Registration("https://127.0.0.1:9443/", ca=b"PEM"))
    assert mutating["clientConfig"] == {
        "url": "https://127.0.0.1:9443/mutate-5spot-finos-org-v1alpha1-scheduledmachine",
        "caBundle": base64.b64encode(b"PEM").decode(),
    }


def test_objects_being_deleted_whose_spec_stays_and_our_own_writes_are_left_out():
    account = "system:serviceaccount:5spot-system:5spot"
    for webhook in webhooks(Registration(SERVICE, service_account=account)):
        expressions = [condition["expression"] for condition in webhook["matchConditions"]]
        assert expressions == [
            (
                "request.operation == 'CREATE' || !has(object.metadata.deletionTimestamp)"
                " || object.?spec != oldObject.?spec"
            ),
            f"request.userInfo.username != '{account}'",
        ]


def test_a_name_cannot_break_out_of_the_expression():
    (webhook, _) = webhooks(Registration(SERVICE, service_account="a' || true || 'b"))
    assert webhook["matchConditions"][1]["expression"] == r"request.userInfo.username != 'a\' || true || \'b'"


def test_only_the_watched_namespaces_are_selected():
    for webhook in webhooks(Registration(SERVICE, namespaces=("b", "a"))):
        selector = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["a", "b"]}
        assert webhook["namespaceSelector"] == {"matchExpressions": [selector]}
    assert "namespaceSelector" not in webhooks(Registration(SERVICE))[0]

"""The webhook configurations that make API servers call the operator; one place for chart, local clusters and tests."""

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from crds import cel, names

VALIDATING_NAME: Final = "5spot-validating"
MUTATING_NAME: Final = "5spot-mutating"
TIMEOUT_SECONDS: Final = 3
CALENDARS: Final = (
    (names.CALENDAR_PLURAL, "Namespaced", names.VALIDATE_CALENDAR_PATH),
    (names.CLUSTER_CALENDAR_PLURAL, "Cluster", names.VALIDATE_CLUSTER_CALENDAR_PATH),
)


@dataclass(frozen=True, slots=True)
class ServiceRef:
    """The Service in front of the replicas."""

    namespace: str
    name: str
    port: int = 443


@dataclass(frozen=True, slots=True)
class Registration:
    """Where the webhooks are reached and what they are asked about.

    `at` is a Service, or a base URL such as `https://127.0.0.1:9443` for a service outside the cluster. Without a `ca`
    the certificate loop puts it in. No namespaces means all of them. `service_account` is our own, whose writes are not
    asked about: `system:serviceaccount:5spot-system:5spot`.
    """

    at: ServiceRef | str
    ca: bytes | None = None
    namespaces: Sequence[str] = ()
    service_account: str | None = None
    calendars: bool = False
    """Whether the calendars are asked about too."""
    overrides: bool = False
    """Likewise the overrides."""
    classes: bool = False
    """Likewise the classes."""
    validating_name: str = VALIDATING_NAME
    mutating_name: str = MUTATING_NAME


def manifests(registration: Registration) -> tuple[dict[str, Any], dict[str, Any]]:
    """The mutating and the validating configuration, ready to be applied."""
    mutating = [_defaults(registration, names.PLURAL, names.MUTATE_PATH)]
    validating = [_webhook(registration, f"validate.{names.PLURAL}.{names.GROUP}", names.VALIDATE_PATH)]
    if registration.calendars:
        validating += [each for kind in CALENDARS for each in _with_deletion(registration, *kind)]
    if registration.overrides:
        mutating.append(_defaults(registration, names.OVERRIDE_PLURAL, names.MUTATE_OVERRIDE_PATH))
        validating.append(_override(registration))
    if registration.classes:
        validating += _with_deletion(registration, names.CLASS_PLURAL, "Cluster", names.VALIDATE_CLASS_PATH)
    return (
        _configuration("MutatingWebhookConfiguration", registration.mutating_name, mutating),
        _configuration("ValidatingWebhookConfiguration", registration.validating_name, validating),
    )


def _defaults(registration: Registration, plural: str, path: str) -> dict[str, Any]:
    webhook = _webhook(registration, f"default.{plural}.{names.GROUP}", path)
    webhook["rules"] = [_rule(plural, "Namespaced", ["CREATE", "UPDATE"])]
    # Another webhook may add fields after us; being asked again costs little, and twice does what once does.
    webhook["reinvocationPolicy"] = "IfNeeded"
    return webhook


def _override(registration: Registration) -> dict[str, Any]:
    plural = names.OVERRIDE_PLURAL
    webhook = _webhook(registration, f"validate.{plural}.{names.GROUP}", names.VALIDATE_OVERRIDE_PATH)
    webhook["rules"] = [_rule(plural, "Namespaced", ["CREATE", "UPDATE"])]
    return webhook


def _with_deletion(registration: Registration, plural: str, scope: str, path: str) -> list[dict[str, Any]]:
    """One webhook that judges and one that warns of a deletion, which it never stands in the way of."""
    judges = _webhook(registration, f"validate.{plural}.{names.GROUP}", path)
    judges["rules"] = [_rule(plural, scope, ["CREATE", "UPDATE"])]
    warns = _webhook(registration, f"deletion.{plural}.{names.GROUP}", path)
    warns["rules"] = [_rule(plural, scope, ["DELETE"])]
    # A deletion has no object to compare, and must go on without us.
    warns |= {"failurePolicy": "Ignore", "matchConditions": warns["matchConditions"][1:]}
    return [judges, warns]


def _rule(plural: str, scope: str, operations: list[str]) -> dict[str, Any]:
    return {
        "apiGroups": [names.GROUP],
        "apiVersions": [names.VERSION],
        "resources": [plural],
        "operations": operations,
        "scope": scope,
    }


def _configuration(kind: str, name: str, webhooks: list[dict[str, Any]]) -> dict[str, Any]:
    labels = {names.LABEL_MANAGED_BY: names.MANAGED_BY}
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": name, "labels": labels},
        "webhooks": webhooks,
    }


def _webhook(registration: Registration, name: str, path: str) -> dict[str, Any]:
    webhook: dict[str, Any] = {
        "name": name,
        "clientConfig": _client_config(registration, path),
        "rules": [_rule(names.PLURAL, "Namespaced", ["CREATE", "UPDATE"])],
        "matchPolicy": "Equivalent",
        "matchConditions": _match_conditions(registration.service_account),
        # Safe only because the rules are this narrow and the CRD's own schema backs them up.
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "timeoutSeconds": TIMEOUT_SECONDS,
        "admissionReviewVersions": ["v1"],
    }
    if registration.namespaces:
        webhook["namespaceSelector"] = {"matchExpressions": [_one_of(registration.namespaces)]}
    return webhook


def _client_config(registration: Registration, path: str) -> dict[str, Any]:
    if isinstance(registration.at, str):
        config: dict[str, Any] = {"url": registration.at.rstrip("/") + path}
    else:
        service = registration.at
        reference = {"namespace": service.namespace, "name": service.name, "port": service.port, "path": path}
        config = {"service": reference}
    if registration.ca:
        config["caBundle"] = b64encode(registration.ca).decode("ascii")
    return config


def _match_conditions(service_account: str | None) -> list[dict[str, str]]:
    conditions = [{"name": "not-being-deleted", "expression": cel.NOT_BEING_DELETED}]
    if service_account:
        expression = f"request.userInfo.username != '{_quoted(service_account)}'"
        conditions.append({"name": "not-our-own", "expression": expression})
    return conditions


def _one_of(namespaces: Sequence[str]) -> dict[str, Any]:
    return {"key": "kubernetes.io/metadata.name", "operator": "In", "values": sorted(set(namespaces))}


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace("'", "\\'")

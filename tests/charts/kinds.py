"""Kinds of other projects that the chart can make, with open schemas: the real ones are not ours to ship."""

from typing import Any

from service.kube.resource import Resource

SERVICE_MONITORS = Resource("monitoring.coreos.com", "v1", "servicemonitors", "ServiceMonitor")
RULES = Resource("monitoring.coreos.com", "v1", "prometheusrules", "PrometheusRule")
CERTIFICATES = Resource("cert-manager.io", "v1", "certificates", "Certificate")
ISSUERS = Resource("cert-manager.io", "v1", "issuers", "Issuer")
OTHERS = (SERVICE_MONITORS, RULES, CERTIFICATES, ISSUERS)

_OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def open_definition(resource: Resource) -> dict[str, Any]:
    """A CustomResourceDefinition that takes any spec."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": resource.label, "annotations": {"api-approved.kubernetes.io": "unapproved, for tests"}},
        "spec": {
            "group": resource.group,
            "scope": "Namespaced",
            "names": {"kind": resource.kind, "plural": resource.plural, "singular": resource.kind.lower()},
            "versions": [
                {
                    "name": resource.version,
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": _OPEN}}},
                }
            ],
        },
    }

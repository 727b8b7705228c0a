"""What cert-manager makes of the chart's Certificate, and what the webhook configurations trust."""

import base64

from local.pki import Authority
from tests.charts.helm import NAMESPACE
from tests.cluster.site import Raw, Site


def secret_of(authority: Authority) -> Raw:
    """The Secret, as cert-manager would fill it."""
    service = f"fivespot-webhook.{NAMESPACE}.svc"
    pair = authority.serving("webhook", names=(service, f"{service}.cluster.local"))
    data = {"tls.crt": pair.certificate, "tls.key": pair.key, "ca.crt": authority.pem}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "5spot-webhook-tls"},
        "type": "kubernetes.io/tls",
        "data": {name: base64.b64encode(value).decode() for name, value in data.items()},
    }


def authorities_of(site: Site) -> set[bytes]:
    """What every webhook of both configurations trusts, all of them the same."""
    found = [site.get(f"{kind}webhookconfiguration", f"5spot-{kind}") for kind in ("mutating", "validating")]
    (bundle,) = {webhook["clientConfig"]["caBundle"] for each in found for webhook in each["webhooks"]}
    end = b"-----END CERTIFICATE-----\n"
    return {part + end for part in base64.b64decode(bundle).split(end) if part}

"""Webhooks that want client certificates, and an API server that is configured to present one."""

import ssl
from pathlib import Path

import httpx
import yaml

from local.cluster import Options
from local.pki import Authority
from tests.integration.gate import gate

PLUGINS = ("MutatingAdmissionWebhook", "ValidatingAdmissionWebhook")


def admission_configuration(folder: Path, authority: Authority) -> Path:
    """As docs/security.md says: the API server presents this certificate to every webhook."""
    certificate, key = authority.client("kube-apiserver").write(folder, "caller")
    user = {"client-certificate": str(certificate), "client-key": str(key)}
    kubeconfig = {"apiVersion": "v1", "kind": "Config", "users": [{"name": "*", "user": user}]}
    (folder / "callers.kubeconfig").write_text(yaml.safe_dump(kubeconfig))
    plugin = {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "WebhookAdmissionConfiguration",
        "kubeConfigFile": str(folder / "callers.kubeconfig"),
    }
    configuration = {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "AdmissionConfiguration",
        "plugins": [{"name": name, "configuration": plugin} for name in PLUGINS],
    }
    (folder / "admission.yaml").write_text(yaml.safe_dump(configuration))
    return folder / "admission.yaml"


async def test_the_api_server_is_let_in_by_its_certificate_and_others_are_not(new_cluster, assets, tmp_path):
    authority = Authority.create("callers")
    (tmp_path / "ca.crt").write_bytes(authority.pem)
    configuration = admission_configuration(tmp_path, authority)
    cluster = new_cluster(Options(apiserver_flags=(f"--admission-control-config-file={configuration}",)))
    flags = {"webhook-client-ca-file": str(tmp_path / "ca.crt")}
    async with gate(cluster, assets, flags=flags) as door:
        assert await door.asked()
        port = await door.replicas[0].port("webhooks")
        assert await refused(port)


async def refused(port: int) -> bool:
    """Whether a caller without a certificate gets no answer at all."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        async with httpx.AsyncClient(verify=context) as client:
            await client.post(f"https://127.0.0.1:{port}/validate-5spot-finos-org-v1alpha1-scheduledmachine")
    except httpx.TransportError:
        return True
    return False

"""A single cluster: verified TLS, RBAC, working controllers, faults on demand."""

import json
import ssl
import subprocess
import urllib.request
from collections.abc import Callable

import pytest

from local import access
from local.binaries import Assets
from local.cluster import Audit, LocalCluster, Options


def kubectl(assets: Assets, cluster: LocalCluster, *words: str, user: str = access.ADMIN) -> str:
    argv = [str(assets.kubectl), f"--kubeconfig={cluster.kubeconfig_of(user)}", *words]
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout


def test_the_admin_kubeconfig_works_and_its_connection_is_verified(assets: Assets, small_cluster: LocalCluster) -> None:
    assert "insecure" not in small_cluster.kubeconfig.read_text()
    assert "default" in kubectl(assets, small_cluster, "get", "namespaces")


def test_a_client_that_trusts_another_authority_is_not_fooled(small_cluster: LocalCluster) -> None:
    with pytest.raises(OSError, match="CERTIFICATE_VERIFY_FAILED"):
        urllib.request.urlopen(small_cluster.url, context=ssl.create_default_context(), timeout=5)


def test_kubeconfigs_and_keys_are_readable_by_their_owner_alone(small_cluster: LocalCluster) -> None:
    private = [small_cluster.kubeconfig, *small_cluster.directory.glob("*.key"), small_cluster.directory / "tokens.csv"]
    assert [oct(path.stat().st_mode)[-3:] for path in private] == ["600"] * len(private)
    assert oct(small_cluster.directory.parent.stat().st_mode)[-3:] == "700"


def test_rbac_refuses_a_service_account_without_a_role(
    assets: Assets, small_cluster: LocalCluster, namespace: str
) -> None:
    account = f"system:serviceaccount:{namespace}:default"
    argv = ("auth", "can-i", "list", "secrets", f"--as={account}")
    with pytest.raises(subprocess.CalledProcessError) as refused:
        kubectl(assets, small_cluster, *argv)
    assert refused.value.stdout.strip() == "no"


def test_bound_service_account_tokens_are_issued(assets: Assets, small_cluster: LocalCluster, namespace: str) -> None:
    there = ("wait", "--for=create", "serviceaccount/default", f"--namespace={namespace}", "--timeout=90s")
    kubectl(assets, small_cluster, *there)
    token = kubectl(assets, small_cluster, "create", "token", "default", f"--namespace={namespace}").strip()
    assert token.count(".") == 2


def test_the_controllers_publish_the_root_certificate(
    assets: Assets, small_cluster: LocalCluster, namespace: str
) -> None:
    wait = ("wait", "--for=create", "configmap/kube-root-ca.crt", f"--namespace={namespace}", "--timeout=90s")
    kubectl(assets, small_cluster, *wait)
    found = kubectl(assets, small_cluster, "get", "configmap", "kube-root-ca.crt", f"-n={namespace}", "-o=json")
    assert json.loads(found)["data"]["ca.crt"] == small_cluster.authority.pem.decode()


def test_every_program_has_a_user_of_its_own(assets: Assets, small_cluster: LocalCluster) -> None:
    whoami = json.loads(kubectl(assets, small_cluster, "auth", "whoami", "-o=json", user=access.KWOK))
    assert whoami["status"]["userInfo"]["username"] == access.KWOK


def test_faults_can_be_caused_one_process_at_a_time(
    assets: Assets, new_cluster: Callable[[Options], LocalCluster]
) -> None:
    cluster = new_cluster(Options(audit=Audit.WRITES))
    kubectl(assets, cluster, "create", "namespace", "kept")

    cluster.apiserver.pause()
    assert not cluster.access.answers("/readyz", timeout=0.3)
    cluster.apiserver.resume()
    cluster.apiserver.wait_ready()

    url, pid = cluster.url, cluster.apiserver.pid
    cluster.apiserver.kill()
    assert cluster.apiserver.pid is None
    cluster.apiserver.restart()
    assert (cluster.url, cluster.apiserver.pid != pid) == (url, True)
    assert "kept" in kubectl(assets, cluster, "get", "namespaces")

    created = [json.loads(line) for line in cluster.audit_log.read_text().splitlines()]
    assert {"create"} <= {entry["verb"] for entry in created}
    assert not {"get", "list", "watch"} & {entry["verb"] for entry in created}
    assert any(entry["objectRef"].get("name") == "kept" for entry in created)

"""The chart with its default values on a real node: pods, webhooks, a machine's whole life, eviction."""

from typing import Any

import pytest

from crds import names
from tests.charts.helm import NAMESPACE
from tests.cluster.site import Raw, Refused, Site, eventually, is_ready
from tests.e2e.manifests import machine, says

ALWAYS: Raw = {"daysOfWeek": ["mon-sun"]}
HOST = "10.9.8.7"
NODE = "host-10-9-8-7"


def test_every_pod_is_ready_and_has_not_restarted(release: Site):
    pods = release.pods()
    assert len(pods) == 2
    assert all(map(is_ready, pods))
    assert [each["restartCount"] for pod in pods for each in pod["status"]["containerStatuses"]] == [0, 0]


def test_the_pods_run_as_user_and_group_65532_and_cannot_write(release: Site):
    name = release.pods()[0]["metadata"]["name"]
    said = release.kubectl("exec", f"-n={NAMESPACE}", name, "--", "id")
    assert "uid=65532" in said
    assert "gid=65532" in said
    with pytest.raises(Refused, match="Read-only file system"):
        release.kubectl("exec", f"-n={NAMESPACE}", name, "--", "touch", "/tmp/x")


def test_the_webhooks_complete_what_is_valid_and_refuse_what_is_not(release: Site):
    release.apply(machine("checked", schedule={**ALWAYS, "enabled": False}))
    stored = release.get("scheduledmachine", "checked")
    assert stored["metadata"]["finalizers"] == [names.FINALIZER]
    assert stored["spec"]["schedule"]["timezone"] == "UTC"
    with pytest.raises(Refused, match=r"hoursOfDay.*0 to 23"):
        release.apply(machine("wrong", schedule={"hoursOfDay": ["25"]}))
    release.kubectl("delete", "scheduledmachine", "checked")


def test_a_machine_becomes_a_node_through_cluster_api_and_goes_again(release: Site):
    release.apply(machine("desk", infrastructure={"address": HOST}, schedule=ALWAYS, gracefulShutdownTimeout="10s"))
    status: Any = eventually(lambda: _ready(release, "desk"))
    assert status["phase"] == "Active"
    assert status["nodeRef"]["name"] == NODE
    assert release.get("node", NODE, workload=True)["spec"]["providerID"] == f"remote-machine://{HOST}"

    release.apply(machine("desk", infrastructure={"address": HOST}, schedule=_closed(), gracefulShutdownTimeout="10s"))
    eventually(lambda: release.status("desk")["phase"] == "Inactive")
    assert release.get("node", NODE, workload=True) == {}
    assert release.all("machines", "-n=default") == []
    release.kubectl("delete", "scheduledmachine", "desk")


def test_helm_test_passes_and_shows_what_it_found(release: Site):
    said = release.release("test", "--logs", "--timeout=120s")
    assert "Phase:          Succeeded" in said
    assert "all is well" in said


def test_an_eviction_is_refused_while_another_pod_is_missing(release: Site):
    budget = release.get("poddisruptionbudget", "5spot", f"-n={NAMESPACE}")
    assert budget["status"]["disruptionsAllowed"] == 1
    first, second = (pod["metadata"]["name"] for pod in release.settled())
    _evict(release, first)
    with pytest.raises(Refused, match="disruption budget"):
        _evict(release, second)


def _ready(site: Site, name: str) -> Raw | None:
    status = site.status(name)
    return status if says(status, "Ready", "True") else None


def _closed() -> Raw:
    """Open for one minute a year."""
    return {"cron": "0 0 29 2 *"}


def _evict(site: Site, pod: str) -> None:
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": NAMESPACE}}
    path = f"/api/v1/namespaces/{NAMESPACE}/pods/{pod}/eviction"
    site.kubectl("create", "--raw", path, "-f", "-", stdin=body)

"""The agent's DaemonSet on a real node: it sees the owner's processes by kernel events, and no pod fools it.

The node is a Machine here, of a Cluster that stands for this very cluster. The operator runs beside it, as a process:
a reclaim deletes all pods of the Node.
"""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from crds.schema import custom_resource_definition
from local.crds import apply_all
from local.node.cluster import MANAGEMENT
from local.operator import REAL_TIME, Operator
from local.ports import ANY_PORTS
from tests.charts.helm import RELEASE
from tests.cluster.site import Raw, Site, eventually, installed, is_ready
from tests.e2e.manifests import machine
from tests.e2e.reclaims import is_over

CLUSTER = "itself"
AGENT = "app.kubernetes.io/name=5spot-reclaim-agent"
NAMESPACE = "5spot-system"
NAME = "workstation"
PROGRAM = "owners-program"


@pytest.fixture(scope="module")
def workload(site: Site) -> Iterator[Site]:
    """The agent alone, as in a workload cluster, and an operator elsewhere."""
    apply_all(site.cluster.client, [custom_resource_definition()])
    site.add_cluster(CLUSTER, namespace="default", workload=MANAGEMENT)
    with installed(site, {"operator": {"enabled": False}, "agent": {"enabled": True}, "crds": {"install": False}}):
        keeper = site.node.keeper
        with Operator.start(site.cluster, keeper, REAL_TIME, ANY_PORTS):
            yield site
            site.kubectl("delete", "scheduledmachine", NAME)
    site.node.restart_kubelet()
    site.forget_operator()


def test_the_agent_comes_to_the_node_of_a_machine_with_commands_and_gets_kernel_events(workload: Site):
    workload.apply(workstation(workload))
    eventually(lambda: workload.status(NAME).get("phase") == "Active")
    (pod,) = eventually(
        lambda: [each for each in workload.all("pods", f"-n={NAMESPACE}", f"-l={AGENT}") if is_ready(each)]
    )
    source = eventually(lambda: said_by(workload, pod, "source"))
    assert source[0]["source"] == "events"
    assert eventually(lambda: said_by(workload, pod, "config"))


def test_the_agent_alone_brings_no_operator(workload: Site):
    words = ("get", "manifest", RELEASE, f"--namespace={NAMESPACE}")
    manifest = workload.helm.run(*words, kubeconfig=workload.cluster.kubeconfig)
    kinds = set(re.findall(r"^kind: (\w+)", manifest, re.MULTILINE))
    assert "DaemonSet" in kinds
    assert not kinds & {"Deployment", "CustomResourceDefinition", "ValidatingWebhookConfiguration"}


def test_a_pod_with_a_program_of_that_name_changes_nothing(workload: Site):
    pod = lookalike_pod(workload)
    workload.apply(pod)
    eventually(lambda: is_ready(workload.get("pod", "lookalike")))
    run_for_a_moment("something-else")
    assert workload.status(NAME)["phase"] == "Active"
    annotations = workload.get("node", workload.node.agents.host.name)["metadata"]["annotations"]
    assert not [key for key in annotations if "reclaim" in key]
    workload.kubectl("delete", "pod", "lookalike", "--force", "--grace-period=0")


def test_the_owners_program_ejects_the_node(workload: Site, tmp_path: Path):
    program = tmp_path / PROGRAM
    shutil.copy("/bin/sleep", program)
    process = subprocess.Popen([program, "300"])
    try:
        status = eventually(lambda: over(workload.status(NAME)))
    finally:
        process.kill()
        process.wait()
    assert status is not None
    assert status["lastReclaim"]["reason"] == f'process "{PROGRAM}" (pid {process.pid}) matched "{PROGRAM}" by its name'
    assert workload.get("node", workload.node.agents.host.name) == {}
    assert workload.get("scheduledmachine", NAME)["spec"]["schedule"]["enabled"] is False


def workstation(site: Site) -> Raw:
    return machine(
        NAME,
        infrastructure={"address": site.node.agents.address},
        clusterName=CLUSTER,
        schedule={"daysOfWeek": ["mon-sun"]},
        killIfCommands=[PROGRAM],
    )


def lookalike_pod(site: Site) -> Raw:
    script = f"cp /bin/sleep /tmp/{PROGRAM} && exec /tmp/{PROGRAM} 300"
    container = {"name": "main", "image": site.node.parts.images.name, "command": ["sh", "-c", script]}
    spec = {"containers": [container], "tolerations": [{"operator": "Exists"}], "terminationGracePeriodSeconds": 1}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "lookalike"}, "spec": spec}


def run_for_a_moment(name: str) -> None:
    """One more process of the host, which the agent sees after those of the pod."""
    subprocess.run(["sh", "-c", f": {name}; sleep 3"], check=True)


def said_by(site: Site, pod: Raw, event: str) -> list[Raw]:
    lines = site.kubectl("logs", f"-n={NAMESPACE}", pod["metadata"]["name"]).splitlines()
    return [line for line in map(json.loads, lines) if line["event"] == event]


def over(status: Raw) -> Raw | None:
    return status if is_over(status) else None

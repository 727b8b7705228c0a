"""The agent's DaemonSet on a real node: it sees the owner's processes by kernel events, and no pod fools it.

The node is a Machine here, of a Cluster that stands for this very cluster. The operator runs beside it, as a process:
a reclaim deletes all pods of the Node.
"""

import asyncio
import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from crds.schema import custom_resource_definition
from local import clusters
from local.crds import apply_all
from local.node.cluster import MANAGEMENT
from local.operator import REAL_TIME, Operator
from local.ports import ANY_PORTS
from tests.cluster.site import Raw, Site, eventually, installed, is_ready
from tests.e2e.manifests import machine
from tests.e2e.reclaims import is_over

CLUSTER = "itself"
AGENT = "app.kubernetes.io/name=5spot-reclaim-agent"
NAMESPACE = "5spot-system"
NAME = "workstation"
PROGRAM = "owners-program"


@pytest.fixture(scope="module")
def release(site: Site) -> Iterator[Site]:
    """The agent alone, as in a workload cluster, and an operator elsewhere."""
    apply_all(site.cluster.client, [custom_resource_definition()])
    asyncio.run(_add_cluster(site))
    with installed(site, {"operator": {"enabled": False}, "agent": {"enabled": True}, "crds": {"install": False}}):
        keeper = site.node.keeper
        with Operator.start(site.cluster, keeper, REAL_TIME, ANY_PORTS):
            yield site
            site.kubectl("delete", "scheduledmachine", NAME)
    site.node.restart_kubelet()
    _forget_operator(site)


def _forget_operator(site: Site) -> None:
    """Helm takes over nothing that it did not make, and these webhooks have nobody to answer them."""
    for kind in ("crd", "mutatingwebhookconfigurations", "validatingwebhookconfigurations"):
        names_ = [name for name in site.kubectl("get", kind, "-o", "name").split() if "5spot" in name]
        if names_:
            site.kubectl("delete", *names_)


async def _add_cluster(site: Site) -> None:
    async with site.cluster.client() as client:
        await clusters.add(client, "default", CLUSTER, workload=MANAGEMENT)


def test_the_agent_comes_to_the_node_of_a_machine_with_commands_and_gets_kernel_events(release: Site):
    release.apply(workstation(release))
    eventually(lambda: release.status(NAME).get("phase") == "Active")
    (pod,) = eventually(
        lambda: [each for each in release.all("pods", f"-n={NAMESPACE}", f"-l={AGENT}") if is_ready(each)]
    )
    source = eventually(lambda: said_by(release, pod, "source"))
    assert source[0]["source"] == "events"
    assert eventually(lambda: said_by(release, pod, "config"))


def test_a_pod_with_a_program_of_that_name_changes_nothing(release: Site):
    pod = lookalike_pod(release)
    release.apply(pod)
    eventually(lambda: is_ready(release.get("pod", "lookalike")))
    run_for_a_moment("something-else")
    assert release.status(NAME)["phase"] == "Active"
    annotations = release.get("node", release.node.agents.host.name)["metadata"]["annotations"]
    assert not [key for key in annotations if "reclaim" in key]
    release.kubectl("delete", "pod", "lookalike", "--force", "--grace-period=0")


def test_the_owners_program_ejects_the_node(release: Site, tmp_path: Path):
    program = tmp_path / PROGRAM
    shutil.copy("/bin/sleep", program)
    process = subprocess.Popen([program, "300"])
    try:
        status = eventually(lambda: over(release.status(NAME)))
    finally:
        process.kill()
        process.wait()
    assert status is not None
    assert status["lastReclaim"]["reason"] == f'process "{PROGRAM}" (pid {process.pid}) matched "{PROGRAM}" by its name'
    assert release.get("node", release.node.agents.host.name) == {}
    assert release.get("scheduledmachine", NAME)["spec"]["schedule"]["enabled"] is False


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

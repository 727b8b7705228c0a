"""A cluster with a real node, as a test works with it: by helm and kubectl, as an administrator would."""

import asyncio
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from local import clusters
from local.cluster import LocalCluster
from local.node.cluster import NodeCluster
from local.provider import workloads
from tests.charts.helm import CHART, NAMESPACE, RELEASE, Helm
from tests.e2e.manifests import machine

Raw = dict[str, Any]
T = TypeVar("T")
OPERATOR = "app.kubernetes.io/component=operator"
PATIENCE = "180s"
IMAGE = "image.repository=5spot"
"""As it is called on the node."""


class Refused(AssertionError):
    """kubectl failed; the message is what it said."""


@dataclass(frozen=True)
class Site:
    """The cluster, and the programs to speak to it with."""

    node: NodeCluster
    helm: Helm

    @property
    def cluster(self) -> LocalCluster:
        return self.node.management

    @property
    def kubectl_program(self) -> Path:
        return self.node.parts.assets.kubectl

    def release(self, verb: str, *words: str, values: Raw | None = None, namespace: str = NAMESPACE) -> str:
        """`helm VERB` for the release 5spot."""
        return self.helm.run(
            verb, RELEASE, *words, f"--namespace={namespace}", values=values, kubeconfig=self.cluster.kubeconfig
        )

    def install(self, values: Raw | None = None, *, namespace: str = NAMESPACE) -> None:
        words = (str(CHART), "--install", "--create-namespace", "--wait", f"--timeout={PATIENCE}", f"--set={IMAGE}")
        self.release("upgrade", *words, values=values or {}, namespace=namespace)
        self.await_webhooks()

    def await_webhooks(self) -> None:
        """Returns when the API server reaches the webhooks, if any: kube-proxy learns of ready pods a moment later."""
        eventually(self._webhooks_answer)

    def _webhooks_answer(self) -> bool:
        try:
            self.kubectl("apply", "--server-side", "--dry-run=server", "-f", "-", stdin=machine("probe"))
        except Refused as refusal:
            return "failed calling webhook" not in str(refusal)
        return True

    def rollback(self) -> None:
        """Back to the revision before."""
        self.release("rollback", "--wait", f"--timeout={PATIENCE}")

    def checked(self) -> None:
        """What holds for every variant: the pods are ready, and `helm test` passes."""
        assert all(map(is_ready, self.pods()))
        assert "all is well" in self.release("test", "--logs", "--timeout=120s")

    def uninstall(self, *, namespace: str = NAMESPACE) -> None:
        """Removes the release; helm waits for its own objects, not for their pods."""
        self.release("uninstall", "--ignore-not-found", "--wait", f"--timeout={PATIENCE}", namespace=namespace)

    def kill_pods(self, namespace: str = NAMESPACE) -> None:
        """Ends the pods of a release that was removed, and their leases, without the time that these take to end.

        A kubelet lets the processes of a pod that is gone end in peace: for ten seconds they would answer an API server
        that has kept its connections to them, under an account that no longer exists.
        """
        selected = (f"-n={namespace}", f"-l={OPERATOR}")
        while pods := self.all("pods", *selected):
            self.kubectl("delete", "pods", *selected, "--force", "--grace-period=0", "--ignore-not-found")
            for process in (process for pod in pods for process in processes_of(pod)):
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
        self.kubectl("delete", "leases", f"-n={namespace}", "-l=5spot.finos.org/lease")

    def forget_operator(self) -> None:
        """Removes what outlives a release, or was made without Helm, which takes over nothing that it did not make."""
        for kind in ("crd", "mutatingwebhookconfigurations", "validatingwebhookconfigurations"):
            found = [name for name in self.kubectl("get", kind, "-o", "name").split() if "5spot" in name]
            if found:
                self.kubectl("delete", *found)

    def kubectl(self, *words: str, stdin: Raw | None = None, workload: bool = False, patience: float = 60) -> str:
        """What kubectl prints, of this cluster or of the workload cluster behind `demo`."""
        config = (self.node.plane.workload if workload else self.cluster).kubeconfig
        argv = [str(self.kubectl_program), f"--kubeconfig={config}", *words]
        given = json.dumps(stdin) if stdin is not None else None
        done = subprocess.run(argv, input=given, text=True, capture_output=True, check=False, timeout=patience)
        if done.returncode != 0:
            raise Refused(done.stderr.strip())
        return done.stdout

    def all(self, *words: str) -> list[Raw]:
        """All objects of a kind."""
        items: list[Raw] = json.loads(self.kubectl("get", *words, "-o", "json"))["items"]
        return items

    def get(self, *words: str, workload: bool = False) -> Raw:
        """An object; empty if there is none."""
        out = self.kubectl("get", *words, "--ignore-not-found", "-o", "json", workload=workload)
        found: Raw = json.loads(out) if out.strip() else {}
        return found

    def apply(self, body: Raw, namespace: str = "default") -> None:
        self.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", f"-n={namespace}", stdin=body)

    def add_cluster(self, name: str, *, namespace: str, workload: str = workloads.DEFAULT) -> None:
        """A Cluster that stands for one of the workload clusters."""

        async def add() -> None:
            async with self.cluster.client() as client:
                await clusters.add(client, namespace, name, workload=workload)

        asyncio.run(add())

    def pods(self, namespace: str = NAMESPACE) -> list[Raw]:
        """The operator's pods that are not on their way out."""
        found = self.all("pods", f"-n={namespace}", f"-l={OPERATOR}")
        return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]

    def settled(self, count: int = 2) -> list[Raw]:
        """The operator's pods as soon as they are all ready, and none is on its way out."""
        return eventually(lambda: self._settled(count))

    def _settled(self, count: int) -> list[Raw]:
        pods = self.all("pods", f"-n={NAMESPACE}", f"-l={OPERATOR}")
        return pods if len(pods) == count and all(map(is_ready, pods)) else []

    def logs(self, namespace: str = NAMESPACE) -> str:
        return self.kubectl("logs", f"-n={namespace}", f"-l={OPERATOR}", "--tail=-1", "--prefix")

    def status(self, name: str, namespace: str = "default") -> Raw:
        """The status of a ScheduledMachine."""
        found: Raw = self.get("scheduledmachine", name, f"-n={namespace}").get("status", {})
        return found


def eventually(fact: Callable[[], T], *, within: float = 120.0, every: float = 0.5) -> T:
    """Returns the first truthy answer of `fact`, or fails with its last one."""
    deadline = time.monotonic() + within
    while not (answer := fact()):
        assert time.monotonic() < deadline, f"not within {within:.0f} s; at last {answer!r}"
        time.sleep(every)
    return answer


def is_ready(pod: Raw) -> bool:
    conditions = pod.get("status", {}).get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def processes_of(pod: Raw) -> list[int]:
    """What the containers of a pod run, as this machine sees it; a container's own program comes first."""
    statuses = pod.get("status", {}).get("containerStatuses") or ()
    containers = {each["containerID"].removeprefix("containerd://") for each in statuses if each.get("containerID")}
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended in the meantime
            group = (entry / "cgroup").read_text(encoding="utf-8")
            if any(container in group for container in containers):
                found.append(int(entry.name))
    return sorted(found)


@contextmanager
def installed(site: Site, values: Raw | None = None, *, namespace: str = NAMESPACE) -> Iterator[Site]:
    """The release within the block; the CRD and what the notes name stay, as they do for users."""
    site.install(values, namespace=namespace)
    try:
        yield site
    finally:
        site.uninstall(namespace=namespace)
        site.kill_pods(namespace)

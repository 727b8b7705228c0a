"""A cluster with a real node, as a test works with it: by helm and kubectl, as an administrator would."""

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from local.cluster import LocalCluster
from local.node.cluster import NodeCluster
from tests.charts.helm import CHART, NAMESPACE, RELEASE, Helm

Raw = dict[str, Any]
T = TypeVar("T")
OPERATOR = "app.kubernetes.io/component=operator"
PATIENCE = "180s"


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
        words = (str(CHART), "--install", "--create-namespace", "--wait", f"--timeout={PATIENCE}")
        self.release("upgrade", *words, values=values or {}, namespace=namespace)

    def uninstall(self, *, namespace: str = NAMESPACE) -> None:
        """Removes the release; helm waits for its own objects, not for their pods."""
        self.release("uninstall", "--ignore-not-found", "--wait", f"--timeout={PATIENCE}", namespace=namespace)
        eventually(lambda: not self.all("pods", f"-n={namespace}", f"-l={OPERATOR}"))

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

    def pods(self, namespace: str = NAMESPACE) -> list[Raw]:
        """The operator's pods that are not on their way out."""
        found = self.all("pods", f"-n={namespace}", f"-l={OPERATOR}")
        return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]

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


@contextmanager
def installed(site: Site, values: Raw | None = None, *, namespace: str = NAMESPACE) -> Iterator[Site]:
    """The release within the block; the CRD and what the notes name stay, as they do for users."""
    site.install(values, namespace=namespace)
    try:
        yield site
    finally:
        site.uninstall(namespace=namespace)

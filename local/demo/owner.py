"""The owner of the workstation: the real agent on this machine, and a real process that it finds."""

import asyncio
import secrets
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import yaml

import agent
from crds.names import RECLAIM_NAMESPACE
from local import examples
from local.cluster import LocalCluster
from local.demo.expectations import BACK
from local.demo.observations import Chronicle, Kind, Observation
from local.errors import LocalError
from local.examples import WORKSTATION
from local.processes import Keeper, Server
from service.kube.client import Client
from service.kube.resource import PODS, SERVICE_ACCOUNTS

ACCOUNT: Final = "5spot-reclaim-agent"
MANIFESTS: Final = Path(agent.__file__).with_name("manifests")
LONGEST: Final = 15
"""Linux cuts the names of processes."""


@dataclass(slots=True)
class HostOwner:
    """Runs the agent while the workstation has a Node, and starts the owner's program at its hour."""

    cluster: LocalCluster
    kubectl: Path
    keeper: Keeper
    program: str = field(default_factory=lambda: f"ide-{secrets.token_hex(4)}"[:LONGEST])
    """No other process on this machine has this name."""
    agent: Server | None = None
    ide: Server | None = None

    def manifest(self) -> dict[str, Any]:
        """The workstation, with this program as the command of its owner."""
        body = examples.load(WORKSTATION)
        body["spec"]["killIfCommands"] = [self.program]
        return body

    def install(self) -> None:
        """Installs the agent's own manifests, as an administrator does."""
        words = [str(self.kubectl), f"--kubeconfig={self.cluster.kubeconfig}", "apply", "--server-side"]
        done = subprocess.run(  # noqa: S603 - a binary of our own making
            [*words, "-f", str(MANIFESTS)], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise LocalError(f"the agent's manifests cannot be applied: {done.stderr}")

    async def tend(self, client: Client, chronicle: Chronicle, now: datetime) -> None:
        """Does what is due."""
        node = self._node(chronicle)
        if node is None:
            self.stop()
        elif self.agent is None:
            await self._start_agent(client, node)
        elif self.ide is None and now >= BACK:
            self._start_ide(chronicle, now)

    def stop(self) -> None:
        """Ends both processes."""
        for each in (self.ide, self.agent):
            if each is not None and each.pid is not None:
                each.kill()

    def _node(self, chronicle: Chronicle) -> str | None:
        """The workstation's Node while it is there."""
        seen = [each for each in chronicle.present(Kind.MACHINE) if each.name == WORKSTATION and each.facts["node"]]
        there = {each.name for each in chronicle.present(Kind.NODE) if each.says(state="Ready")}
        return next((each.facts["node"] for each in seen if each.facts["node"] in there), None)

    async def _start_agent(self, client: Client, node: str) -> None:
        folder = self.keeper.directory / "owner"
        await asyncio.to_thread(self._write, folder, await self._token(client, node))
        argv = [
            sys.executable,
            "-m",
            "agent",
            f"--node={node}",
            f"--server={self.cluster.url}",
            f"--ca-file={folder}/ca.crt",
            f"--token-file={folder}/token",
            f"--machine-id-file={folder}/machine-id",
        ]
        self.agent = Server("reclaim-agent", argv, self.keeper, lambda: True)
        self.agent.start()

    def _write(self, folder: Path, token: str) -> None:
        folder.mkdir(mode=0o700, exist_ok=True)
        (folder / "ca.crt").write_bytes(self.cluster.authority.pem)
        (folder / "token").write_text(token)
        (folder / "machine-id").write_text(
            self.manifest()["spec"]["infrastructureSpec"]["spec"]["simulate"]["machineID"]
        )
        shutil.copy(shutil.which("sleep") or "/bin/sleep", folder / self.program)

    async def _token(self, client: Client, node: str) -> str:
        """What a pod of the agent's DaemonSet on this Node is given."""
        spec = {**self._pod, "nodeName": node}
        body = {**PODS.envelope(), "metadata": {"generateName": "reclaim-agent-"}, "spec": spec}
        pod = (await client.create(PODS, body, namespace=RECLAIM_NAMESPACE))["metadata"]
        bound = {"apiVersion": "v1", "kind": "Pod", "name": pod["name"], "uid": pod["uid"]}
        answer = await client.create_subresource(
            SERVICE_ACCOUNTS, ACCOUNT, "token", {"spec": {"boundObjectRef": bound}}, namespace=RECLAIM_NAMESPACE
        )
        return str(answer["status"]["token"])

    @property
    def _pod(self) -> dict[str, Any]:
        found = (
            each for path in sorted(MANIFESTS.glob("*.yaml")) for each in yaml.safe_load_all(path.read_text("utf-8"))
        )
        daemons = next(each for each in found if each["kind"] == "DaemonSet")
        spec: dict[str, Any] = daemons["spec"]["template"]["spec"]
        return spec

    def _start_ide(self, chronicle: Chronicle, now: datetime) -> None:
        program = self.keeper.directory / "owner" / self.program
        self.ide = Server("owner", [str(program), "3600"], self.keeper, lambda: True)
        self.ide.start()
        said = {"about": WORKSTATION, "reason": "OwnerIsBack", "type": "Normal"}
        note = f"The owner starts {self.program} on this machine, pid {self.ide.pid}."
        chronicle.record(Observation(now, Kind.EVENT, "owner-is-back", {**said, "note": note}))

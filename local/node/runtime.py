"""containerd on the node, with Debian's runc and network plugins, and the images that it is given."""

import json
import shutil
import subprocess
from collections.abc import Mapping
from typing import Any, Final

from local.errors import LocalError
from local.node import image
from local.node.ground import Ground
from local.node.image import Images
from local.node.packages import PLUGINS
from local.node.programs import NodePrograms
from local.node.warden import BRIDGE
from local.processes import Keeper, Server

CONFIGURATION: Final = """
version = 3
root = "{folder}/root"
state = "/run/containerd/state"
disabled_plugins = ["io.containerd.nri.v1.nri"]

[grpc]
  address = "{socket}"

[plugins."io.containerd.internal.v1.opt"]
  path = "{folder}/opt"

[plugins."io.containerd.cri.v1.images"]
  snapshotter = "overlayfs"
  [plugins."io.containerd.cri.v1.images".pinned_images]
    sandbox = "{pause}"

[plugins."io.containerd.cri.v1.runtime"]
  # Without CAP_SYS_RESOURCE a container's score cannot be lowered below our own.
  restrict_oom_score_adj = true
  [plugins."io.containerd.cri.v1.runtime".cni]
    bin_dirs = ["{plugins}"]
    conf_dir = "{folder}/cni"
  [plugins."io.containerd.cri.v1.runtime".containerd]
    default_runtime_name = "runc"
    [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
        BinaryName = "{runc}"
        SystemdCgroup = false
"""


class Runtime:
    """containerd, and `ctr` to speak to it."""

    def __init__(self, ground: Ground, programs: NodePrograms, keeper: Keeper) -> None:
        self._ground = ground
        self._programs = programs
        self._folder = keeper.directory / "containerd"
        self.socket = self._folder / "containerd.sock"
        command = [str(programs.containerd), f"--config={self._folder}/config.toml"]
        self.server = Server("node-containerd", ground.on_node(command), keeper, self._answers)

    def start(self, images: Images) -> None:
        """Brings containerd up with the images imported."""
        self._configure()
        self.server.started()
        for archive in (images.pause, images.operator):
            self.ctr("images", "import", str(archive))

    def ctr(self, *words: str) -> str:
        """What `ctr` prints, for the namespace that the kubelet works in."""
        command = [str(self._programs.ctr), f"--address={self.socket}", "--namespace=k8s.io", *words]
        done = subprocess.run(self._ground.on_node(command), check=False, capture_output=True, text=True)  # noqa: S603 -- our own words
        if done.returncode != 0:
            raise LocalError(f"ctr {' '.join(words)} failed: {done.stderr.strip()}")
        return done.stdout

    def _configure(self) -> None:
        runc = shutil.which("runc", path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin")
        text = CONFIGURATION.format(
            folder=self._folder, socket=self.socket, pause=image.PAUSE, plugins=PLUGINS, runc=runc
        )
        (self._folder / "cni").mkdir(parents=True)
        (self._folder / "config.toml").write_text(text, encoding="utf-8")
        network = json.dumps(self._network())
        (self._folder / "cni" / "10-5spot.conflist").write_text(network, encoding="utf-8")

    def _network(self) -> Mapping[str, Any]:
        """Pods are ports of the bridge, with addresses of its subnet, and reach each other through it."""
        subnet = self._ground.subnet
        addresses = {
            "type": "host-local",
            "dataDir": str(self._folder / "addresses"),
            "ranges": [[{"subnet": str(subnet.network), "gateway": subnet.bridge}]],
            "routes": [{"dst": "0.0.0.0/0"}],
        }
        bridge = {"type": "bridge", "bridge": BRIDGE, "hairpinMode": True, "ipam": addresses}
        return {"cniVersion": "1.0.0", "name": "5spot", "plugins": [bridge]}

    def _answers(self) -> bool:
        try:
            self.ctr("version")
        except LocalError:
            return False
        return True

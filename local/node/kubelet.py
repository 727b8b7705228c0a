"""The node's programs that speak to the API server: kubelet, kube-proxy and kube-scheduler."""

import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from local import access
from local.cluster import LocalCluster, start_on_free_port
from local.node.ground import Ground
from local.node.programs import NodePrograms
from local.node.warden import CGROUP
from local.ports import ANY_PORTS, LOOPBACK
from local.processes import Keeper, Server
from local.provider.hosts import Host

SCHEDULER: Final = "system:kube-scheduler"
PROXY: Final = "system:kube-proxy"
KUBELET_CLIENT: Final = "kube-apiserver-kubelet-client"
DNS_ADDRESS: Final = "10.96.0.10"
DOMAIN: Final = "cluster.local"


class NodeAgents:
    """What makes this machine the Node of a cluster, under the name and providerID of a simulated host.

    A RemoteMachine with the bridge's address stands for this very machine: its Node is the one that the kubelet
    registered.
    """

    def __init__(self, ground: Ground, programs: NodePrograms, keeper: Keeper, socket: Path) -> None:
        self._ground = ground
        self._programs = programs
        self._keeper = keeper
        self._socket = socket
        self._folder = keeper.directory / "node"
        self._folder.mkdir()
        self.address = ground.subnet.bridge
        self.host = Host.of({"metadata": {"namespace": "", "name": ""}, "spec": {"address": self.address}})

    @property
    def user(self) -> str:
        """Who the kubelet is to the API server."""
        return f"system:node:{self.host.name}"

    def start(self, cluster: LocalCluster) -> tuple[Server, ...]:
        """Starts the scheduler, the kubelet and kube-proxy, which wants its Node to be there."""
        self._write_certificates(cluster)
        return (
            start_on_free_port(lambda port: self._scheduler(cluster, port), ANY_PORTS),
            start_on_free_port(lambda port: self._kubelet(cluster, port), ANY_PORTS),
            start_on_free_port(lambda port: self._proxy(cluster, port), ANY_PORTS),
        )

    def _write_certificates(self, cluster: LocalCluster) -> None:
        (self._folder / "ca.crt").write_bytes(cluster.authority.pem)
        cluster.authority.serving("kubelet", self.address).write(self._folder, "kubelet")

    def _scheduler(self, cluster: LocalCluster, port: int) -> Server:
        argv = [
            str(self._programs.kube_scheduler),
            f"--kubeconfig={cluster.kubeconfig_of(SCHEDULER)}",
            "--leader-elect=false",
            f"--bind-address={LOOPBACK}",
            f"--secure-port={port}",
            f"--tls-cert-file={self._folder}/kubelet.crt",
            f"--tls-private-key-file={self._folder}/kubelet.key",
        ]
        tls = ssl.create_default_context(cadata=cluster.authority.pem.decode())
        probe = f"https://{LOOPBACK}:{port}/readyz"
        return Server("node-scheduler", argv, self._keeper, lambda: access.answers(probe, context=tls))

    def _proxy(self, cluster: LocalCluster, port: int) -> Server:
        configuration = {
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
            "kind": "KubeProxyConfiguration",
            "mode": "nftables",
            "hostnameOverride": self.host.name,
            "clientConnection": {"kubeconfig": str(cluster.kubeconfig_of(PROXY))},
            "clusterCIDR": str(self._ground.subnet.network),
            "bindAddress": self.address,
            "nodePortAddresses": [f"{self.address}/32"],
            "healthzBindAddress": f"{LOOPBACK}:{port}",
            "metricsBindAddress": "",
            # Both ends of a call between pods are on one bridge: the answer must come back by way of the machine.
            "nftables": {"masqueradeAll": True},
            # Zeros leave the machine's own settings alone.
            "conntrack": {
                "maxPerCore": 0,
                "min": 0,
                "tcpCloseWaitTimeout": "0s",
                "tcpEstablishedTimeout": "0s",
                "udpTimeout": "0s",
                "udpStreamTimeout": "0s",
            },
        }
        argv = [str(self._programs.kube_proxy), f"--config={self._written('kube-proxy', configuration)}"]
        probe = f"http://{LOOPBACK}:{port}/healthz"
        return Server("node-proxy", self._ground.on_node(argv), self._keeper, lambda: access.answers(probe))

    def _kubelet(self, cluster: LocalCluster, port: int) -> Server:
        health = ANY_PORTS.pick(port)
        argv = [
            str(self._programs.kubelet),
            f"--config={self._written('kubelet', self._kubelet_configuration(port, health))}",
            f"--kubeconfig={cluster.kubeconfig_of(self.user)}",
            f"--hostname-override={self.host.name}",
            f"--node-ip={self.address}",
            f"--root-dir={self._folder}/kubelet",
        ]
        probe = f"http://{LOOPBACK}:{health}/healthz"
        return Server("node-kubelet", self._ground.on_node(argv), self._keeper, lambda: access.answers(probe))

    def _kubelet_configuration(self, port: int, health: int) -> Mapping[str, Any]:
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            **self._served(port, health),
            **self._placed(),
            "providerID": self.host.provider_id,
            "clusterDNS": [DNS_ADDRESS],
            "clusterDomain": DOMAIN,
            "containerRuntimeEndpoint": f"unix://{self._socket}",
            # A machine with little room left is no reason to evict: nothing stays here for long.
            "evictionHard": {"memory.available": "0%", "nodefs.available": "0%", "imagefs.available": "0%"},
            "imageGCHighThresholdPercent": 100,
            "imageGCLowThresholdPercent": 99,
            "failSwapOn": False,
            # Needs CAP_SYS_RESOURCE.
            "oomScoreAdj": 0,
            "makeIPTablesUtilChains": False,
            "nodeStatusUpdateFrequency": "5s",
        }

    def _served(self, port: int, health: int) -> Mapping[str, Any]:
        return {
            "address": self.address,
            "port": port,
            "healthzBindAddress": LOOPBACK,
            "healthzPort": health,
            "tlsCertFile": f"{self._folder}/kubelet.crt",
            "tlsPrivateKeyFile": f"{self._folder}/kubelet.key",
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": True},
                "x509": {"clientCAFile": f"{self._folder}/ca.crt"},
            },
            "authorization": {"mode": "Webhook"},
        }

    def _placed(self) -> Mapping[str, Any]:
        """Where it keeps its files and processes."""
        resolver = self._folder / "resolv.conf"
        resolver.write_text("", encoding="utf-8")
        return {
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": f"/{CGROUP}",
            "failCgroupV1": False,
            "enforceNodeAllocatable": [],
            "podLogsDir": str(self._folder / "logs"),
            "resolvConf": str(resolver),
            "volumePluginDir": str(self._folder / "volume-plugins"),
        }

    def _written(self, name: str, configuration: Mapping[str, Any]) -> Path:
        path = self._folder / f"{name}.yaml"
        path.write_text(yaml.safe_dump(dict(configuration)), encoding="utf-8")
        return path

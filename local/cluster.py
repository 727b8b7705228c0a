"""One Kubernetes cluster without kubelets: etcd, kube-apiserver and kube-controller-manager on loopback."""

import os
import socket
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import yaml

from local import access, crds, pki
from local.access import ADMIN, Access
from local.binaries import Assets
from local.errors import LocalError
from local.ports import ANY_PORTS, LOOPBACK, PortRange
from local.processes import Keeper, Server, StartFailed
from service.kube.client import Client

PORT_ATTEMPTS = 5
AUDITED_NAMESPACES = ("5spot-system", "5spot-narrow", "5spot-modes")
SOCKET_PATH_MAX = 107
SERVICES = "10.96.0.0/16"
FIRST_SERVICE = "10.96.0.1"
WHOLE_LOG_MB = 100_000
"""A test follows the audit log from where it was: a server that starts a new file every 100 MB would break that."""


class Audit(StrEnum):
    """Which requests the API server writes to its audit log, one JSON line each."""

    OFF = "off"
    WRITES = "writes"
    ALL = "all"
    ACCOUNTS = "accounts"
    """Those of the ServiceAccounts in `AUDITED_NAMESPACES`, which operators under test run as."""


@dataclass(frozen=True, slots=True)
class Options:
    """What may differ between clusters."""

    apiserver_flags: tuple[str, ...] = ()
    controller_flags: tuple[str, ...] = ()
    definitions: tuple[dict[str, Any], ...] = ()
    audit: Audit = Audit.OFF
    ports: PortRange = ANY_PORTS
    address: str = LOOPBACK
    """Where the API server listens."""
    users: Mapping[str, str] = field(default_factory=dict)
    """Further users that get a token, and the group that each is in, empty for none."""


class Startable(ABC):
    """Servers that start and stop together: `with` starts them, stops them, and stops them too if the start fails."""

    @abstractmethod
    def start(self) -> Self:
        """Brings everything up."""

    @abstractmethod
    def stop(self) -> None:
        """Stops what has come up so far."""

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.stop()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


class LocalCluster(Startable):
    """A running cluster; `with LocalCluster(...)` starts it and stops it.

    `etcd`, `apiserver` and `controller_manager` can each be stopped, killed, paused and restarted to test faults.
    """

    etcd: Server
    apiserver: Server
    controller_manager: Server
    access: Access

    def __init__(self, name: str, assets: Assets, keeper: Keeper, options: Options | None = None) -> None:
        self.name = name
        self.authority = pki.Authority.create(f"{name} CA")
        self.directory = keeper.directory / name
        self._assets = assets
        self._keeper = keeper
        self._options = options or Options()
        self._tokens = access.new_tokens(self._options.users)

    def start(self) -> Self:
        """Brings all three up; ready means that the API server and the controllers do their work."""
        self.start_api()
        self.start_controllers()
        return self

    def start_api(self) -> None:
        """Brings up what stores and serves objects, with the CRDs of the options installed."""
        self.directory.mkdir()
        self._write_credentials()
        self.etcd = self._etcd().started()
        self.apiserver = start_on_free_port(self._apiserver, self._options.ports)
        crds.apply_all(self.client, self._options.definitions)

    def start_controllers(self) -> None:
        """Brings up the controllers; the garbage collector takes up to 30 s to see CRDs that come later."""
        self.controller_manager = self._controller_manager().started()

    def stop(self) -> None:
        """Stops the API server before its etcd: the other way round it hangs."""
        for part in ("controller_manager", "apiserver", "etcd"):
            server: Server | None = getattr(self, part, None)
            if server is not None:
                server.stop()

    @property
    def servers(self) -> tuple[Server, ...]:
        """Its processes."""
        return (self.etcd, self.apiserver, self.controller_manager)

    @property
    def url(self) -> str:
        """Where the API server listens."""
        return self.access.url

    @property
    def kubeconfig(self) -> Path:
        """A file that makes its reader an administrator."""
        return self.kubeconfig_of(access.ADMIN)

    def kubeconfig_of(self, user: str) -> Path:
        """A kubeconfig file for one of the users in `local.access`."""
        path = self.directory / f"{user.replace(':', '-')}.kubeconfig"
        if not path.exists():
            pki.write_private(path, self.access.kubeconfig(user))
        return path

    def client(self, user: str = ADMIN) -> Client:
        """A connection for code in this process; use it with `async with`."""
        return Client.from_inline(self.url, ca=self.authority.pem, token=self.access.tokens[user])

    @property
    def audit_log(self) -> Path:
        """Where audited requests are written, if any are."""
        return self.directory / "audit.log"

    def _write_credentials(self) -> None:
        self.authority.serving(f"{self.name} API server", *self._addresses).write(self.directory, "apiserver")
        (self.directory / "ca.crt").write_bytes(self.authority.pem)
        pki.write_private(self.directory / "service-accounts.key", pki.new_private_key())
        pki.write_private(self.directory / "tokens.csv", access.token_file(self._tokens, self._options.users))
        (self.directory / "audit-policy.yaml").write_text(_audit_policy(self._options.audit))

    @property
    def _addresses(self) -> tuple[str, ...]:
        """By which pods reach the API server, where they can: its own address, and that of Service `kubernetes`."""
        return () if self._options.address == LOOPBACK else (self._options.address, FIRST_SERVICE)

    @property
    def _reconciler(self) -> str:
        """On loopback Service `kubernetes` has no endpoint, as no pod could reach it."""
        return "none" if self._options.address == LOOPBACK else "master-count"

    @property
    def _socket(self) -> Path:
        """Where etcd listens; the kernel takes no longer path than this."""
        path = self.directory / "etcd.sock"
        if len(os.fsencode(path)) > SOCKET_PATH_MAX:
            raise LocalError(f"the folder for temporary files is too deep for sockets; set TMPDIR to one above {path}")
        return path

    def _etcd(self) -> Server:
        """Listens on sockets in our own directory: no port to clash, no other user can connect."""
        client, peer = f"unix://{self._socket}", f"unix://{self.directory}/peer.sock"
        argv = [
            str(self._assets.etcd),
            f"--name={self.name}",
            f"--data-dir={self.directory / 'etcd'}",
            "--unsafe-no-fsync",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster={self.name}={peer}",
            "--quota-backend-bytes=4294967296",
            "--log-level=warn",
        ]
        return self._server("etcd", argv, lambda: _accepts(self._socket))

    def _apiserver(self, port: int) -> Server:
        here = self.directory
        self.access = Access(self.name, f"https://{self._options.address}:{port}", self.authority.pem, self._tokens)
        argv = [
            str(self._assets.kube_apiserver),
            f"--etcd-servers=unix://{self._socket}",
            f"--bind-address={self._options.address}",
            f"--advertise-address={self._options.address}",
            f"--endpoint-reconciler-type={self._reconciler}",
            f"--secure-port={port}",
            f"--tls-cert-file={here}/apiserver.crt",
            f"--tls-private-key-file={here}/apiserver.key",
            "--authorization-mode=RBAC",
            f"--token-auth-file={here}/tokens.csv",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={here}/service-accounts.key",
            f"--service-account-signing-key-file={here}/service-accounts.key",
            f"--service-cluster-ip-range={SERVICES}",
            *self._audit_flags(),
            *self._options.apiserver_flags,
        ]
        return self._server("apiserver", argv, lambda: self.access.answers("/readyz"))

    def _audit_flags(self) -> list[str]:
        if self._options.audit is Audit.OFF:
            return []
        return [
            f"--audit-policy-file={self.directory}/audit-policy.yaml",
            f"--audit-log-path={self.audit_log}",
            f"--audit-log-maxsize={WHOLE_LOG_MB}",
        ]

    def _controller_manager(self) -> Server:
        config = self.kubeconfig_of(access.CONTROLLER_MANAGER)
        argv = [
            str(self._assets.kube_controller_manager),
            f"--kubeconfig={config}",
            "--controllers=*",
            "--use-service-account-credentials",
            f"--service-account-private-key-file={self.directory}/service-accounts.key",
            f"--root-ca-file={self.directory}/ca.crt",
            "--leader-elect=false",
            "--secure-port=0",
            "--kube-api-qps=200",
            "--kube-api-burst=400",
            *self._options.controller_flags,
        ]
        account = "/api/v1/namespaces/default/serviceaccounts/default"
        return self._server("controller-manager", argv, lambda: self.access.answers(account))

    def _server(self, part: str, argv: list[str], probe: Callable[[], bool]) -> Server:
        return Server(f"{self.name}-{part}", argv, self._keeper, probe)


def start_on_free_port(make: Callable[[int], Server], ports: PortRange) -> Server:
    """Starts a server on a port of its own; when another process was quicker to take the port, on another one."""
    for _ in range(PORT_ATTEMPTS - 1):
        try:
            return make(ports.pick()).started()
        except StartFailed as failed:
            if not failed.port_taken:
                raise
    return make(ports.pick()).started()


def _accepts(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        return client.connect_ex(str(path)) == 0


def _audit_policy(audit: Audit) -> str:
    policy = {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [{"level": "Metadata", **_audited(audit)}, {"level": "None"}],
    }
    return yaml.safe_dump(policy)


def _audited(audit: Audit) -> dict[str, list[str]]:
    """Which requests are written down."""
    if audit is Audit.ACCOUNTS:
        return {"userGroups": [f"system:serviceaccounts:{namespace}" for namespace in AUDITED_NAMESPACES]}
    return {} if audit is Audit.ALL else {"verbs": ["create", "update", "patch", "delete", "deletecollection"]}

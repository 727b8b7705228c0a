"""Who may talk to a cluster: bearer tokens for the users we start with, and kubeconfigs that carry them inline."""

import base64
import http.client
import secrets
import ssl
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

import yaml

ADMIN = "admin"
CONTROLLER_MANAGER = "system:kube-controller-manager"
CAPI = "capi"
KUBEADM = "capi-kubeadm-bootstrap"
DEVMACHINE = "capi-devmachine"
PROVIDER = "simulated-provider"
KWOK = "kwok"
CLUSTER_ACCESS = "cluster-kubeconfig"
OPERATOR = "5spot-operator"
ADMINS = (ADMIN, CAPI, KUBEADM, DEVMACHINE, PROVIDER, KWOK, CLUSTER_ACCESS, OPERATOR)


def new_tokens(further: Iterable[str] = ()) -> dict[str, str]:
    """A fresh token for every user; each program has a user of its own, so that an audit log distinguishes them."""
    return {user: secrets.token_urlsafe(24) for user in (*ADMINS, CONTROLLER_MANAGER, *further)}


def token_file(tokens: Mapping[str, str], groups: Mapping[str, str]) -> str:
    """What kube-apiserver reads with `--token-auth-file`; the controller-manager uses its built-in role.

    `groups` names the group of each further user that is in one.
    """
    known = {**dict.fromkeys(ADMINS, "system:masters"), **groups}
    return "".join(_token_line(token, user, known.get(user, "")) for user, token in tokens.items())


def _token_line(token: str, user: str, group: str) -> str:
    fields = (token, user, user, group) if group else (token, user, user)
    return ",".join(fields) + "\n"


@dataclass(frozen=True)
class Access:
    """Where an API server is, how to verify it, and as which user to call it."""

    cluster: str
    url: str
    ca: bytes
    tokens: Mapping[str, str]

    def kubeconfig(self, user: str = ADMIN, extensions: Mapping[str, Any] | None = None) -> str:
        """A kubeconfig with certificate authority and token inline, so that it works from anywhere.

        Its names are those of the cluster alone, so that `KUBECONFIG` may list several of them. `extensions` are facts
        for other programs.
        """
        name = f"{self.cluster}-{user}"
        context: dict[str, Any] = {"cluster": self.cluster, "user": name}
        if extensions:
            context["extensions"] = [{"name": key, "extension": value} for key, value in extensions.items()]
        server = {"server": self.url, "certificate-authority-data": base64.b64encode(self.ca).decode()}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": self.cluster, "cluster": server}],
            "users": [{"name": name, "user": {"token": self.tokens[user]}}],
            "contexts": [{"name": self.cluster, "context": context}],
            "current-context": self.cluster,
        }
        return yaml.safe_dump(config, sort_keys=False)

    def answers(self, path: str, *, timeout: float = 5.0) -> bool:
        """Whether a GET of `path` is answered with 200; used to see when servers are up."""
        return answers(f"{self.url}{path}", context=self._tls, token=self.tokens[ADMIN], timeout=timeout)

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        return ssl.create_default_context(cadata=self.ca.decode())


def answers(url: str, *, context: ssl.SSLContext | None = None, token: str = "", timeout: float = 5.0) -> bool:
    """Whether a GET of an http or https address is answered with 200."""
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port
    connection = (
        http.client.HTTPConnection(host, port, timeout=timeout)
        if parts.scheme == "http"
        else http.client.HTTPSConnection(host, port, timeout=timeout, context=context)
    )
    try:
        connection.request("GET", parts.path, headers={"Authorization": f"Bearer {token}"} if token else {})
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()

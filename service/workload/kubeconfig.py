"""Reads the kubeconfig that Cluster API stores for a workload cluster; accepts only inline data.

The Secret is in a tenant's namespace, so anything that would make the operator run a program, read a file or skip
verification is refused. No message quotes the content of the Secret.
"""

import base64
import binascii
from dataclasses import dataclass, field, replace
from typing import Any

import yaml

from crds import names
from service.kube import credentials
from service.kube.credentials import Endpoint, KubeconfigRefused

LARGEST = 64 * 1024
_CLUSTER_KEYS = {"server", "certificate-authority-data", "tls-server-name", "insecure-skip-tls-verify", "extensions"}
_USER_KEYS = {"client-certificate-data", "client-key-data", "token", "extensions"}


@dataclass(frozen=True, slots=True)
class ClusterAccess:
    """How to reach a workload cluster; equal if no credential was rotated."""

    server: str
    ca: bytes | None = None
    cert: bytes | None = field(default=None, repr=False)
    key: bytes | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    server_name: str | None = None

    def endpoint(self) -> Endpoint:
        """The endpoint with its own TLS context; `KubeconfigRefused` if a certificate is invalid."""
        found = credentials.inline(self.server, ca=self.ca, cert=self.cert, key=self.key, server_name=self.server_name)
        return replace(found, confidential=True)

    def only_token_differs(self, other: "ClusterAccess") -> bool:
        """Whether connections made for the other one serve this one too."""
        return self == replace(other, token=self.token)


def read_secret(secret: dict[str, Any], cluster: str) -> ClusterAccess:
    """The access that a Secret grants to the cluster of that name; `KubeconfigRefused` says what is wrong with it."""
    if secret.get("type") != names.KUBECONFIG_SECRET_TYPE:
        raise KubeconfigRefused(f"its type must be {names.KUBECONFIG_SECRET_TYPE}")
    labels = secret["metadata"].get("labels") or {}
    if labels.get(names.LABEL_CLUSTER_NAME) != cluster:
        raise KubeconfigRefused(f"its label {names.LABEL_CLUSTER_NAME} must be {cluster}")
    encoded = (secret.get("data") or {}).get(names.KUBECONFIG_SECRET_KEY)
    if not encoded:
        raise KubeconfigRefused(f"it has no key {names.KUBECONFIG_SECRET_KEY!r}")
    if len(encoded) > LARGEST * 4 // 3:
        raise KubeconfigRefused(f"the kubeconfig is larger than {LARGEST} bytes")
    return read_kubeconfig(_decoded(encoded, names.KUBECONFIG_SECRET_KEY))


def read_kubeconfig(text: bytes) -> ClusterAccess:
    """The access of the current context."""
    config = _mapping(_yaml(text), "the kubeconfig")
    context = _named(config, "contexts", "context", config.get("current-context"))
    cluster = _named(config, "clusters", "cluster", context.get("cluster"))
    user = _named(config, "users", "user", context.get("user"))
    _refuse_unknown(cluster, _CLUSTER_KEYS, "cluster")
    _refuse_unknown(user, _USER_KEYS, "user")
    if cluster.get("insecure-skip-tls-verify"):
        raise KubeconfigRefused("insecure-skip-tls-verify is not allowed; give certificate-authority-data")
    return _access(cluster, user)


def _access(cluster: dict[str, Any], user: dict[str, Any]) -> ClusterAccess:
    access = ClusterAccess(
        server=credentials.checked_server(_text(cluster, "server") or "", "the kubeconfig"),
        ca=_data(cluster, "certificate-authority-data"),
        cert=_data(user, "client-certificate-data"),
        key=_data(user, "client-key-data"),
        token=_text(user, "token"),
        server_name=_text(cluster, "tls-server-name"),
    )
    if bool(access.cert) != bool(access.key):
        raise KubeconfigRefused("client-certificate-data and client-key-data must be given together")
    if not access.cert and not access.token:
        raise KubeconfigRefused("the user has neither a token nor a client certificate")
    return access


class _WrittenOut(yaml.SafeLoader):
    """Refuses aliases: a kubeconfig needs none, and a few lines of them can take hours or fill the memory."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise KubeconfigRefused("YAML aliases are not allowed in a kubeconfig; write the values out")
        return super().compose_node(parent, index)


def _yaml(text: bytes) -> Any:
    try:
        # Not the C loader: it is faster, but overruns its stack on deeply nested input.
        return yaml.load(text, _WrittenOut)  # noqa: S506 - it is a SafeLoader
    except KubeconfigRefused:
        raise
    except Exception:  # noqa: BLE001 - `!!int ""` is an IndexError, `!!bool x` a KeyError, and there are more
        raise KubeconfigRefused("the kubeconfig is not valid YAML") from None


def _named(config: dict[str, Any], section: str, field_name: str, wanted: Any) -> dict[str, Any]:
    entries = config.get(section)
    listed = entries if isinstance(entries, list) else []
    found = [entry for entry in listed if isinstance(entry, dict) and entry.get("name") == wanted]
    if not wanted or len(found) != 1:
        raise KubeconfigRefused(f"the current context needs exactly one entry under {section}")
    return _mapping(found[0].get(field_name), section)


def _refuse_unknown(entry: dict[str, Any], allowed: set[str], what: str) -> None:
    refused = sorted(str(key)[:64] for key, value in entry.items() if value and key not in allowed)
    if refused:
        raise KubeconfigRefused(
            f"the {what} entry uses {', '.join(refused[:5])}; only inline certificates, keys and tokens are used"
        )


def _mapping(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise KubeconfigRefused(f"{what} must be a mapping")
    return value


def _text(entry: dict[str, Any], key: str) -> str | None:
    value = entry.get(key)
    if not value:
        return None
    if not isinstance(value, str) or not value.isprintable():
        raise KubeconfigRefused(f"{key} must be one line of text")
    return value


def _data(entry: dict[str, Any], key: str) -> bytes | None:
    value = _text(entry, key)
    return _decoded(value, key) if value else None


def _decoded(value: str, key: str) -> bytes:
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError, TypeError):
        raise KubeconfigRefused(f"{key} is not valid base64") from None

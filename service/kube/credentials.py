"""The address of an API server and our credentials; read from a kubeconfig, a pod's service account, or memory.

TLS is always verified, and at least version 1.2: a configuration that asks for less is refused.
"""

import os
import re
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import SplitResult, urlsplit
from urllib.request import getproxies, proxy_bypass

import yaml

from service.kube.library import load

_HOST = re.compile(r"[\w.:%-]+")
SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


class KubeconfigRefused(ValueError):
    """The configuration cannot be used as it is; the message says what to change."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An API server and the TLS settings to reach it with, client certificate included."""

    server: str
    tls: ssl.SSLContext
    server_name: str | None = None
    proxy: str | None = None
    confidential: bool = False
    """Whether errors must not describe the server: a tenant chose the address and can read our messages."""


class Credentials(Protocol):
    """Provides the Authorization header."""

    def authorization(self) -> str | None:
        """The current value of the header; called for every request, so it must be cheap."""
        ...

    async def refresh(self) -> bool:
        """Reads the source again after a 401; returns whether another try makes sense."""
        ...


@dataclass(slots=True)
class Token:
    """A bearer token in memory, or none where a client certificate authenticates us."""

    token: str | None = None

    def authorization(self) -> str | None:
        """The token as a header."""
        return f"Bearer {self.token}" if self.token else None

    async def refresh(self) -> bool:
        """False: there is no source to read again; the owner replaces `token` instead."""
        return False


class TokenFile:
    """A service-account token that the kubelet replaces on disk from time to time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp = 0
        self._header = ""
        self._read()

    def authorization(self) -> str | None:
        """The newest token: one stat per request costs less than a 401."""
        try:
            if self._path.stat().st_mtime_ns != self._stamp:
                self._read()
        except OSError:
            pass  # the file is being replaced; the token that was read before is still valid
        return self._header

    async def refresh(self) -> bool:
        """Reads the file again; returns whether it has another token than the refused one."""
        before = self._header
        try:
            self._read()
        except OSError:
            return False
        return self._header != before

    def _read(self) -> None:
        self._stamp = self._path.stat().st_mtime_ns
        self._header = f"Bearer {self._path.read_text().strip()}"


class KubeconfigUser:
    """The user of a kubeconfig: a token, a token file, or a plugin that is run again when its token is refused."""

    def __init__(self, path: Path, context: str | None, header: str | None) -> None:
        self._path = path
        self._context = context
        self._header = header

    def authorization(self) -> str | None:
        """The header that the loader made from the user entry."""
        return self._header

    async def refresh(self) -> bool:
        """Loads the file again, which runs plugins and reads token files; an error now may be gone next time."""
        before = self._header
        try:
            self._header = _header_of(await _load_kubeconfig(self._path, self._context))
        except (ValueError, OSError):
            return False  # the file is being written, or its plugin fails
        return self._header != before


async def from_kubeconfig(path: Path, context: str | None = None) -> tuple[Endpoint, Credentials]:
    """Reads a kubeconfig as kubectl does, but refuses a server that is not to be verified."""
    settings = await _load_kubeconfig(path, context)
    if not settings.verify_ssl:
        raise KubeconfigRefused(f"{path}: insecure-skip-tls-verify is not supported; give the server's CA instead")
    endpoint = Endpoint(
        server=checked_server(settings.host, str(path)),
        tls=tls_context_from_files(settings.ssl_ca_cert, settings.cert_file, settings.key_file),
        server_name=settings.tls_server_name,
        proxy=settings.proxy or environment_proxy(settings.host),
    )
    return endpoint, KubeconfigUser(path, context, _header_of(settings))


def from_pod(directory: Path = SERVICE_ACCOUNT) -> tuple[Endpoint, Credentials]:
    """The service account of the pod we run in."""
    library = load()
    settings = library.Configuration()
    token = directory / "token"
    authority = directory / "ca.crt"
    try:
        library.load_incluster_config(settings, token_filename=str(token), cert_filename=str(authority))
    except library.ConfigException as error:
        raise KubeconfigRefused(f"this is not a pod with a service account; give a kubeconfig: {error}") from error
    endpoint = Endpoint(
        server=settings.host, tls=tls_context_from_files(str(authority)), proxy=environment_proxy(settings.host)
    )
    return endpoint, TokenFile(token)


def inline(
    server: str,
    *,
    ca: bytes | None = None,
    cert: bytes | None = None,
    key: bytes | None = None,
    server_name: str | None = None,
) -> Endpoint:
    """An endpoint from PEM data in memory; nothing is written to disk."""
    server = checked_server(server, "kubeconfig")
    if server_name is not None and not _is_host(server_name):
        raise KubeconfigRefused(f"tls-server-name is not a valid host name: {server_name[:200]!r}")
    try:
        context = _context(cadata=ca.decode("ascii") if ca else None)
    except (ValueError, ssl.SSLError) as error:
        raise KubeconfigRefused("the CA certificate is not valid PEM") from error
    try:
        if cert and key:
            _load_pair(context, cert, key)
    except (ValueError, ssl.SSLError) as error:
        raise KubeconfigRefused("the client certificate and its key are not a valid pair in PEM") from error
    return Endpoint(server=server, tls=context, server_name=server_name, proxy=environment_proxy(server))


def checked_server(server: str, source: str) -> str:
    """The server's address without a trailing slash; `KubeconfigRefused` if it is not a plain https:// address."""
    if not _is_address(server):
        raise KubeconfigRefused(f"{source}: the server must be an https:// address, not {server[:200]!r}")
    return server.rstrip("/")


def _is_address(server: str) -> bool:
    """Whether this is an https:// address with a host and a port that exist."""
    try:
        parts = urlsplit(server)
        has_port = parts.port != 0
    except ValueError:
        return False
    return parts.scheme == "https" and has_port and _is_host(parts.hostname or "") and _is_bare(parts)


def _is_bare(parts: SplitResult) -> bool:
    return not (parts.query or parts.fragment or parts.username)


def _is_host(name: str) -> bool:
    """Whether this is a host name that TLS accepts, or an IP address."""
    try:
        return bool(_HOST.fullmatch(name) and name.encode("idna")) and not name.startswith(".")
    except UnicodeError:
        return False


def tls_context_from_files(ca: str | None = None, cert: str | None = None, key: str | None = None) -> ssl.SSLContext:
    """A TLS context that verifies the server, from files."""
    context = _context(cafile=ca)
    if cert:
        context.load_cert_chain(cert, key)
    return context


def environment_proxy(server: str) -> str | None:
    """The proxy that HTTPS_PROXY and NO_PROXY define; looked up once instead of for each request."""
    host = urlsplit(server).hostname or ""
    return None if proxy_bypass(host) else getproxies().get("https")


def _context(*, cafile: str | None = None, cadata: str | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=cafile, cadata=cadata)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # Python 3.13 requires key identifiers in every certificate, which the CAs of many clusters leave out.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


def _load_pair(context: ssl.SSLContext, cert: bytes, key: bytes) -> None:
    # The ssl module reads key pairs from files only; this file exists in memory only.
    descriptor = os.memfd_create("client-certificate")
    try:
        with os.fdopen(os.dup(descriptor), "wb") as file:
            file.write(cert + b"\n" + key)
        context.load_cert_chain(f"/proc/self/fd/{descriptor}", password="")
    finally:
        os.close(descriptor)


async def _load_kubeconfig(path: Path, context: str | None) -> Any:
    library = load()
    settings = library.Configuration()
    files = _files(path)
    try:
        await library.load_kube_config(
            config_file=os.pathsep.join(map(str, files)),
            context=context or _current_context(files),
            client_configuration=settings,
            persist_config=False,
        )
    except library.ConfigException as error:
        raise KubeconfigRefused(f"{path}: {error}") from error
    except (yaml.YAMLError, TypeError) as error:  # the library's errors for an empty file, such as one being written
        raise KubeconfigRefused(f"{path}: the file is not a kubeconfig") from error
    return settings


def _files(path: Path) -> list[Path]:
    """One file, or several as $KUBECONFIG may list them; missing files of a list are ignored."""
    listed = [path]
    if not path.exists():
        listed = [Path(each) for each in str(path).split(os.pathsep) if each]
    there = [each for each in listed if each.exists()]
    if not there or not all(os.access(each, os.R_OK) for each in there):
        raise KubeconfigRefused(f"{path}: no such kubeconfig file, or it cannot be read")
    return there


def _current_context(files: list[Path]) -> str | None:
    """The current context of the first file that names one, as in kubectl; the library would take the last."""
    if len(files) == 1:
        return None
    return next((named for each in files if (named := _parsed(each).get("current-context"))), None)


def context_of(path: Path, context: str | None = None) -> dict[str, Any]:
    """What a kubeconfig says of a context, of the current one unless another is given: namespace, extensions."""
    entries: list[Any] = []
    for each in _files(path):
        read = _parsed(each)
        context = context or read.get("current-context")
        entries += read.get("contexts") or ()
    return next((each.get("context") or {} for each in entries if each.get("name") == context), {})


def _parsed(file: Path) -> dict[str, Any]:
    """A kubeconfig as it is written; an empty one says nothing."""
    try:
        found = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise KubeconfigRefused(f"{file}: the file is not a kubeconfig") from error
    return found if isinstance(found, dict) else {}


def _header_of(settings: Any) -> str | None:
    header = settings.api_key.get("BearerToken")
    return None if header is None else str(header)

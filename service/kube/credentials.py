"""Where an API server is and how we prove who we are; read from a kubeconfig, a pod's own files, or memory.

TLS is always verified, and never older than 1.2: a configuration that asks for less is refused.
"""

import os
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import SplitResult, urlsplit
from urllib.request import getproxies, proxy_bypass

import yaml
from yarl import URL

from service.kube.library import load

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
    """Whether errors must not describe what was found there: a tenant chose the address and reads our messages."""


class Credentials(Protocol):
    """Says what goes into the Authorization header."""

    def authorization(self) -> str | None:
        """The header's value now; asked for every request, so it must be cheap."""
        ...

    async def refresh(self) -> bool:
        """Reads the source again after a 401; whether trying once more makes sense."""
        ...


@dataclass(slots=True)
class Token:
    """A bearer token held in memory, or none where a client certificate speaks for us."""

    token: str | None = None

    def authorization(self) -> str | None:
        """The token as a header."""
        return f"Bearer {self.token}" if self.token else None

    async def refresh(self) -> bool:
        """Memory has nothing newer; the owner swaps `token` instead."""
        return False


class TokenFile:
    """A service-account token that the kubelet replaces on disk from time to time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp = 0
        self._header = ""
        self._read()

    def authorization(self) -> str | None:
        """The newest token: a stat per request is cheaper than a 401."""
        try:
            if self._path.stat().st_mtime_ns != self._stamp:
                self._read()
        except OSError:
            pass  # replaced this very moment: the one at hand is still good
        return self._header

    async def refresh(self) -> bool:
        """Whether the file holds another token than the one refused."""
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
        """What the loader made of the user entry."""
        return self._header

    async def refresh(self) -> bool:
        """Loads the file anew, which runs plugins and re-reads token files; what fails now may work next time."""
        before = self._header
        try:
            self._header = _header_of(await _load_kubeconfig(self._path, self._context))
        except (ValueError, OSError):
            return False  # being written this very moment, or its plugin is out of order
        return self._header != before


async def from_kubeconfig(path: Path, context: str | None = None) -> tuple[Endpoint, Credentials]:
    """Everything kubectl would understand, except a server that is not to be verified."""
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
    token, authority = directory / "token", directory / "ca.crt"
    try:
        library.load_incluster_config(settings, token_filename=str(token), cert_filename=str(authority))
    except library.ConfigException as error:
        raise KubeconfigRefused(f"not inside a pod with a service account: {error}") from error
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
    """An endpoint from PEM data in memory; nothing touches the disk."""
    server = checked_server(server, "kubeconfig")
    if server_name is not None and not _is_host(server_name):
        raise KubeconfigRefused(f"tls-server-name is no name of a server: {server_name[:200]!r}")
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
    """The server's address without a trailing slash, if it is one we would talk to."""
    if not _is_address(server):
        raise KubeconfigRefused(f"{source}: the server must be an https:// address, not {server[:200]!r}")
    return server.rstrip("/")


def _is_address(server: str) -> bool:
    """Also for the HTTP client, which would come up with errors of its own later."""
    try:
        parts, port = urlsplit(server), URL(server, encoded=True).port
        return parts.scheme == "https" and bool(port) and _is_host(parts.hostname or "") and _is_bare(parts)
    except ValueError:
        return False


def _is_bare(parts: SplitResult) -> bool:
    return not (parts.query or parts.fragment or parts.username)


def _is_host(name: str) -> bool:
    """Whether a server can have that name; TLS takes no other."""
    try:
        return bool(name.encode("idna")) and not name.startswith(".")
    except UnicodeError:
        return False


def tls_context_from_files(ca: str | None = None, cert: str | None = None, key: str | None = None) -> ssl.SSLContext:
    """A verifying context from files."""
    context = _context(cafile=ca)
    if cert:
        context.load_cert_chain(cert, key)
    return context


def environment_proxy(server: str) -> str | None:
    """The proxy that HTTPS_PROXY and NO_PROXY ask for; looked up once rather than for each request."""
    host = urlsplit(server).hostname or ""
    return None if proxy_bypass(host) else getproxies().get("https")


def _context(*, cafile: str | None = None, cadata: str | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=cafile, cadata=cadata)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # Python 3.13 also wants key identifiers in every certificate, which many clusters' CAs leave out.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


def _load_pair(context: ssl.SSLContext, cert: bytes, key: bytes) -> None:
    # The ssl module reads key pairs from files only; this one exists in memory alone.
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
    except (yaml.YAMLError, TypeError) as error:  # what the library makes of an empty file, such as one being written
        raise KubeconfigRefused(f"{path}: not a kubeconfig") from error
    return settings


def _files(path: Path) -> list[Path]:
    """One file, or several as $KUBECONFIG may list them; those of a list that are not there do not count."""
    listed = [path] if path.exists() else [Path(each) for each in str(path).split(os.pathsep) if each]
    there = [each for each in listed if each.exists()]
    if not there or not all(os.access(each, os.R_OK) for each in there):
        raise KubeconfigRefused(f"{path}: no such kubeconfig file, or we may not read it")
    return there


def _current_context(files: list[Path]) -> str | None:
    """That of the first file that names one, as kubectl has it; the library would take the last."""
    if len(files) == 1:
        return None
    read = (yaml.safe_load(each.read_text(encoding="utf-8")) for each in files)
    return next((named for each in read if isinstance(each, dict) and (named := each.get("current-context"))), None)


def context_namespace(path: Path, context: str | None = None) -> str | None:
    """The namespace that a kubeconfig's context names, the current one unless another is given."""
    entries: list[Any] = []
    for each in _files(path):
        read = yaml.safe_load(each.read_text(encoding="utf-8"))
        if isinstance(read, dict):
            context = context or read.get("current-context")
            entries += read.get("contexts") or ()
    named = (each.get("context") or {} for each in entries if each.get("name") == context)
    return next((each.get("namespace") for each in named), None)


def _header_of(settings: Any) -> str | None:
    header = settings.api_key.get("BearerToken")
    return None if header is None else str(header)

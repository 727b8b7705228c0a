"""The TLS context that the webhook server keeps, and how a new certificate gets into it without a restart."""

import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from cryptography import x509

from certs.issue import CertificatePair


class UnusableCertificateError(ValueError):
    """A certificate and key that cannot be served; what is being served stays."""


class ServingContext:
    """One live `SSLContext`: new handshakes get the certificate loaded last, open connections keep theirs.

    With `verify_clients`, handshakes succeed only with a client certificate of the authorities that were trusted last;
    until there are any, with none.
    """

    def __init__(self, *, verify_clients: bool = False) -> None:
        self.live = _server_context()
        self._loaded: CertificatePair | None = None
        self._expires: datetime | None = None
        self._authorities: bytes | None = None
        if verify_clients:
            _require_clients(self.live)

    @property
    def loaded(self) -> CertificatePair | None:
        """What new handshakes get; None before the first one."""
        return self._loaded

    @property
    def expires(self) -> datetime | None:
        """When the certificate being served expires; None before the first one."""
        return self._expires

    def valid(self, now: datetime) -> bool:
        """Whether there is something to present that clients will accept."""
        return self._expires is not None and now < self._expires

    def load(self, pair: CertificatePair) -> bool:
        """Serves `pair` from now on; False if it is served already."""
        if pair == self._loaded:
            return False
        # A failed load leaves a context unusable, so the live one must not be the first to try.
        _load(_server_context(), pair)
        _load(self.live, pair)
        self._loaded, self._expires = pair, pair.parsed.not_valid_after_utc
        self._renew_verification()
        return True

    def trust(self, authorities: bytes) -> None:
        """Takes client certificates of these authorities (PEM), and of no others, from now on."""
        _trust(_server_context(), authorities)
        self._authorities = authorities
        self._renew_verification()

    def _renew_verification(self) -> None:
        """A context cannot drop an authority, so every handshake gets the newest context."""
        if self._authorities is None or self._loaded is None:
            return
        newest = _server_context()
        _require_clients(newest)
        _trust(newest, self._authorities)
        _load(newest, self._loaded)

        def choose(handshake: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> None:
            handshake.context = newest

        self.live.sni_callback = choose


@dataclass(frozen=True, slots=True)
class CertificateFiles:
    """A certificate and its key in two mounted files, renewed by another program such as cert-manager."""

    certificate: Path
    key: Path

    @property
    def path(self) -> Path:
        """The certificate's file."""
        return self.certificate

    def signature(self) -> object:
        """Changes whenever a file does; costs two `stat` calls and follows the links a mounted Secret consists of."""
        return _signature(self.certificate), _signature(self.key)

    def load_into(self, serving: ServingContext) -> None:
        """Serves the pair from now on."""
        serving.load(CertificatePair(self.certificate.read_bytes(), self.key.read_bytes()))


@dataclass(frozen=True, slots=True)
class AuthorityFile:
    """The certificates of client authorities in a mounted file."""

    path: Path

    def signature(self) -> object:
        """Changes whenever the file does."""
        return _signature(self.path)

    def load_into(self, serving: ServingContext) -> None:
        """Trusts these authorities from now on, and no others."""
        serving.trust(self.path.read_bytes())


def _signature(path: Path) -> tuple[int, int, int]:
    stat = path.stat()
    return stat.st_ino, stat.st_mtime_ns, stat.st_size


def _require_clients(context: ssl.SSLContext) -> None:
    context.verify_mode = ssl.CERT_REQUIRED
    # A client that resumes a session sends no certificate; only TLS 1.3 can do without resumption.
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.num_tickets = 0


def _trust(context: ssl.SSLContext, authorities: bytes) -> None:
    try:
        context.load_verify_locations(cadata=authorities.decode("ascii"))
    except (ssl.SSLError, ValueError) as error:
        reason = getattr(error, "reason", None) or "not PEM"
        raise UnusableCertificateError(f"the authorities of clients cannot be used: {reason}") from None


def _server_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context


def _load(context: ssl.SSLContext, pair: CertificatePair) -> None:
    try:
        x509.load_pem_x509_certificate(pair.certificate)
        with _in_memory(pair.certificate) as certificate, _in_memory(pair.key) as key:
            context.load_cert_chain(certificate, key, password=_no_password)
    except (ssl.SSLError, ValueError) as error:
        reason = getattr(error, "reason", None) or "not PEM"
        raise UnusableCertificateError(f"the certificate and key cannot be served: {reason}") from None


def _no_password() -> str:
    raise ValueError("the private key is encrypted")


@contextmanager
def _in_memory(content: bytes) -> Iterator[str]:
    # OpenSSL reads only files; an anonymous one keeps the key off the disk.
    descriptor = os.memfd_create("5spot", os.MFD_CLOEXEC)
    try:
        os.write(descriptor, content)
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)

"""The TLS context that the webhook server keeps, and how a new certificate gets into it without a restart."""

import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from cryptography import x509

from certs.issue import Pair


class UnusableCertificateError(ValueError):
    """A certificate and key that no server could present; what is being served stays as it is."""


class ServingContext:
    """One live `SSLContext`: new handshakes get the certificate loaded last, open connections keep theirs."""

    def __init__(self) -> None:
        self.live = _server_context()
        self._loaded: Pair | None = None
        self._expires: datetime | None = None

    @property
    def expires(self) -> datetime | None:
        """When the certificate being served ends; None before the first one."""
        return self._expires

    def valid(self, now: datetime) -> bool:
        """Whether there is something to present that clients will accept."""
        return self._expires is not None and now < self._expires

    def load(self, pair: Pair) -> bool:
        """Serves `pair` from now on; False if it is served already."""
        if pair == self._loaded:
            return False
        # A failed load leaves a context unusable, so the live one must not be the first to try.
        _load(_server_context(), pair)
        _load(self.live, pair)
        self._loaded, self._expires = pair, pair.parsed.not_valid_after_utc
        return True


@dataclass(frozen=True, slots=True)
class CertificateFiles:
    """A certificate kept by somebody else (cert-manager, for one) in two mounted files."""

    certificate: Path
    key: Path

    def signature(self) -> tuple[tuple[int, int, int], ...]:
        """Changes whenever a file does; costs two `stat` calls and follows the links a mounted Secret consists of."""
        stats = (self.certificate.stat(), self.key.stat())
        return tuple((stat.st_ino, stat.st_mtime_ns, stat.st_size) for stat in stats)

    def read(self) -> Pair:
        """The pair as it lies there now."""
        return Pair(self.certificate.read_bytes(), self.key.read_bytes())


def _server_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context


def _load(context: ssl.SSLContext, pair: Pair) -> None:
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
    # OpenSSL reads only files; an anonymous one spares the key a way over the disk.
    descriptor = os.memfd_create("5spot", os.MFD_CLOEXEC)
    try:
        os.write(descriptor, content)
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)

"""Which authorities the webhook configurations should trust: those in use, and for a while those of other sources.

While an administrator switches between self-managed certificates and cert-manager, replicas of both run side by side.
Each publishes its own authority and keeps that of the other, so that an API server can verify every replica.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

BLOCK: Final = re.compile(rb"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)
# API servers learn a changed webhook configuration by watch. A new replica waits this long before it is called.
LEARNT_AFTER: Final = timedelta(seconds=3)
NOT_YET: Final = datetime.max.replace(tzinfo=UTC)

Authorities = frozenset[bytes]
"""Certificates, each as PEM."""


@dataclass(slots=True)
class Trust:
    """What one replica has seen in the configurations; `keep` is how long it leaves an authority of another source."""

    keep: timedelta
    _others: dict[bytes, datetime] = field(default_factory=dict)
    _retired: set[bytes] = field(default_factory=set)
    _published_at: datetime | None = None
    _succeeds: bool = False

    def wanted(self, needed: Authorities, entries: Iterable[bytes], now: datetime) -> Authorities:
        """What every caBundle should hold: what this replica needs, and what others may still serve."""
        found = [authorities(entry) for entry in entries]
        self._note(needed, found, now)
        present = frozenset().union(*found)
        kept = {pem for pem in present - needed if self._leaves(pem, now)}
        return needed | kept

    def published(self, now: datetime) -> None:
        """Every configuration holds what this replica needs."""
        self._published_at = self._published_at or now

    def retire(self, gone: Authorities) -> None:
        """These were this source's own and are over: they are removed at once."""
        self._retired |= gone

    def obstacle(self, now: datetime) -> str | None:
        """Why API servers may not trust this replica yet; None if they do."""
        if self._published_at is None:
            return "the webhook configurations do not trust the certificate yet"
        if self._succeeds and now < self._published_at + LEARNT_AFTER:
            return "API servers have not had time to learn the caBundle"
        return None

    def requeue_at(self) -> datetime:
        """When the next authority of another source is due to be removed."""
        left = [seen + self.keep for pem, seen in self._others.items() if pem not in self._retired]
        return min(left, default=NOT_YET)

    def _note(self, needed: Authorities, found: list[Authorities], now: datetime) -> None:
        """Only a publisher like this one adds to what it finds. An entry that lost what is needed was spoilt."""
        known = {pem for entry in found for pem in entry}
        self._others = {pem: seen for pem, seen in self._others.items() if pem in known - needed}
        for entry in found:
            if self._published_at is None or needed <= entry:
                for pem in entry - needed:
                    self._others.setdefault(pem, now)
        self._succeeds = self._succeeds or (self._published_at is None and bool(self._others))

    def _leaves(self, pem: bytes, now: datetime) -> bool:
        seen = self._others.get(pem)
        return seen is not None and pem not in self._retired and now < seen + self.keep and not _expired(pem, now)


def authorities(pem: bytes) -> Authorities:
    """The certificates of a PEM text; none if one of them cannot be read, as an API server then reads none either."""
    try:
        return frozenset(
            x509.load_pem_x509_certificate(block).public_bytes(Encoding.PEM) for block in BLOCK.findall(pem)
        )
    except ValueError:
        return frozenset()


def joined(wanted: Authorities) -> bytes:
    """The caBundle, in the same order everywhere."""
    return b"".join(sorted(wanted))


def _expired(pem: bytes, now: datetime) -> bool:
    return x509.load_pem_x509_certificate(pem).not_valid_after_utc <= now

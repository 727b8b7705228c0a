"""What the certificate Secret holds and which step comes next: a value, the time, and the value that follows.

A new authority is trusted before it signs and the old one after it stopped, so that at no moment an API server meets
a serving certificate that it cannot verify. `certs.rotation` performs the steps.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from cryptography import x509

from certs.issue import BACKDATED, CertificatePair, belongs, names_of, new_authority, new_leaf, signed_by

CA_CERTIFICATE: Final = "ca.crt"
CA_KEY: Final = "ca.key"
LEAF_CERTIFICATE: Final = "tls.crt"
LEAF_KEY: Final = "tls.key"
NEXT_CERTIFICATE: Final = "next-ca.crt"
NEXT_KEY: Final = "next-ca.key"
PUBLISHED_AT: Final = "next-ca-published-at"
OLD_CERTIFICATE: Final = "old-ca.crt"
SWITCHED_AT: Final = "switched-at"


class RotationRequest(StrEnum):
    """What a user may request before it is due, as the value of an annotation on the Secret."""

    LEAF = "leaf"
    CA = "ca"


class UnreadableBundleError(ValueError):
    """The Secret's content is not what we wrote."""


@dataclass(frozen=True, slots=True)
class Policy:
    """How long things live."""

    authority_life: timedelta = timedelta(days=3650)
    leaf_life: timedelta = timedelta(days=365)
    renew_after: float = 2 / 3
    # API servers learn a changed webhook configuration by watch, within seconds; this is ample.
    settle: timedelta = timedelta(minutes=5)
    # A replica that cannot reach its API server still serves the old certificate; it gets a day.
    retire: timedelta = timedelta(days=1)

    def renewal(self, certificate: x509.Certificate) -> datetime:
        """When a certificate is due to be replaced."""
        issued, ends = certificate.not_valid_before_utc + BACKDATED, certificate.not_valid_after_utc
        return issued + (ends - issued) * self.renew_after


@dataclass(frozen=True, slots=True)
class Bundle:
    """The authority in use and the serving certificate it signed, and the authorities coming and going."""

    authority: CertificatePair
    leaf: CertificatePair
    coming: CertificatePair | None = None
    published_at: datetime | None = None
    going: bytes | None = None
    switched_at: datetime | None = None

    @property
    def trusted(self) -> bytes:
        """The caBundle: every authority whose certificates a replica may serve now, in the same order everywhere."""
        coming = self.coming.certificate if self.coming else None
        return b"".join(sorted(pem for pem in (self.authority.certificate, coming, self.going) if pem))

    def encoded(self) -> dict[str, bytes]:
        """The Secret's data."""
        parts = {
            CA_CERTIFICATE: self.authority.certificate,
            CA_KEY: self.authority.key,
            LEAF_CERTIFICATE: self.leaf.certificate,
            LEAF_KEY: self.leaf.key,
            NEXT_CERTIFICATE: self.coming.certificate if self.coming else None,
            NEXT_KEY: self.coming.key if self.coming else None,
            PUBLISHED_AT: _stamp(self.published_at),
            OLD_CERTIFICATE: self.going,
            SWITCHED_AT: _stamp(self.switched_at),
        }
        return {name: part for name, part in parts.items() if part}


def decode(data: Mapping[str, bytes]) -> Bundle:
    """The bundle in a Secret's data; raises `UnreadableBundleError` for anything that cannot be served."""
    try:
        bundle = Bundle(
            authority=CertificatePair(data[CA_CERTIFICATE], data[CA_KEY]),
            leaf=CertificatePair(data[LEAF_CERTIFICATE], data[LEAF_KEY]),
            coming=CertificatePair(data[NEXT_CERTIFICATE], data[NEXT_KEY]) if NEXT_CERTIFICATE in data else None,
            published_at=_instant(data.get(PUBLISHED_AT)),
            going=data.get(OLD_CERTIFICATE),
            switched_at=_instant(data.get(SWITCHED_AT)),
        )
        sound = all(belongs(pair) for pair in (bundle.authority, bundle.leaf, bundle.coming) if pair)
    except KeyError as error:
        raise UnreadableBundleError(f"the key {error} is missing") from None
    except (ValueError, TypeError):
        # The parser's own message might quote key material.
        raise UnreadableBundleError("a certificate, key or time in it cannot be read") from None
    if not sound:
        raise UnreadableBundleError("a private key does not belong to its certificate")
    return bundle


def first_bundle(names: tuple[str, ...], now: datetime, policy: Policy) -> Bundle:
    """A new authority and its first serving certificate."""
    authority = new_authority(now, policy.authority_life)
    return Bundle(authority=authority, leaf=new_leaf(authority, names, now, policy.leaf_life))


@dataclass(frozen=True, slots=True)
class BundleState:
    """What a step depends on besides the bundle."""

    now: datetime
    names: tuple[str, ...]
    # Whether every webhook configuration carries the bundle's `trusted` already.
    published: bool
    requested: RotationRequest | None = None


def advance(bundle: Bundle, situation: BundleState, policy: Policy) -> Bundle:
    """The state that follows; the very same object when nothing is due."""
    now = situation.now
    if bundle.authority.parsed.not_valid_after_utc <= now:
        # API servers no longer trust an expired authority, so there is nothing to gain from a gradual change.
        return first_bundle(situation.names, now, policy)
    if bundle.going and bundle.switched_at and now >= bundle.switched_at + policy.retire:
        bundle = replace(bundle, going=None, switched_at=None)
    if bundle.coming is None:
        bundle = _with_coming(bundle, situation, policy)
    elif bundle.published_at is None:
        bundle = replace(bundle, published_at=now) if situation.published else bundle
    elif now >= bundle.published_at + policy.settle:
        bundle = _switched(bundle, situation, policy)
    return _with_fresh_leaf(bundle, situation, policy)


def requeue_at(bundle: Bundle, policy: Policy) -> datetime:
    """The next instant at which `advance` may have something to do by itself."""
    due = [policy.renewal(bundle.leaf.parsed)]
    if bundle.coming is None:
        due.append(policy.renewal(bundle.authority.parsed))
    elif bundle.published_at is not None:
        due.append(bundle.published_at + policy.settle)
    if bundle.going and bundle.switched_at:
        due.append(bundle.switched_at + policy.retire)
    return min(due)


def _with_coming(bundle: Bundle, situation: BundleState, policy: Policy) -> Bundle:
    due = situation.now >= policy.renewal(bundle.authority.parsed)
    # One rotation at a time: while an authority is going, the next one waits.
    if bundle.going or not (due or situation.requested is RotationRequest.CA):
        return bundle
    return replace(bundle, coming=new_authority(situation.now, policy.authority_life), published_at=None)


def _switched(bundle: Bundle, situation: BundleState, policy: Policy) -> Bundle:
    authority = bundle.coming
    if authority is None:
        return bundle
    return Bundle(
        authority=authority,
        leaf=new_leaf(authority, situation.names, situation.now, policy.leaf_life),
        going=bundle.authority.certificate,
        switched_at=situation.now,
    )


def _with_fresh_leaf(bundle: Bundle, situation: BundleState, policy: Policy) -> Bundle:
    leaf = bundle.leaf.parsed
    stale = (
        situation.requested is RotationRequest.LEAF
        or situation.now >= policy.renewal(leaf)
        or not names_of(leaf) >= frozenset(situation.names)
        or not signed_by(leaf, bundle.authority.parsed)
    )
    if not stale:
        return bundle
    return replace(bundle, leaf=new_leaf(bundle.authority, situation.names, situation.now, policy.leaf_life))


def _stamp(instant: datetime | None) -> bytes | None:
    return instant.isoformat().encode() if instant else None


def _instant(stamp: bytes | None) -> datetime | None:
    if stamp is None:
        return None
    instant = datetime.fromisoformat(stamp.decode())
    if instant.tzinfo is None:
        raise ValueError("a time without its zone")
    return instant

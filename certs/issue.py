"""Makes certificate authorities and the serving certificates they sign; called by `certs.bundle` alone."""

import secrets
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from ipaddress import ip_address
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

# API servers whose clock is a little behind ours must accept a certificate made this moment.
BACKDATED: Final = timedelta(minutes=10)
COMMON_NAME_LIMIT: Final = 64


@dataclass(frozen=True, slots=True)
class CertificatePair:
    """A certificate and its private key, both PEM; the key never shows in a log or traceback."""

    certificate: bytes
    key: bytes = field(repr=False)

    @property
    def parsed(self) -> x509.Certificate:
        """The certificate, decoded."""
        return x509.load_pem_x509_certificate(self.certificate)


def new_authority(now: datetime, life: timedelta) -> CertificatePair:
    """A certificate authority with a name of its own, so that two of them can be trusted side by side."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name(f"5spot-webhook-ca-{now:%Y%m%d}-{secrets.token_hex(4)}")
    builder = (
        _dated(name, now, now + life)
        .issuer_name(name)
        .public_key(key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    return _pair(builder.sign(key, hashes.SHA256()), key)


def new_leaf(authority: CertificatePair, names: tuple[str, ...], now: datetime, life: timedelta) -> CertificatePair:
    """A serving certificate for `names` (DNS names and IP addresses); it never outlives its authority."""
    issuer, signer = authority.parsed, _private_key(authority)
    key = ec.generate_private_key(ec.SECP256R1())
    builder = (
        _dated(_name(names[0][:COMMON_NAME_LIMIT]), now, min(now + life, issuer.not_valid_after_utc))
        .issuer_name(issuer.subject)
        .public_key(key.public_key())
        .add_extension(x509.SubjectAlternativeName([_general_name(name) for name in names]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
    )
    return _pair(builder.sign(signer, hashes.SHA256()), key)


def names_of(certificate: x509.Certificate) -> frozenset[str]:
    """The DNS names and IP addresses a certificate is good for."""
    try:
        extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return frozenset()
    return frozenset(str(name.value) for name in extension.value)


def signed_by(leaf: x509.Certificate, authority: x509.Certificate) -> bool:
    """Whether `authority` really signed `leaf`."""
    try:
        leaf.verify_directly_issued_by(authority)
    except (InvalidSignature, ValueError, TypeError):
        return False
    return True


def belongs(pair: CertificatePair) -> bool:
    """Whether the key is the certificate's; raises ValueError where either cannot be read."""
    return _private_key(pair).public_key() == pair.parsed.public_key()


def _dated(subject: x509.Name, now: datetime, until: datetime) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATED)
        .not_valid_after(until)
    )


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _private_key(pair: CertificatePair) -> ec.EllipticCurvePrivateKey:
    key = load_pem_private_key(pair.key, password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise TypeError("the private key is not an elliptic-curve key")
    return key


def _pair(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> CertificatePair:
    return CertificatePair(
        certificate=certificate.public_bytes(Encoding.PEM),
        key=key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
    )

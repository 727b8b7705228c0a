"""Kubernetes' own grammars for names, labels, annotations and taints, and the prefixes kept from users."""

import re
from functools import lru_cache
from typing import Final, TypeGuard

from crds.invalid import InvalidValue

DNS_LABEL: Final = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
SUBDOMAIN: Final = rf"{DNS_LABEL}(?:\.{DNS_LABEL})*"
NAME_PART: Final = r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
QUALIFIED_NAME: Final = rf"(?:{SUBDOMAIN}/)?{NAME_PART}"
LABEL_VALUE: Final = rf"(?:{NAME_PART})?"
KIND: Final = r"[A-Z][A-Za-z0-9]*"
VERSION: Final = r"v[1-9][0-9]*(?:(?:alpha|beta)[1-9][0-9]*)?"
API_VERSION: Final = rf"{SUBDOMAIN}/{VERSION}"
_NUMBER: Final = r"(?:0|[1-9][0-9]*)"
_DOTTED: Final = r"[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*"
KUBERNETES_VERSION: Final = rf"v?{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-{_DOTTED})?(?:\+{_DOTTED})?"
FAILURE_DOMAIN: Final = r"[A-Za-z0-9][-A-Za-z0-9_.:/]*"

COUNTRY: Final = r"[A-Z]{2}"
CONFIG_MAP_KEY: Final = r"[-._a-zA-Z0-9]+"
PARAMETER_NAME: Final = r"[A-Za-z][-_A-Za-z0-9]*"

NAME_MAX: Final = 63
PREFIX_MAX: Final = 253
KEY_MAX: Final = PREFIX_MAX + 1 + NAME_MAX
TAINT_KEY_MAX: Final = 253
MACHINE_NAME_MAX: Final = 53
VERSION_MAX: Final = 256
FAILURE_DOMAIN_MAX: Final = 256
"""Both as Cluster API bounds them in a Machine."""

_SUBDOMAIN_RE: Final = re.compile(SUBDOMAIN)
_NAME_PART_RE: Final = re.compile(NAME_PART)
_LABEL_VALUE_RE: Final = re.compile(LABEL_VALUE)
_KIND_RE: Final = re.compile(KIND)
_API_VERSION_RE: Final = re.compile(API_VERSION)
_DNS_LABEL_RE: Final = re.compile(DNS_LABEL)
_KUBERNETES_VERSION_RE: Final = re.compile(KUBERNETES_VERSION)
_COUNTRY_RE: Final = re.compile(COUNTRY)
_CONFIG_MAP_KEY_RE: Final = re.compile(CONFIG_MAP_KEY)
_FAILURE_DOMAIN_RE: Final = re.compile(FAILURE_DOMAIN)
_PARAMETER_NAME_RE: Final = re.compile(PARAMETER_NAME)

TAINT_RESERVED: Final = r"(5spot\.finos\.org|([-a-z0-9.]+\.)?kubernetes\.io|([-a-z0-9.]+\.)?cluster\.x-k8s\.io)/"
TEMPLATE_RESERVED: Final = r"([-a-z0-9.]+\.)?(5spot\.finos\.org|kubernetes\.io|k8s\.io|cluster\.x-k8s\.io)/"
ANNOTATION_EXCEPTIONS: Final = ("app.kubernetes.io/",)
LABEL_EXCEPTIONS: Final = (*ANNOTATION_EXCEPTIONS, "node.cluster.x-k8s.io/", "node-restriction.kubernetes.io/")

_TAINT_RESERVED_RE: Final = re.compile(TAINT_RESERVED)
_TEMPLATE_RESERVED_RE: Final = re.compile(TEMPLATE_RESERVED)

_NAME_PART_ALLOWED: Final = "letters, digits, '-', '_' and '.', starting and ending with a letter or digit, at most 63"
_SUBDOMAIN_ALLOWED: Final = (
    "lower-case letters, digits, '-' and '.', each part starting and ending with a letter or digit"
)


CLUSTER_NAME_MESSAGE: Final = f"must be 1 to {NAME_MAX} characters: {_SUBDOMAIN_ALLOWED}"
MACHINE_NAME_MESSAGE: Final = f"must be 1 to {MACHINE_NAME_MAX} characters: {_SUBDOMAIN_ALLOWED}"
OBJECT_NAME_MESSAGE: Final = f"must be 1 to {PREFIX_MAX} characters: {_SUBDOMAIN_ALLOWED}"
NAMESPACE_MESSAGE: Final = "must be a namespace: 1 to 63 lower-case letters, digits and inner '-'"
KIND_MESSAGE: Final = "must be a kind such as RemoteMachine: an upper-case letter, then letters, digits, up to 63"
API_VERSION_MESSAGE: Final = "must be <group>/<version>, with a version such as v1 or v1beta1"
KUBERNETES_VERSION_MESSAGE: Final = (
    f"must be a Kubernetes version such as v1.34.2 or v1.34.2+k0s.0, of at most {VERSION_MAX} characters"
)
FAILURE_DOMAIN_MESSAGE: Final = (
    f"must be 1 to {FAILURE_DOMAIN_MAX} letters, digits, '-', '_', '.', ':' and '/', starting with a letter or digit"
)
COUNTRY_MESSAGE: Final = "must be an ISO 3166-1 code of two capital letters, such as GB"
CONFIG_MAP_KEY_MESSAGE: Final = f"must be a key of a ConfigMap: 1 to {PREFIX_MAX} letters, digits, '-', '_' and '.'"
PARAMETER_NAME_MESSAGE: Final = f"must be a letter, then letters, digits, '-' and '_', at most {NAME_MAX} characters"
LABEL_VALUE_MESSAGE: Final = f"must be empty or {_NAME_PART_ALLOWED}"
KEY_MESSAGE: Final = f"must be a name ({_NAME_PART_ALLOWED}), before it perhaps a DNS name and '/'"
TAINT_RESERVED_MESSAGE: Final = (
    "has a reserved prefix; not allowed are 5spot.finos.org/, kubernetes.io/ and cluster.x-k8s.io/ "
    "and the subdomains of the latter two"
)


_remembered: Final = lru_cache(maxsize=1024)
"""For grammars of short texts of which most objects have the same; a text that is refused is not remembered."""


def template_reserved_message(exceptions: tuple[str, ...]) -> str:
    """Why a label's or annotation's key is refused."""
    return (
        "has a reserved prefix; not allowed are kubernetes.io/, k8s.io/, cluster.x-k8s.io/, 5spot.finos.org/ "
        f"and their subdomains, except {', '.join(exceptions)}"
    )


def anchored(pattern: str) -> str:
    """A pattern for a whole text in RE2, which the API server uses."""
    return f"^{pattern.replace('(?:', '(')}$"


def subdomain(text: str, limit: int = PREFIX_MAX) -> str:
    """A DNS-1123 subdomain of at most `limit` characters.

    Raises:
        InvalidValue: if it is not one.
    """
    if len(text) > limit or not _SUBDOMAIN_RE.fullmatch(text):
        raise InvalidValue(f"must be 1 to {limit} characters: {_SUBDOMAIN_ALLOWED}")
    return text


def cluster_name(text: str) -> str:
    """A name that a Cluster can have and a label value can hold."""
    return subdomain(text, NAME_MAX)


def machine_name(text: str) -> str:
    """A ScheduledMachine's name: `<name>-bootstrap` must fit a label value."""
    return subdomain(text, MACHINE_NAME_MAX)


def namespace(text: str) -> str:
    """A namespace's name."""
    if len(text) > NAME_MAX or not _DNS_LABEL_RE.fullmatch(text):
        raise InvalidValue(NAMESPACE_MESSAGE)
    return text


def is_kind(given: object) -> TypeGuard[str]:
    """Whether this is a kind, allowed or not."""
    return type(given) is str and len(given) <= NAME_MAX and _KIND_RE.fullmatch(given) is not None


@_remembered
def kind(text: str) -> str:
    """A kind such as `RemoteMachine`."""
    if not is_kind(text):
        raise InvalidValue(KIND_MESSAGE)
    return text


@_remembered
def api_version(text: str) -> str:
    """A group and a version such as `infrastructure.cluster.x-k8s.io/v1beta1`."""
    if len(text) > KEY_MAX or not _API_VERSION_RE.fullmatch(text):
        raise InvalidValue(API_VERSION_MESSAGE)
    return text


def kubernetes_version(text: str) -> str:
    """A version of Kubernetes as Cluster API takes it in a Machine: a semantic version, usually after a `v`."""
    if len(text) > VERSION_MAX or not _KUBERNETES_VERSION_RE.fullmatch(text):
        raise InvalidValue(KUBERNETES_VERSION_MESSAGE)
    return text


def failure_domain(text: str) -> str:
    """The name of a failure domain, such as `eu-west-1a`."""
    if len(text) > FAILURE_DOMAIN_MAX or not _FAILURE_DOMAIN_RE.fullmatch(text):
        raise InvalidValue(FAILURE_DOMAIN_MESSAGE)
    return text


def is_country(given: object) -> TypeGuard[str]:
    """Whether this could be a country's code."""
    return isinstance(given, str) and _COUNTRY_RE.fullmatch(given) is not None


def country(text: str) -> str:
    """A country's code of two letters."""
    if not is_country(text):
        raise InvalidValue(COUNTRY_MESSAGE)
    return text


def config_map_key(text: str) -> str:
    """A key in a ConfigMap."""
    if len(text) > PREFIX_MAX or not _CONFIG_MAP_KEY_RE.fullmatch(text):
        raise InvalidValue(CONFIG_MAP_KEY_MESSAGE)
    return text


def parameter_name(text: str) -> str:
    """The name of a parameter of a class."""
    if len(text) > NAME_MAX or not _PARAMETER_NAME_RE.fullmatch(text):
        raise InvalidValue(PARAMETER_NAME_MESSAGE)
    return text


def is_api_version(given: object) -> TypeGuard[str]:
    """Whether this is a well-formed group and version."""
    return isinstance(given, str) and len(given) <= KEY_MAX and _API_VERSION_RE.fullmatch(given) is not None


def qualified_name(text: str, limit: int = KEY_MAX) -> str:
    """A key: an optional prefix and `/`, then a name."""
    prefix, slash, name = text.rpartition("/")
    if slash and (len(prefix) > PREFIX_MAX or not _SUBDOMAIN_RE.fullmatch(prefix)):
        raise InvalidValue(f"prefix must be at most {PREFIX_MAX} characters: {_SUBDOMAIN_ALLOWED}")
    if len(name) > NAME_MAX or not _NAME_PART_RE.fullmatch(name):
        raise InvalidValue(f"name part must be {_NAME_PART_ALLOWED}")
    if len(text) > limit:
        raise InvalidValue(f"must be at most {limit} characters")
    return text


def label_value(text: str) -> str:
    """A label's or taint's value; may be empty."""
    if len(text) > NAME_MAX or not _LABEL_VALUE_RE.fullmatch(text):
        raise InvalidValue(LABEL_VALUE_MESSAGE)
    return text


@_remembered
def taint_key(text: str) -> str:
    """A taint's key outside the reserved prefixes."""
    qualified_name(text, TAINT_KEY_MAX)
    if _TAINT_RESERVED_RE.match(text):
        raise InvalidValue(TAINT_RESERVED_MESSAGE)
    return text


@_remembered
def label_key(text: str) -> str:
    """A label's key outside the reserved prefixes."""
    qualified_name(text)
    return _unreserved(text, text, LABEL_EXCEPTIONS)


@_remembered
def annotation_key(text: str) -> str:
    """An annotation's key outside the reserved prefixes; Kubernetes ignores the case of its prefix."""
    lowered = text.lower() if text.isascii() else text
    qualified_name(lowered)
    return _unreserved(text, lowered, ANNOTATION_EXCEPTIONS)


def _unreserved(text: str, lowered: str, exceptions: tuple[str, ...]) -> str:
    if _TEMPLATE_RESERVED_RE.match(lowered) and not lowered.startswith(exceptions):
        raise InvalidValue(template_reserved_message(exceptions))
    return text

"""What a host is: the fields of an infrastructure spec that name one, by kind, as the operator's settings say.

Clouds and pools repeat specs by design: a kind that is not listed names no host, nor does a spec that lacks a field.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv6Address, ip_address
from typing import Any, Final, Self

from crds import names
from crds.scheduledmachine import ScheduledMachineSpec
from service.decide import manifests
from service.decide.world import World

DEFAULT_HOST_IDENTITY: Final = "RemoteMachine.infrastructure.cluster.x-k8s.io: address, port=22"
_PREFIX: Final = "v2-"
"""Earlier versions stored hashes of whole specs, without it; those say nothing about hosts and are ignored."""
_KIND: Final = re.compile(r"([A-Z][A-Za-z0-9]{0,62})\.([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?)", re.ASCII)
_FIELD: Final = re.compile(r"[A-Za-z0-9_-]{1,63}(\.[A-Za-z0-9_-]{1,63}){0,15}", re.ASCII)
_ADDRESS_MAX: Final = 64
_SHORT: Final = 512
"""Longer values are not remembered: a tenant chooses them."""
_REMEMBERED: Final = 1024
"""A pass asks several times for the host of an object; more of them than this are not handled at a time."""


@dataclass(frozen=True, slots=True)
class HostField:
    """A field that is part of a host's name, by its path in the spec, and what its provider takes it for if absent."""

    path: tuple[str, ...]
    default: str | None = None

    def read(self, spec: Any) -> str | None:
        """The value as the provider reads it; None if the spec does not name it."""
        for name in self.path:
            spec = spec.get(name) if isinstance(spec, Mapping) else None
        return canonical(spec) or self.default


@dataclass(frozen=True, slots=True)
class HostIdentities:
    """By group and kind, the fields that together name a host."""

    kinds: Mapping[tuple[str, str], tuple[HostField, ...]]

    @classmethod
    def parse(cls, text: str) -> Self:
        """From `Kind.group: field, field=default`, one kind after the other, separated by `;` or line breaks."""
        found: dict[tuple[str, str], tuple[HostField, ...]] = {}
        for entry in filter(None, (part.strip() for part in re.split(r"[;\n]", text))):
            name, _, listed = entry.partition(":")
            kind = _KIND.fullmatch(name.strip())
            if kind is None:
                raise ValueError(f"{name.strip()!r} must be Kind.group, such as RemoteMachine.example.com")
            if (kind[2], kind[1]) in found:
                raise ValueError(f"{kind[0]} is listed twice")
            found[kind[2], kind[1]] = tuple(_field(part, kind[0]) for part in listed.split(","))
        return cls(found)

    def of(self, api_version: str, kind: str, spec: Any) -> str | None:
        """A hash of the host that an infrastructure spec names, in any version of its kind; None if it names none."""
        group = api_version.partition("/")[0]
        fields = self.kinds.get((group, kind))
        if fields is None:
            return None
        values = tuple((".".join(field.path), field.read(spec)) for field in fields)
        if any(value is None for _, value in values):
            return None
        short = sum(len(value or "") for _, value in values) <= _SHORT
        return (_hash if short else _hash.__wrapped__)(group, kind, values)


@lru_cache(_REMEMBERED)
def _hash(group: str, kind: str, values: tuple[tuple[str, str | None], ...]) -> str:
    return _PREFIX + manifests.digest([group, kind, dict(values)])


def _field(text: str, kind: str) -> HostField:
    path, given, default = (part.strip() for part in text.partition("="))
    if not _FIELD.fullmatch(path):
        raise ValueError(f"{kind}: {path!r} must be a field of its spec, such as address or network.address")
    value = canonical(default)
    if given and value is None:
        raise ValueError(f"{kind}: the default of {path} is empty; leave out the = for a field without one")
    return HostField(tuple(path.split(".")), value)


def canonical(value: Any) -> str | None:
    """A value in one form of several that mean the same host; None for what names none.

    Numbers count like their digits in quotes, addresses in their shortest form, and names without regard to case or to
    a dot at the end. White space around a value is ignored.
    """
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    text = str(int(value) if isinstance(value, float) and value.is_integer() else value).strip()
    return _address(text) or text.lower().removesuffix(".") or None


def _address(text: str) -> str | None:
    bare = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    return _short_address(bare) if len(bare) <= _ADDRESS_MAX else None


@lru_cache(_REMEMBERED)
def _short_address(text: str) -> str | None:
    try:
        found = ip_address(text)
    except ValueError:
        return None
    mapped = found.ipv4_mapped if isinstance(found, IPv6Address) else None
    return str(mapped or found)


def recorded(host_hash: str | None) -> str | None:
    """A `status.hostHash`, if it is one that can be compared."""
    return host_hash if host_hash is not None and host_hash.startswith(_PREFIX) else None


def host_of(identities: HostIdentities, spec: ScheduledMachineSpec | None, world: World) -> str | None:
    """The host of our Machine: the one that its infrastructure object names, else the spec that it was made from."""
    child, machine = world.infrastructure, world.our_machine
    if child is not None and child.ours:
        return identities.of(child.api_version, child.kind, child.spec)
    if spec is None:
        return None
    if machine is not None and machine.child.annotations.get(names.ANNOTATION_SPEC_HASH) != manifests.spec_hash(spec):
        return None
    provider = spec.infrastructure_spec
    return identities.of(provider.api_version, provider.kind, provider.spec)


DEFAULT_IDENTITIES: Final = HostIdentities.parse(DEFAULT_HOST_IDENTITY)

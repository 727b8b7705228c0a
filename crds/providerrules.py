"""The rules on the two provider specs, of ScheduledMachines and of classes: which groups and kinds, and where."""

from collections.abc import Iterator
from typing import Any

from crds import syntax
from crds.providers import BOOTSTRAP, INFRASTRUCTURE, ProviderPolicy
from crds.violations import Violation, ViolationReason, shown

Raw = dict[str, Any]


def provider_violations(spec: Raw, policy: ProviderPolicy, namespace: str | None = None) -> Iterator[Violation]:
    """What is wrong with the envelopes of a spec; `namespace` is that of the object, None if it is in none."""
    for envelope in (BOOTSTRAP, INFRASTRUCTURE):
        given = spec.get(envelope)
        if type(given) is dict:
            yield from _kind(envelope, given, policy)
            if namespace is not None:
                yield from _elsewhere(envelope, given, namespace)


def _kind(envelope: str, given: Raw, policy: ProviderPolicy) -> Iterator[Violation]:
    path, version, kind = f"spec.{envelope}", given.get("apiVersion"), given.get("kind")
    group = version.partition("/")[0] if syntax.is_api_version(version) else None
    if group is not None and (refusal := policy.refuses_group(envelope, group)):
        yield Violation.of(f"{path}.apiVersion", version, refusal, ViolationReason.NOT_SUPPORTED)
    if syntax.is_kind(kind) and (refusal := policy.refuses_kind(envelope, group or "", kind)):
        yield Violation.of(f"{path}.kind", kind, refusal, ViolationReason.NOT_SUPPORTED)


def _elsewhere(envelope: str, given: Raw, namespace: str) -> Iterator[Violation]:
    elsewhere = given.get("namespace")
    if type(elsewhere) is str and elsewhere != namespace:
        message = (
            f"must be the ScheduledMachine's own namespace, {shown(namespace)}, or left out: "
            "an owner reference cannot cross namespaces"
        )
        yield Violation.of(f"spec.{envelope}.namespace", elsewhere, message, ViolationReason.FORBIDDEN)

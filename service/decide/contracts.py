"""The CAPI Machine in both contracts: how each is read, and how refs and timeouts are written.

The only module that knows in what v1beta1 and v1beta2 differ.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any, Final

from crds import names
from service.decide.reasons import Reason, read_reason
from service.decide.world import Child, Contract, Machine, Problem

Json = Mapping[str, Any]

NODE_DELETION_SECONDS: Final = 10
"""How long CAPI tries to delete the Node of a cluster that does not answer: its own default, where its webhooks run."""
_WORD: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,127}")


def reference(contract: Contract, child: Json, namespace: str) -> dict[str, str]:
    """How a Machine points at its bootstrap or infrastructure object."""
    kind, name, api_version = child["kind"], child["metadata"]["name"], child["apiVersion"]
    if contract is Contract.V1BETA2:
        return {"apiGroup": api_version.rpartition("/")[0], "kind": kind, "name": name}
    return {"apiVersion": api_version, "kind": kind, "name": name, "namespace": namespace}


def timeouts(contract: Contract, drain: timedelta, detach: timedelta) -> dict[str, Any]:
    """The part of a Machine's spec that bounds CAPI's own drain and its wait for volumes."""
    drain_seconds, detach_seconds = at_least_a_second(drain), at_least_a_second(detach)
    if contract is Contract.V1BETA2:
        return {
            "deletion": {
                "nodeDrainTimeoutSeconds": drain_seconds,
                "nodeVolumeDetachTimeoutSeconds": detach_seconds,
                "nodeDeletionTimeoutSeconds": NODE_DELETION_SECONDS,
            }
        }
    return {
        "nodeDrainTimeout": f"{drain_seconds}s",
        "nodeVolumeDetachTimeout": f"{detach_seconds}s",
        "nodeDeletionTimeout": f"{NODE_DELETION_SECONDS}s",
    }


UNDRAINED: Final = {
    names.ANNOTATION_EXCLUDE_DRAIN: names.MANAGED_BY,
    names.ANNOTATION_EXCLUDE_VOLUME_DETACH: names.MANAGED_BY,
}
"""With these CAPI does not wait for pods and volumes, whatever the value; ours marks those that we may remove."""


def drained_again(annotations: Mapping[str, str]) -> dict[str, None]:
    """The merge patch that removes these annotations again after a cancelled removal."""
    return {key: None for key, ours in UNDRAINED.items() if annotations.get(key) == ours}


def waits(annotations: Mapping[str, str], *, drained: bool) -> dict[str, str | None]:
    """The same for a Machine that is about to be deleted; if its Node is `drained`, CAPI need not do it again."""
    changes: dict[str, str | None] = {**drained_again(annotations)}
    if not drained:
        return changes
    changes.pop(names.ANNOTATION_EXCLUDE_DRAIN, None)
    if names.ANNOTATION_EXCLUDE_DRAIN not in annotations:
        changes[names.ANNOTATION_EXCLUDE_DRAIN] = names.MANAGED_BY
    return changes


def at_least_a_second(span: timedelta) -> int:
    """Whole seconds, never the 0 that CAPI takes for "no limit"."""
    return max(1, int(span.total_seconds()))


def read_machine(contract: Contract, child: Child, raw: Json) -> Machine:
    """A Machine as the API server answered it."""
    spec, status = raw.get("spec") or {}, raw.get("status") or {}
    conditions = _by_type(status.get("conditions"))
    drain, detach = _timeouts(contract, spec)
    marked = _health_check(conditions) == "False" and _is(conditions, OWNER_REMEDIATED, "False")
    return Machine(
        child=child,
        provider_id=spec.get("providerID") or None,
        node_name=(status.get("nodeRef") or {}).get("name"),
        failure=_failure(contract, status),
        infrastructure_ready=_infrastructure_ready(contract, status),
        remediation_requested=marked,
        unmarked_status=None if marked else _unmarked(contract, status),
        drain_seconds=drain,
        detach_seconds=detach,
        waiting_for=(_held_up_by(contract, status) if child.deleting else None) or _waiting_for(contract, status),
    )


def _timeouts(contract: Contract, spec: Json) -> tuple[int | None, int | None]:
    if contract is Contract.V1BETA2:
        deletion = spec.get("deletion") or {}
        return deletion.get("nodeDrainTimeoutSeconds"), deletion.get("nodeVolumeDetachTimeoutSeconds")
    return _go_seconds(spec.get("nodeDrainTimeout")), _go_seconds(spec.get("nodeVolumeDetachTimeout"))


def _go_seconds(text: str | None) -> int | None:
    """Seconds of a Go duration such as `5m0s`; None if absent or not of whole seconds."""
    if not text:
        return None
    total, digits = 0, ""
    for char in text:
        if char.isdigit():
            digits += char
        elif digits and char in "hms":
            total, digits = total + int(digits) * {"h": 3600, "m": 60, "s": 1}[char], ""
        else:
            return None
    return total if not digits else None


def _failure(contract: Contract, status: Json) -> Problem | None:
    """The terminal failure a provider reported; CAPI's own phase never says Failed."""
    if contract is Contract.V1BETA2:
        status = (status.get("deprecated") or {}).get("v1beta1") or {}
    reason, message = status.get("failureReason"), status.get("failureMessage")
    if not reason and not message:
        return None
    # A condition's reason is one word; what a provider says may be anything.
    fits = isinstance(reason, str) and _WORD.fullmatch(reason)
    word = read_reason(str(reason)) if fits else Reason.MACHINE_FAILED
    return Problem(reason=word, message=str(message or reason))


def _infrastructure_ready(contract: Contract, status: Json) -> bool:
    if contract is Contract.V1BETA2:
        return _is(_by_type(status.get("conditions")), "InfrastructureReady", "True")
    return bool(status.get("infrastructureReady"))


OWNER_REMEDIATED: Final = "OwnerRemediated"
"""False from the moment a MachineHealthCheck asks the owner for a new Machine; only the owner clears it."""


def _health_check(conditions: Mapping[str, Json]) -> str | None:
    return (conditions.get("HealthCheckSucceeded") or {}).get("status")


def _unmarked(contract: Contract, status: Json) -> dict[str, Any] | None:
    """The lists of conditions without the mark of a health check that succeeds again, as Cluster API's owners do it.

    Cluster API keeps the conditions of both contracts in either version, so a mark is in two places.
    """
    other = ("deprecated", "v1beta1") if contract is Contract.V1BETA2 else ("v1beta2",)
    body: dict[str, Any] = {}
    for path in ((), other):
        held, target = status, body
        for step in path:
            held = held.get(step) or {}
        kept = _without_mark(held.get("conditions"))
        if kept is None:
            continue
        for step in path:
            target = target.setdefault(step, {})
        target["conditions"] = kept
    return body or None


def _without_mark(conditions: Iterable[Json] | None) -> list[Json] | None:
    """The conditions to keep; None if no mark among them is stale."""
    found = _by_type(conditions)
    if _health_check(found) != "True" or not _is(found, OWNER_REMEDIATED, "False"):
        return None
    return [one for one in conditions or () if one.get("type") != OWNER_REMEDIATED]


def _waiting_for(contract: Contract, status: Json) -> str | None:
    """What CAPI itself says is still missing, in its words; those of v1beta2 say more, also where v1beta1 is served."""
    for conditions in (_newer(contract, status), _by_type(status.get("conditions"))):
        for kind in ("BootstrapConfigReady", "BootstrapReady", "InfrastructureReady", "NodeReady", "NodeHealthy"):
            condition = conditions.get(kind) or {"status": "True"}
            said = condition.get("message") or condition.get("reason")
            if condition.get("status") != "True" and said:
                return f"{kind}: {said}"
    return None


def _newer(contract: Contract, status: Json) -> dict[str, Json]:
    """The conditions of v1beta2, which Cluster API 1.9 and newer also keeps beside those of v1beta1."""
    newer = status if contract is Contract.V1BETA2 else status.get("v1beta2") or {}
    return _by_type(newer.get("conditions"))


HOLD_UP: Final = (
    "WaitingForPreDrainHook",
    "DrainingNode",
    "WaitingForVolumeDetach",
    "WaitingForPreTerminateHook",
    "InternalError",
)
"""Reasons for which a deletion may take long; the others, such as waiting for the provider, come with every one."""
STEPS: Final = (
    "PreDrainDeleteHookSucceeded",
    "DrainingSucceeded",
    "VolumeDetachSucceeded",
    "PreTerminateDeleteHookSucceeded",
)
"""The same, as conditions of Cluster API before 1.9."""


def _held_up_by(contract: Contract, status: Json) -> str | None:
    """What CAPI itself says holds up a deletion: a hook, pods, volumes."""
    deleting = _newer(contract, status).get("Deleting") or {}
    if deleting.get("reason") in HOLD_UP and deleting.get("message"):
        return str(deleting["message"])
    older = _by_type(status.get("conditions"))
    found = next((kind for kind in STEPS if _is(older, kind, "False")), None)
    return f"{found}: {older[found].get('message') or older[found].get('reason')}" if found else None


def _by_type(conditions: Iterable[Json] | None) -> dict[str, Json]:
    return {condition.get("type", ""): condition for condition in conditions or ()}


def _is(conditions: Mapping[str, Json], kind: str, status: str) -> bool:
    return (conditions.get(kind) or {}).get("status") == status

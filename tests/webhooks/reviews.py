"""AdmissionReviews for tests: a good object, and what an API server wraps around it."""

import copy
from typing import Any

import orjson

from crds import names
from webhooks.answers import Answer

UID = "705ab4f5-6393-11e8-b7cc-42010a800002"


def machine(**spec: Any) -> dict[str, Any]:
    """A valid ScheduledMachine with all defaults absent; keywords replace parts of its spec, None removes them."""
    full = {
        "schedule": {"daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-17"]},
        "bootstrapSpec": {
            "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta1",
            "kind": "K0sWorkerConfig",
            "spec": {"version": "v1.30.0+k0s.0"},
        },
        "infrastructureSpec": {
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
            "kind": "RemoteMachine",
            "spec": {"address": "192.168.1.100", "port": 22, "user": "admin"},
        },
        "clusterName": "production",
    } | spec
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.KIND,
        "metadata": {"name": "worker", "namespace": "default"},
        "spec": {key: value for key, value in full.items() if value is not None},
    }


def review(
    given: dict[str, Any] | None, *, old: dict[str, Any] | None = None, operation: str | None = None, **request: Any
) -> dict[str, Any]:
    """A review of `given`; an update if there is an old object."""
    metadata = (given or old or {}).get("metadata") or {}
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": UID,
            "kind": {"group": names.GROUP, "version": names.VERSION, "kind": names.KIND},
            "resource": {"group": names.GROUP, "version": names.VERSION, "resource": names.PLURAL},
            "name": metadata.get("name", ""),
            "namespace": metadata.get("namespace", ""),
            "operation": operation or ("UPDATE" if old else "CREATE"),
            "userInfo": {"username": "kubernetes-admin"},
            "object": given,
            "oldObject": old,
            "dryRun": False,
        }
        | request,
    }


def in_service(given: dict[str, Any]) -> dict[str, Any]:
    """What the API server has stored of a machine after ten services: status, history and the owners of all fields."""
    time = "2026-11-18T09:00:00Z"
    reference = {"apiVersion": "v1", "kind": "Kind", "name": "worker", "namespace": "default", "uid": UID}
    condition = {"status": "True", "reason": "Ready", "message": "", "lastTransitionTime": time}
    service = dict.fromkeys(("opened", "requested", "ready", "shutdown", "gone", "ended"), time)
    status = {
        **{f"{name}Ref": reference for name in ("machine", "bootstrap", "infrastructure", "node")},
        **dict.fromkeys(("phase", "message", "machinePhase", "providerID", "nextActivation", "nextCleanup"), "text"),
        "conditions": [condition | {"type": f"Type{number}"} for number in range(12)],
        "history": [service] * 10,
    }
    managed = [
        {"manager": manager, "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": _fields(part), "time": time}
        for manager, part in (("kubectl", given), ("5spot", {"status": status}))
    ]
    applied = {"kubectl.kubernetes.io/last-applied-configuration": orjson.dumps(given).decode()}
    return changed(given, annotations=applied, managedFields=managed) | {"status": status}


def _fields(part: Any) -> dict[str, Any]:
    """As the API server writes down who owns what: keyed lists by their keys, other lists as a whole."""
    if isinstance(part, list) and part and isinstance(part[0], dict) and "type" in part[0]:
        part = {f'k:{{"type":"{each["type"]}"}}': each for each in part}
    return {f"f:{name}": _fields(value) for name, value in part.items()} | {".": {}} if isinstance(part, dict) else {}


def changed(given: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    """A copy with other metadata."""
    result = copy.deepcopy(given)
    result["metadata"] |= metadata
    return result


def at_once(judged: Any) -> Answer:
    """The answer of a gate that needs to ask nobody."""
    assert isinstance(judged, Answer)
    return judged

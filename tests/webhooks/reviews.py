"""AdmissionReviews for tests: a good object, and what an API server wraps around it."""

import copy
from typing import Any

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


def changed(given: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    """A copy with other metadata."""
    result = copy.deepcopy(given)
    result["metadata"] |= metadata
    return result


def at_once(judged: Any) -> Answer:
    """The answer of a gate that needs to ask nobody."""
    assert isinstance(judged, Answer)
    return judged

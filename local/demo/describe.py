"""Objects of both clusters as the few words that the demo shows and checks."""

from typing import Any

from crds.names import KIND
from local.demo.observations import Facts

Raw = dict[str, Any]
KUBERNETES_OWN = "node.kubernetes.io/"


def machine(raw: Raw) -> Facts:
    """A ScheduledMachine; before the operator has seen it, it is `New`."""
    status = raw.get("status") or {}
    override = status.get("override") or {}
    open_now = status.get("inSchedule") or override.get("state") == "Open"
    boundary, instant = ("closes", "nextCleanup") if open_now else ("opens", "nextActivation")
    return {
        "phase": status.get("phase", "New"),
        "machine": status.get("machinePhase", ""),
        "ready": _condition(status, "Ready"),
        "node": (status.get("nodeRef") or {}).get("name", ""),
        "message": status.get("message", ""),
        "override": override.get("name", ""),
        boundary: status.get(instant, ""),
    }


def node(raw: Raw) -> Facts:
    """A Node with the taints that users chose; Kubernetes' own only repeat its state."""
    spec = raw.get("spec") or {}
    chosen = [taint for taint in spec.get("taints") or () if not taint["key"].startswith(KUBERNETES_OWN)]
    return {
        "state": "Ready" if _condition(raw.get("status") or {}, "Ready") == "True" else "joining",
        "cordoned": "yes" if spec.get("unschedulable") else "",
        "taints": ", ".join(sorted(f"{taint['key']}={taint.get('value', '')}:{taint['effect']}" for taint in chosen)),
    }


def pod(raw: Raw) -> Facts:
    """A pod and the Node that it runs on."""
    leaving = raw["metadata"].get("deletionTimestamp")
    state = "leaving" if leaving else str(raw.get("status", {}).get("phase", "Pending")).lower()
    return {"state": state, "node": raw["spec"].get("nodeName", "")}


def event(raw: Raw) -> Facts:
    """An Event about a ScheduledMachine; nothing for those about other things."""
    about = raw.get("regarding") or {}
    if about.get("kind") != KIND:
        return {}
    return {
        "about": about.get("name", ""),
        "reason": raw.get("reason", ""),
        "note": raw.get("note", ""),
        "type": raw.get("type", "Normal"),
    }


def _condition(status: Raw, kind: str) -> str:
    return next((str(each["status"]) for each in status.get("conditions") or () if each["type"] == kind), "")

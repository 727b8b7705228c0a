"""What the tests submit: a ScheduledMachine for office hours, and pods that will not go before they are let."""

from datetime import UTC, datetime, timedelta
from typing import Any

from crds import names

Raw = dict[str, Any]

FRIDAY = datetime(2026, 3, 6, tzinfo=UTC)
EIGHT, NINE, SIX = (FRIDAY + timedelta(hours=hour) for hour in (8, 9, 18))
MONDAY_NINE = NINE + timedelta(days=3)
MINUTE = timedelta(minutes=1)
HOLD = "tests.example/hold"
"""A finalizer of another controller."""


def machine(name: str = "worker", *, infrastructure: Raw | None = None, **spec: Any) -> Raw:
    """Office hours; `infrastructure` is the provider's part, `spec` anything else that differs."""
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.KIND,
        "metadata": {"name": name},
        "spec": {
            "schedule": {"daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-17"]},
            "clusterName": "demo",
            "bootstrapSpec": {
                "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta1",
                "kind": "K0sWorkerConfig",
                "spec": {"version": "v1.30.0+k0s.0"},
            },
            "infrastructureSpec": {
                "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
                "kind": "RemoteMachine",
                "spec": {"port": 22, "user": "admin", **(infrastructure or {})},
            },
            **spec,
        },
    }


def reluctant_pod(name: str, node: str) -> Raw:
    """A pod that stays terminating after its eviction, until its finalizer is taken off."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "finalizers": [HOLD]},
        "spec": {"nodeName": node, "containers": [{"name": "main", "image": "pause"}]},
    }


def moment(text: str) -> datetime:
    """A time stamp of a status."""
    return datetime.fromisoformat(text)


def is_soon_after(text: str, at: datetime) -> bool:
    """Whether a time stamp is from when the clock stood there; a slow machine takes a while to look at it."""
    return at <= moment(text) < at + MINUTE


def condition(status: Raw, kind: str) -> Raw:
    """A condition of a status; empty if it does not say."""
    return next((one for one in status.get("conditions") or () if one["type"] == kind), {})


def says(status: Raw, kind: str, value: str, reason: str | None = None) -> bool:
    """Whether a condition has that status, and that reason if one is given."""
    found = condition(status, kind)
    return found.get("status") == value and reason in (None, found.get("reason"))

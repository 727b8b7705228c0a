"""Objects in the demo's words."""

import pytest

from local.demo import describe
from local.demo.observations import Facts

READY = {"conditions": [{"type": "Ready", "status": "True"}]}


@pytest.mark.parametrize(
    ("status", "facts"),
    [
        ({}, {"phase": "New", "machine": "", "ready": "", "opens": ""}),
        (
            {"phase": "Inactive", "inSchedule": False, "nextActivation": "2026-03-06T09:00:00Z"},
            {"phase": "Inactive", "opens": "2026-03-06T09:00:00Z"},
        ),
        (
            {**READY, "phase": "Active", "machinePhase": "Running", "inSchedule": True, "nextCleanup": "later"},
            {"machine": "Running", "ready": "True", "closes": "later"},
        ),
        ({"nodeRef": {"name": "host"}, "message": "All is well."}, {"node": "host", "message": "All is well."}),
    ],
)
def test_a_scheduled_machine_is_shown_by_its_status(status: dict[str, object], facts: Facts) -> None:
    assert describe.machine({"status": status}).items() >= facts.items()


def test_a_nodes_own_taints_are_left_to_its_state() -> None:
    taints = [
        {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"},
        {"key": "workload", "value": "batch", "effect": "NoSchedule"},
    ]
    node = {"spec": {"unschedulable": True, "taints": taints}, "status": READY}
    assert describe.node(node) == {"state": "Ready", "cordoned": "yes", "taints": "workload=batch:NoSchedule"}


def test_a_node_that_has_said_nothing_is_joining() -> None:
    assert describe.node({"spec": {}})["state"] == "joining"


def test_a_pod_that_is_being_deleted_is_leaving() -> None:
    pod = {"metadata": {}, "spec": {"nodeName": "host"}, "status": {"phase": "Running"}}
    assert describe.pod(pod) == {"state": "running", "node": "host"}
    assert describe.pod({**pod, "metadata": {"deletionTimestamp": "now"}})["state"] == "leaving"


def test_events_about_other_things_are_nothing() -> None:
    event = {"regarding": {"kind": "Machine", "name": "x"}, "reason": "Created"}
    assert describe.event(event) == {}
    shown = describe.event({**event, "regarding": {"kind": "ScheduledMachine", "name": "x"}, "note": "Done."})
    assert shown == {"about": "x", "reason": "Created", "note": "Done.", "type": "Normal"}

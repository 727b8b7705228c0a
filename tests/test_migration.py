"""Objects as the operator written in Rust stores them, met by our rules. docs/migration.md is the page for users."""

from typing import Any

import pytest

from crds.providers import DEFAULT_POLICY
from crds.rules import check
from crds.status import Phase, ScheduledMachineStatus
from service.decide import plan as actions
from service.decide.intent import read_intent
from service.decide.lifecycle import decide
from tests.service.decide.builders import EVENING, MORNING, raw_spec, running_world, stored, world

# All defaults written out by its CRD, as an API server stores them.
STORED: dict[str, Any] = {
    "gracefulShutdownTimeout": "5m",
    "killSwitch": False,
    "nodeDrainTimeout": "5m",
    "priority": 50,
    "schedule": {"daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-17"], "timezone": "UTC", "enabled": True},
}


def object_with(**spec: Any) -> dict[str, Any]:
    return stored(raw_spec(**{**STORED, **spec}))


def test_an_ordinary_object_is_allowed_and_served():
    kept = object_with(machineTemplate={"labels": {"team": "blue"}, "annotations": {}}, nodeTaints=[])
    assert check(kept).allowed
    plan = decide(read_intent(kept, DEFAULT_POLICY), world(), MORNING)
    assert [action.role for action in plan.actions if isinstance(action, actions.Create)] != []


DIFFERENT = {
    "a label below kubernetes.io": {"machineTemplate": {"labels": {"node-role.kubernetes.io/worker": ""}}},
    "a cluster name with capitals": {"clusterName": "Prod_Cluster"},
    "a timeout of nothing": {"nodeDrainTimeout": "0s"},
    "a kind that is not a machine's own": {
        "infrastructureSpec": {
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
            "kind": "RemoteMachineTemplate",
            "spec": {},
        }
    },
}


@pytest.mark.parametrize("spec", DIFFERENT.values(), ids=DIFFERENT)
def test_what_only_the_original_allows_creates_nothing_and_is_still_removed_on_schedule(spec):
    kept = object_with(**spec)
    assert not check(kept).allowed
    intent = read_intent(kept, DEFAULT_POLICY)
    waiting = decide(intent, world(), MORNING)
    assert (waiting.phase, waiting.reason, waiting.actions) == (Phase.ERROR, "InvalidSpec", ())
    assert decide(intent, running_world(), EVENING).phase is Phase.SHUTTING_DOWN


@pytest.mark.parametrize("spec", DIFFERENT.values(), ids=DIFFERENT)
def test_it_can_still_be_edited_elsewhere_and_deleted(spec):
    kept = object_with(**spec)
    labelled = {**kept, "metadata": {**kept["metadata"], "labels": {"team": "blue"}}}
    assert check(labelled, old=kept).allowed


def test_an_empty_list_of_days_means_every_day_here_and_never_there():
    kept = object_with(schedule={**STORED["schedule"], "daysOfWeek": []})
    assert check(kept).allowed
    assert read_intent(kept, DEFAULT_POLICY).covers(MORNING)


def test_a_schedule_without_days_and_hours_is_not_one():
    kept = object_with(schedule={**STORED["schedule"], "daysOfWeek": [], "hoursOfDay": []})
    assert not check(kept).allowed


@pytest.mark.parametrize("phase", ["Pending", "Active", "ShuttingDown", "Inactive", "Disabled", "Terminated", "Error"])
def test_its_status_can_be_read_and_steers_nothing(phase: str):
    stamp = "2026-03-05T18:00:03.123456789+00:00"
    ready = {"type": "Ready", "status": "True", "reason": "X", "message": "", "lastTransitionTime": stamp}
    raw = {"phase": phase, "message": "…", "conditions": [ready], "inSchedule": True, "lastScheduledTime": stamp}
    status = ScheduledMachineStatus.read(raw)
    assert status.phase == phase
    assert status.conditions[0].type == "Ready"
    plan = decide(read_intent(object_with(), DEFAULT_POLICY), world(status=status), EVENING)
    assert plan.phase is Phase.INACTIVE

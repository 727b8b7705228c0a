from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from crds.status import AppliedTaint, Condition, Effect, MachinePhase, Phase, Reclaim, ScheduledMachineStatus

NOON = datetime(2026, 3, 8, 12, tzinfo=UTC)
SEED: dict[str, Any] = {
    "phase": "Active",
    "inSchedule": True,
    "message": "Machine is healthy and running",
    "machineRef": {
        "apiVersion": "cluster.x-k8s.io/v1beta1",
        "kind": "Machine",
        "name": "business-hours-worker-machine",
        "namespace": "default",
    },
    "nodeRef": {"apiVersion": "v1", "kind": "Node", "name": "worker-node-01"},
    "conditions": [
        {
            "type": "Ready",
            "status": "True",
            "reason": "MachineRunning",
            "message": "Machine is healthy and running",
            "lastTransitionTime": "2025-01-15T09:00:00Z",
        }
    ],
    "providerID": "remote://1",
    "reclaim": {"requestedAt": "2026-03-08T12:00:00Z", "reason": "steam", "node": "n", "machineUID": "u"},
}


def condition(**changes):
    usual: dict[str, Any] = {"type": "Ready", "status": "True", "reason": "R", "last_transition_time": NOON}
    return Condition(**(usual | changes))


def test_a_status_is_read_and_written_back_the_same():
    assert ScheduledMachineStatus.read(SEED).to_json() == SEED


def test_a_status_in_our_own_words_is_written_in_camel_case():
    status = ScheduledMachineStatus(
        phase=Phase.SHUTTING_DOWN,
        machine_phase=MachinePhase.RUNNING,
        conditions=(condition(observed_generation=3),),
        applied_node_taints=(AppliedTaint(key="a", effect=Effect.NO_SCHEDULE),),
        shutdown_started_at=NOON,
        reclaim=Reclaim(requested_at=NOON, reason="steam", node="n", machine_uid="u"),
    )
    written = status.to_json()
    assert written["shutdownStartedAt"] == "2026-03-08T12:00:00Z"
    assert written["conditions"][0]["observedGeneration"] == 3
    assert written["appliedNodeTaints"] == [{"key": "a", "effect": "NoSchedule"}]
    assert written["reclaim"]["machineUID"] == "u"
    assert ScheduledMachineStatus.read(written) == status


def test_an_empty_status_writes_nothing():
    assert ScheduledMachineStatus().to_json() == {}


def test_times_are_whole_seconds_in_utc_so_that_a_status_equals_itself_read_back():
    moment = datetime(2026, 3, 8, 14, 0, 0, 987654, tzinfo=timezone(timedelta(hours=2)))
    status = ScheduledMachineStatus(next_activation=moment)
    assert status.next_activation == NOON
    assert ScheduledMachineStatus.read(status.to_json()) == status


def test_a_time_without_zone_is_refused():
    with pytest.raises(ValidationError, match="time zone"):
        ScheduledMachineStatus(next_activation=datetime(2026, 3, 8))  # noqa: DTZ001


def test_what_makes_no_sense_is_left_out_and_the_rest_kept():
    stored = SEED | {
        "phase": "Scheduled",
        "nextCleanup": "soon",
        "nodeRef": {"name": 5},
        "conditions": [*SEED["conditions"], {"type": "Broken"}],
        "somethingNew": 1,
    }
    status = ScheduledMachineStatus.read(stored)
    assert status.phase is None
    assert status.next_cleanup is None
    assert status.node_ref is None
    assert [each.type for each in status.conditions] == ["Ready"]
    assert status.provider_id == "remote://1"


@settings(max_examples=100, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from([*SEED, "nextCleanup"]), st.none() | st.integers() | st.text() | st.lists(st.text())
    )
)
def test_no_stored_status_stops_the_controller(stored):
    ScheduledMachineStatus.read(stored)
    ScheduledMachineStatus.read(SEED | stored)


@pytest.mark.parametrize("stored", [None, [], "x", 1])
def test_a_status_that_is_no_object_is_empty(stored):
    assert ScheduledMachineStatus.read(stored) == ScheduledMachineStatus()


def test_long_messages_of_others_are_cut_rather_than_refused():
    status = ScheduledMachineStatus(message="x" * 100_000)
    assert status.message is not None
    assert len(status.message) == 32768

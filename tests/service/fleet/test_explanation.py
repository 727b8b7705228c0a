"""Why a machine is, or is not, in its cluster."""

from dataclasses import replace
from typing import Any

from crds.status import ScheduledMachineStatus
from service.clock import SystemClock
from service.decide.world import World
from service.fleet.explanation import Explanation, explain
from service.fleet.snapshot import Snapshot
from service.fleet.summary import Summary
from service.objects.subject import Subject
from service.runtime.key import Key
from tests.service.decide import builders
from tests.service.decide.builders import EVENING, MORNING

CONDITION = {"type": "Ready", "status": "False", "message": "", "lastTransitionTime": "2026-03-06T09:02:00Z"}


def snapshot(seen: World, **changes: Any) -> tuple[Snapshot, Summary]:
    raw = builders.stored(builders.raw_spec(**changes))
    raw["status"] = seen.status.to_json()
    key = Key(seen.me.namespace, seen.me.name)
    subject = Subject.read(key, raw, builders.intent(**changes), SystemClock())
    return Snapshot(replace_status(subject, seen.status), seen), Summary.read(raw)


def replace_status(subject: Subject, status: ScheduledMachineStatus) -> Subject:
    return replace(subject, status=status)


def reported(phase: str, reason: str) -> ScheduledMachineStatus:
    return ScheduledMachineStatus.read({"phase": phase, "conditions": [{**CONDITION, "reason": reason}]})


def fact(explanation: Explanation, name: str) -> str:
    return next(each.text for each in explanation.facts if each.name == name)


def test_outside_its_windows_a_machine_waits_for_the_next_one() -> None:
    taken, summary = snapshot(builders.world(status=reported("Inactive", "OutsideSchedule")))
    found = explain(taken, summary, EVENING)
    assert "is not in the cluster" in found.headline
    assert found.rule == "no window is open, with overrides and leads"
    assert found.does == "if the machine exists: cordon, evict, delete; else wait for the next window"
    assert any("a window is open" in each for each in found.passed)
    assert found.meaning == "No window is open."
    assert found.differs == ""


def test_the_kill_switch_outranks_the_schedule() -> None:
    taken, summary = snapshot(builders.world(status=reported("Terminated", "KillSwitch")), killSwitch=True)
    found = explain(taken, summary, MORNING)
    assert found.rule.startswith("`spec.killSwitch` is true")
    assert fact(found, "kill switch") == "on"
    assert "Set `spec.killSwitch` to false to return the machine to its schedule." in found.changes


def test_without_every_input_no_rule_is_claimed() -> None:
    taken, summary = snapshot(builders.world(status=reported("Inactive", "OutsideSchedule")))
    taken.unread.append("Cluster lab: forbidden")
    found = explain(taken, summary, EVENING)
    assert (found.rule, found.does, found.passed) == ("", "", ())
    assert found.unread == ("Cluster lab: forbidden",)
    assert found.meaning == "No window is open."


def test_a_decision_that_differs_from_the_report_is_named() -> None:
    taken, summary = snapshot(builders.world(status=reported("Inactive", "OutsideSchedule")))
    found = explain(taken, summary, MORNING)
    assert "reported Inactive" in found.differs
    assert "Active" in found.differs

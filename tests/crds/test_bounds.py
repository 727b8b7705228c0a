from typing import Any

import pytest

from crds.bounds import DEPTH_MAX, fitted
from crds.rules import check
from tests.crds.machines import machine, nested


@pytest.mark.parametrize("part", ["bootstrapSpec", "infrastructureSpec"])
def test_a_provider_spec_deeper_than_any_reader_takes_is_refused_at_its_path(part: str) -> None:
    raw = machine()
    raw["spec"][part]["spec"] = nested(DEPTH_MAX + 1)
    assert [violation.field for violation in check(raw).violations] == [f"spec.{part}.spec"]


def test_a_provider_spec_as_deep_as_allowed_passes() -> None:
    raw = machine()
    raw["spec"]["infrastructureSpec"]["spec"] = nested(DEPTH_MAX)
    assert check(raw).allowed


def test_an_object_of_ordinary_size_is_not_copied() -> None:
    raw = machine(nodeTaints=[{"key": "a", "effect": "NoSchedule"}])
    raw["spec"]["schedule"] = {"windows": [{"days": ["mon"], "from": "09:00", "to": "17:30"}]}
    kept, found = fitted(raw)
    assert kept is raw
    assert not found


def test_what_is_too_large_is_named_and_everything_else_is_still_judged() -> None:
    raw = machine(killIfCommands=["a"] * 101, priority="50", clusterName="A", nodeTaints=[1] * 65)
    found = [violation.field for violation in check(raw).violations]
    assert found[:2] == ["spec.killIfCommands", "spec.nodeTaints"]
    assert {"spec.priority", "spec.clusterName", "spec.nodeTaints[0]", "spec.nodeTaints[63]"} <= set(found)


def test_a_long_list_within_a_list_is_named_too() -> None:
    raw = machine(schedule={"windows": [{"days": ["mon"] * 51, "from": "09:00", "to": "17:30"}]})
    assert [violation.field for violation in check(raw).violations] == ["spec.schedule.windows[0].days"]


def test_the_object_itself_is_not_touched_when_a_copy_is_cut() -> None:
    raw = machine(killIfCommands=["a"] * 101)
    check(raw)
    assert len(raw["spec"]["killIfCommands"]) == 101


def test_an_object_with_too_many_fields_is_judged_by_those_it_is_known_to_have() -> None:
    more: dict[str, Any] = {f"more{number}": 1 for number in range(101)}
    raw = machine(**more, priority=300)
    assert [violation.field for violation in check(raw).violations] == ["spec", "spec.priority"]

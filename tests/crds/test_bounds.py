from typing import Any

import pytest

from crds.bounds import DEPTH_MAX
from crds.rules import check
from tests.crds.machines import machine


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = {"more": value}
    return value


@pytest.mark.parametrize("part", ["bootstrapSpec", "infrastructureSpec"])
def test_a_provider_spec_deeper_than_any_reader_takes_is_refused_at_its_path(part: str) -> None:
    raw = machine()
    raw["spec"][part]["spec"] = nested(DEPTH_MAX + 1)
    assert [violation.field for violation in check(raw).violations] == [f"spec.{part}.spec"]


def test_a_provider_spec_as_deep_as_allowed_passes() -> None:
    raw = machine()
    raw["spec"]["infrastructureSpec"]["spec"] = nested(DEPTH_MAX)
    assert check(raw).allowed

import pytest

from crds.changes import same
from tests.crds.machines import nested


@pytest.mark.parametrize("value", [None, 1, "a", [], {}, {"a": [1, {"b": None}]}])
def test_a_value_is_the_same_as_itself(value):
    assert same(value, value)


@pytest.mark.parametrize(
    ("one", "other"),
    [(1, True), (1, 1.0), (0, None), ([1], [True]), ([1], [1, 2]), ({"a": 1}, {"b": 1}), ({"a": [1]}, {"a": [2]})],
)
def test_values_that_differ_in_json_are_not_the_same(one, other):
    assert not same(one, other)


def test_values_deeper_than_python_can_compare_are_compared():
    assert same(nested(50_000), nested(50_000))
    assert not same(nested(50_000), nested(50_001))

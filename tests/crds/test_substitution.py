"""Parameters go into a class as values: whatever they hold, they change nothing but their own place."""

import json

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crds.substitution import SIZE_MAX, OversizedSpecError, mentions, substituted

HOSTILE = [
    "",
    "'; rm -rf / #",
    '"}, "evil": {"a": "b',
    "a\nuser: root\n",
    "$(params.other)",
    "$$(params.other)",
    "$(rm -rf /)",
    "`id`",
    "${HOME} && x || y > /dev/null",
    "- a\n- b",
    "{{ .Values.x }}",
    "*anchor",
    "!!python/object:os.system",
    "\u202eevil\u202c",
    "\u0000\u001b[31m",
    "ﾓ\u0301\U0001f4a9",
    "null",
    "x" * 60_000,
]
texts = st.one_of(st.sampled_from(HOSTILE), st.text(max_size=50))
scalars = st.one_of(
    texts, st.integers(-(2**53), 2**53), st.floats(allow_nan=False, allow_infinity=False), st.booleans()
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
)
plain = st.text(alphabet=st.characters(exclude_characters="$", exclude_categories=["Cs"]), max_size=20)


@given(values)
def test_a_reference_alone_becomes_the_very_value(value):
    filled = substituted({"a": [{"port": "$(params.x)"}], "b": 1}, {"x": value})
    assert filled == {"a": [{"port": value}], "b": 1}
    assert orjson.dumps(filled["a"][0]["port"]) == orjson.dumps(value)


@given(plain, texts, plain)
def test_within_a_longer_text_a_text_is_put_as_it_is(before, value, after):
    filled = substituted({"a": f"{before}.$(params.x).{after}"}, {"x": value})
    assert filled == {"a": f"{before}.{value}.{after}"}


@given(st.lists(st.tuples(plain, texts), min_size=1, max_size=5))
def test_values_are_not_looked_at_again(parts):
    template = "".join(f"{text}$(params.p{index})" for index, (text, _) in enumerate(parts)) + "."
    known = {f"p{index}": value for index, (_, value) in enumerate(parts)} | {"other": "WRONG"}
    assert substituted(template, known) == "".join(text + value for text, value in parts) + "."


@given(values)
def test_a_value_changes_nothing_but_its_own_place(value):
    template = {"own": "$(params.x)", "$(params.x)": "key", "rest": {"list": ["a", 1, None, True, "$$(params.x)"]}}
    filled = substituted(template, {"x": value})
    assert {key: each for key, each in filled.items() if key != "own"} == {
        "$(params.x)": "key",
        "rest": {"list": ["a", 1, None, True, "$(params.x)"]},
    }
    assert template["own"] == "$(params.x)"


@given(st.text(alphabet="$(params.x)y ", max_size=30))
def test_whatever_the_text_of_a_class_is_it_is_a_reference_a_mistake_or_left_alone(text):
    found = mentions(text, "")
    if not found.references and not found.mistakes:
        assert substituted(text, {}) == text.replace("$$(", "$(")


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("$(params.port)", 22),
        ("p$(params.port)", "p22"),
        ("$(params.port)$(params.port)", "2222"),
        ("$$(params.port)", "$(params.port)"),
        ("$$$(params.port)", "$$(params.port)"),
        ("$$(hostname)", "$(hostname)"),
        ("$(hostname) $HOME $$ $", "$(hostname) $HOME $$ $"),
        ("x $(params.on) $(params.ratio)", "x true 0.5"),
        ("$(params.on)", True),
    ],
)
def test_numbers_and_truth_keep_their_type_alone_and_are_json_within_a_text(text, filled):
    assert substituted(text, {"port": 22, "on": True, "ratio": 0.5}) == filled


def test_a_long_value_repeated_many_times_makes_no_huge_object():
    template = {str(number): "$(params.x)" for number in range(1000)}
    with pytest.raises(OversizedSpecError):
        substituted(template, {"x": "x" * 60_000})
    with pytest.raises(OversizedSpecError):
        substituted("-" + "$(params.x)" * 1000, {"x": "x" * 60_000})
    assert len(json.dumps(substituted(template, {"x": "y" * (SIZE_MAX // 1000)}))) < 2 * SIZE_MAX

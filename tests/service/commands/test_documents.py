import json
from contextlib import suppress

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.commands.documents import DEPTH_MAX, NODES_MAX, SIZE_MAX, UnreadableFile, read

YAMLISH = "ab:-[]{},&*!|>'\"%@#?<~0.1 \n\t\x00\u2028"


def contents(tmp_path, text):
    path = tmp_path / "file.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return [document.content for document in read(str(path))]


def problem(tmp_path, text):
    with pytest.raises(UnreadableFile) as caught:
        contents(tmp_path, text)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("9", 9),
        ("-9", -9),
        ("09", 9.0),
        ("010", 8),
        ("0o10", 8),
        ("0x1F", 31),
        ("0x1a", 26),
        ("0x1b", 27),
        ("0X1B", 27),
        ("0x_1b", 27),
        ("0_", 0),
        ("0b11", 3),
        ("-0x1F", -31),
        ("1_000", 1000),
        ("1.5", 1.5),
        ("1e3", 1000.0),
        ("1e999", "1e999"),
        ("9-17", "9-17"),
        ("12:30", "12:30"),
        ("2026-01-01", "2026-01-01"),
        ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"),
        ("yes", True),
        ("off", False),
        ("y", True),
        ("~", None),
        ("'yes'", "yes"),
        ("!!str 9", "9"),
        (".nan", ".nan"),
        ("0x", "0x"),
        ("0x_", "0x_"),
        ("0b", "0b"),
        ("0o", "0o"),
        ("_010", "_010"),
    ],
)
def test_scalars_mean_what_they_mean_to_kubectl(tmp_path, text, value):
    (content,) = contents(tmp_path, f"a: {text}")
    assert content == {"a": value}
    assert type(content["a"]) is type(value)


def test_documents_are_separate_and_empty_ones_left_out(tmp_path):
    assert contents(tmp_path, "---\na: 1\n---\n---\n# nothing\n---\nb: 2\n...\n") == [{"a": 1}, {"b": 2}]


def test_a_document_knows_its_line(tmp_path):
    path = tmp_path / "file.yaml"
    path.write_text("a: 1\n---\n\nb: 2\n", encoding="utf-8")
    assert [document.line for document in read(str(path))] == [1, 4]


def test_plain_yaml_reads_as_pyyaml_reads_it(tmp_path):
    text = "a: [1, {b: text}]\nc: |\n  lines\n  of text\nd: >-\n  folded\n  text\n? e\n: {}\n"
    assert contents(tmp_path, text) == [yaml.safe_load(text)]


def test_anchors_and_merge_keys_work(tmp_path):
    assert contents(tmp_path, "a: &x {p: 1, q: 2}\nb: {<<: *x, q: 3}\nc: *x") == [
        {"a": {"p": 1, "q": 2}, "b": {"p": 1, "q": 3}, "c": {"p": 1, "q": 2}}
    ]


def test_an_alias_bomb_is_refused(tmp_path):
    bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12)
    )
    assert "aliases" in problem(tmp_path, bomb)


def test_a_value_that_contains_itself_is_refused(tmp_path):
    assert "not defined" in problem(tmp_path, "a: &a [*a]")


STAIRS = "".join(" " * n + "-\n" for n in range(300))


@pytest.mark.parametrize("nest", ["[" * 5000, "{a: " * 5000, "- " * 5000, STAIRS])
def test_deep_nesting_is_refused(tmp_path, nest):
    assert problem(tmp_path, nest)


def test_what_is_nested_too_deeply_is_named_by_its_path_and_the_limit(tmp_path):
    found = problem(tmp_path, "spec:\n  bootstrapSpec:\n    spec: " + "[{a: " * 250 + "1" + "}]" * 250)
    assert ":3: spec.bootstrapSpec.spec[0].a…: must not be nested deeper than 100 levels" in found


def test_nesting_within_the_limit_is_read(tmp_path):
    assert contents(tmp_path, "[" * (DEPTH_MAX - 1) + "]" * (DEPTH_MAX - 1))


def test_repeated_keys_are_named_with_their_line(tmp_path):
    assert problem(tmp_path, "a: 1\nb: 2\na: 3\n").endswith("file.yaml:3: repeats the key 'a'; write it once")


def test_what_is_written_out_may_be_long_in_yaml_as_in_json(tmp_path):
    (content,) = contents(tmp_path, "- 1\n" * (NODES_MAX + 1))
    assert len(content) == NODES_MAX + 1


def test_values_that_aliases_repeat_are_counted(tmp_path):
    repeated = "a: &a [" + "1," * 999 + "]\nb: ["
    assert contents(tmp_path, repeated + "*a," * (NODES_MAX // 1000) + "]")
    assert str(NODES_MAX) in problem(tmp_path, repeated + "*a," * (NODES_MAX // 1000 + 1) + "]")


def test_aliases_nest_no_deeper_than_what_is_written_out(tmp_path):
    half = DEPTH_MAX // 2
    deep = "a: &a " + "[" * half + "]" * half + "\nb: "
    assert contents(tmp_path, deep + "[" * (half - 1) + "*a" + "]" * (half - 1))
    assert "nested deeper" in problem(tmp_path, deep + "[" * half + "*a" + "]" * half)


def test_a_huge_file_is_refused(tmp_path):
    assert "MiB" in problem(tmp_path, b"#" * (SIZE_MAX + 1))


def test_text_that_is_not_utf8_is_refused_with_its_line(tmp_path):
    assert "file.yaml:2: is not UTF-8" in problem(tmp_path, b"a: 1\nb: \xff\n")


@settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.text(alphabet=YAMLISH, max_size=60) | st.text(max_size=40) | st.binary(max_size=40))
def test_any_file_is_read_or_refused(tmp_path, text):
    with suppress(UnreadableFile):
        json.dumps(contents(tmp_path, text), allow_nan=False)


def test_json_is_read_as_json(tmp_path):
    assert contents(tmp_path, '{\n\t"a": "\\ud83d\\ude00 \\/",\n\t"b": 1e2}') == [
        {"a": "\N{GRINNING FACE} /", "b": 100.0}
    ]


def test_json_objects_may_follow_one_another(tmp_path):
    path = tmp_path / "stream.json"
    path.write_text('{"a": 1}{"b":\n2}\n\n{"c": 3}\n', encoding="utf-8")
    assert [(each.line, each.content) for each in read(str(path))] == [(1, {"a": 1}), (1, {"b": 2}), (4, {"c": 3})]


def test_json_between_document_markers_is_yaml(tmp_path):
    assert contents(tmp_path, '{"a": 1}\n---\n{"b": 2}\n') == [{"a": 1}, {"b": 2}]


@pytest.mark.parametrize(
    ("text", "hint"), [('{"a": 1, "a": 2}', "repeats"), ('{"a": ' * 5000, "nested"), ('{"a": NaN', "file.yaml:2")]
)
def test_json_has_the_same_limits(tmp_path, text, hint):
    assert hint in problem(tmp_path, text)


def test_a_byte_order_mark_is_accepted(tmp_path):
    assert contents(tmp_path, b"\xef\xbb\xbfa: 1") == [{"a": 1}]


@pytest.mark.parametrize("text", ["a: [1", "a: b: c", "\tx", "%", "a: !!python/object:os.system x\n- b", "? [a]\n: b"])
def test_errors_name_file_and_line(tmp_path, text):
    assert "file.yaml:" in problem(tmp_path, text)

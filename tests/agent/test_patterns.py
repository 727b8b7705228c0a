import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.patterns import MAX_REASON_LENGTH, Hit, Patterns, read_config, reason
from crds.names import RECLAIM_CONFIG_KEY


def patterns(*entries: str) -> Patterns:
    return Patterns(entries)


@pytest.mark.parametrize(
    ("entry", "comm", "cmdline", "by"),
    [
        ("idea", b"idea", b"", "name"),
        ("idea", b"idea64", b"", None),
        ("IDEA", b"idea", b"/opt/idea", None),
        ("idea", b"java", b"java -cp /opt/idea/lib Main", "command line"),
        ("cp /opt", b"java", b"java -cp /opt/idea", "command line"),
        ("jetbrains-toolbox", b"jetbrains-toolb", b"/opt/jetbrains-toolbox --minimize", "command line"),
        ("jetbrains-toolbox", b"jetbrains-toolb", b"", None),
        ("é", "é".encode(), b"", "name"),
        ("x\ty", b"a", b"\xff\xfex\ty\x80", "command line"),
        ("idea", b"", b"", None),
    ],
)
def test_the_name_must_be_equal_and_the_command_line_contain_it(
    entry: str, comm: bytes, cmdline: bytes, by: str | None
):
    hit = patterns(entry).match(comm, cmdline)
    assert hit == (None if by is None else Hit(entry, by))


def test_the_first_pattern_of_the_list_is_the_one_named():
    assert patterns("no", "java", "Main").match(b"java", b"java Main") == Hit("java", "name")


@given(st.binary(max_size=16), st.binary(max_size=300))
def test_no_patterns_match_nothing(comm: bytes, cmdline: bytes):
    assert patterns().match(comm, cmdline) is None


@pytest.mark.parametrize("data", [None, {}, {"other": "x"}, {RECLAIM_CONFIG_KEY: ""}, {RECLAIM_CONFIG_KEY: " [] "}])
def test_a_missing_or_empty_list_is_inert_and_no_problem(data: dict[str, str] | None):
    reading = read_config(data)
    assert not reading.patterns
    assert reading.problems == ()


@pytest.mark.parametrize("text", ["[", "null", '"idea"', '{"idea": 1}', "idea", "[" * 100_000])
def test_a_list_that_cannot_be_read_is_inert_and_says_so(text: str):
    reading = read_config({RECLAIM_CONFIG_KEY: text})
    assert not reading.patterns
    assert "nothing will match" in reading.problems[0]


def test_entries_that_would_match_everything_or_nothing_are_left_out():
    reading = read_config({RECLAIM_CONFIG_KEY: json.dumps(["idea", "", "  ", 7, None, "x" * 257, "idea", "code"])})
    assert reading.patterns.entries == ("idea", "code")
    assert [problem.split(";")[0] for problem in reading.problems] == [
        "killIfCommands[1] is blank",
        "killIfCommands[2] is blank",
        "killIfCommands[3] is not a string",
        "killIfCommands[4] is not a string",
        "killIfCommands[5] is longer than 256 characters",
    ]


def test_only_as_many_patterns_as_the_api_allows_are_used():
    reading = read_config({RECLAIM_CONFIG_KEY: json.dumps([f"p{n}" for n in range(101)])})
    assert len(reading.patterns.entries) == 100
    assert "first 100 of 101" in reading.problems[0]


def test_the_reason_names_process_pid_and_pattern():
    assert reason(Hit("idea", "command line"), b"java", 42) == (
        'process "java" (pid 42) matched "idea" by its command line'
    )


@given(st.text(min_size=1, max_size=256), st.binary(max_size=64), st.integers(1, 4_194_304))
def test_the_reason_is_short_and_printable_whatever_the_process_is_called(pattern: str, comm: bytes, pid: int):
    text = reason(Hit(pattern, "name"), comm, pid)
    assert len(text) <= MAX_REASON_LENGTH
    assert text.isprintable()
    assert f"(pid {pid})" in text
    text.encode()


@given(st.lists(st.text(alphabet=st.characters(exclude_categories=[]), max_size=20), max_size=5), st.binary())
def test_whatever_the_list_holds_can_be_matched_against_anything(entries: list[str], raw: bytes):
    reading = read_config({RECLAIM_CONFIG_KEY: json.dumps(entries)})
    hit = reading.patterns.match(raw[:15], raw)
    assert hit is None or hit.pattern in entries

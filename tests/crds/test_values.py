"""What users may write for days, hours and durations, and which errors they get otherwise."""

import re
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crds.values import MAX_DURATION, DaySet, HourSet, InvalidValue, format_duration, parse_duration
from tests.crds import brute_force

SEARCH = settings(max_examples=200, deadline=None, derandomize=True, database=None)
DAY_GRAMMAR = re.compile(r" *(DAY)( *- *(DAY))?( *, *(DAY)( *- *(DAY))?)* *".replace("DAY", "|".join(brute_force.WEEK)))
HOUR_GRAMMAR = re.compile(DAY_GRAMMAR.pattern.replace("|".join(brute_force.WEEK), "[01]?[0-9]|2[0-3]"))


def days(*items: object) -> list[int]:
    chosen = DaySet.parse(list(items))
    return [day for day in range(7) if day in chosen]


def hours(*items: object) -> list[int]:
    chosen = HourSet.parse(list(items))
    return [hour for hour in range(24) if hour in chosen]


def refusal(read, *given: object) -> str:
    with pytest.raises(InvalidValue) as caught:
        read(*given)
    return caught.value.message


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        (["mon"], [0]),
        (["mon-fri"], [0, 1, 2, 3, 4]),
        (["fri-mon"], [0, 4, 5, 6]),
        (["mon-mon"], [0]),
        (["sun-sat"], [0, 1, 2, 3, 4, 5, 6]),
        (["mon-wed,fri"], [0, 1, 2, 4]),
        (["mon-wed", "tue,sun"], [0, 1, 2, 6]),
        ([" mon - wed , fri "], [0, 1, 2, 4]),
        ([], []),
    ],
)
def test_days_are_read(items, expected):
    assert days(*items) == expected


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        (["9"], [9]),
        (["09"], [9]),
        (["9-9"], [9]),
        (["9-11"], [9, 10, 11]),
        (["22-1"], [0, 1, 22, 23]),
        (["0-2,22-23"], [0, 1, 2, 22, 23]),
        ([" 0 - 1 , 3 "], [0, 1, 3]),
        (["5", "7"], [5, 7]),
    ],
)
def test_hours_are_read(items, expected):
    assert hours(*items) == expected


@pytest.mark.parametrize(
    "item",
    [
        "",
        " ",
        "Mon",
        "MON",
        "monday",
        "mon,,fri",
        ",mon",
        "mon,",
        "mon-",
        "-mon",
        "mon-tue-wed",
        "mon fri",
        "mon\t",
        "mon\n",
        "mon,\nfri",
        "mon\u00a0",
        "m on",
        "0",
        "mon;fri",
        "mon\x00",
        "everyday",
        "*",
    ],
)
def test_a_bad_day_is_refused_with_what_is_allowed(item):
    message = refusal(DaySet.parse, [item])
    assert "mon" in message or "blank" in message


@pytest.mark.parametrize(
    "item",
    [
        "",
        " ",
        "24",
        "-1",
        "9-",
        "9-24",
        "9,,10",
        "9-10-11",
        "\u0669",
        "\uff19",
        "9\n",
        "9\t-10",
        "009",
        "1 0",
        "9:00",
        "9.0",
        "1_0",
        "+9",
        "0x9",
        "nine",
        "*",
        "9-\u0661",
    ],
)
def test_a_bad_hour_is_refused_with_what_is_allowed(item):
    message = refusal(HourSet.parse, [item])
    assert "0 to 23" in message or "blank" in message


def test_every_bad_item_is_named_with_its_position():
    with pytest.raises(InvalidValue) as caught:
        DaySet.parse(["mon", "Tue", "wed", "x"])
    assert [(problem.index, problem.value) for problem in caught.value.problems] == [(1, "Tue"), (3, "x")]
    assert 'item 1: "Tue" is not a day' in caught.value.message
    assert 'item 3: "x" is not a day' in caught.value.message


@pytest.mark.parametrize(("hour", "quoted"), [(9, "9"), (9.0, "9"), (0, "0"), (23, "23")])
def test_a_number_that_is_an_hour_gets_a_hint_to_quote_it(hour, quoted):
    assert f'must be a string: put it in quotes, "{quoted}"; ' in refusal(HourSet.parse, [hour])
    assert hours(quoted) == [hour]


@pytest.mark.parametrize("number", [24, 99, -1, 9.5, 10**1000, 1e300, float("nan"), float("inf")])
def test_a_number_that_is_no_hour_gets_no_hint_that_would_be_refused_too(number):
    assert "must be a string, not a number; write an hour" in refusal(HourSet.parse, [number])


def test_a_number_longer_than_python_writes_is_refused_without_being_written():
    assert "must be a string, not a number; " in refusal(HourSet.parse, [16**5000])


def test_a_number_is_no_day_in_quotes_either():
    assert "must be a string, not a number; write mon" in refusal(DaySet.parse, [9])


@pytest.mark.parametrize(
    ("number", "hint"),
    [
        (5, 'must be a string with a unit: write "5s" or "5m"; '),
        (300.0, 'must be a string with a unit: write "300s" or "300m"; '),
        (2000, 'must be a string with a unit: write "2000s"; '),
        (100_000, "must be a string, not a number; "),
        (0, "must be a string, not a number; "),
        (-5, "must be a string, not a number; "),
        (True, "must be a string, not true or false; "),
        (None, "must be a string, not null; "),
        ([], "must be a string, not a list; "),
    ],
)
def test_a_number_for_a_duration_gets_a_hint_to_add_a_unit_that_would_do(number, hint):
    message = refusal(parse_duration, number)
    assert hint in message
    for suggested in re.findall('"([^"]*)"', message):
        assert parse_duration(suggested)


@pytest.mark.parametrize("given_value", [None, True, ["mon"], {"a": 1}, b"mon"])
def test_items_that_are_no_text_are_refused(given_value):
    assert "must be a string" in refusal(DaySet.parse, [given_value])


@pytest.mark.parametrize("given_value", ["mon-fri", None, 9])
def test_what_is_no_list_is_refused(given_value):
    assert "must be a list of strings" in refusal(DaySet.parse, given_value)


def test_a_message_shows_control_characters_and_cuts_what_is_long():
    assert r"mon\x00" in refusal(DaySet.parse, ["mon\x00"])
    assert len(refusal(DaySet.parse, ["x" * 1_000_000])) < 300
    assert len(refusal(HourSet.parse, ["9" * 1000])) < 600


@SEARCH
@given(st.text(alphabet="montuewdhfrisa,- \t\n", max_size=14))
def test_days_are_accepted_exactly_by_the_grammar(text):
    assert accepted(DaySet.parse_item, text) == bool(DAY_GRAMMAR.fullmatch(text))


@SEARCH
@given(st.text(alphabet="0123459,- \t\u0663", max_size=9))
def test_hours_are_accepted_exactly_by_the_grammar(text):
    assert accepted(HourSet.parse_item, text) == bool(HOUR_GRAMMAR.fullmatch(text))


def accepted(read, text: str) -> bool:
    try:
        read(text)
    except InvalidValue:
        return False
    return True


@SEARCH
@given(st.integers(1, 127), st.integers(1, 2**24 - 1), st.booleans())
def test_sets_are_written_in_a_form_that_reads_back(week, day, wraps):
    assert DaySet.parse([str(DaySet(week, wraps))]).bits == week
    assert HourSet.parse([str(HourSet(day, wraps))]).bits == day


def test_sets_are_values():
    assert DaySet.parse(["mon-tue"]) == DaySet.parse(["tue", "mon"])
    assert len({HourSet.parse(["9-10"]), HourSet.parse(["9", "10"])}) == 1
    assert DaySet(1) != HourSet(1)  # type: ignore[comparison-overlap]
    assert not DaySet()
    assert len(HourSet.EVERY) == 24
    assert DaySet.EVERY.is_full


def test_it_is_remembered_that_a_range_was_written_across_midnight():
    assert HourSet.parse(["22-6"]) != HourSet.parse(["0-6,22-23"]), "a cache must not mix up what earns a warning"
    assert HourSet.parse(["22-6"]).wraps
    assert not HourSet.parse(["0-6,22-23"]).wraps
    assert str(HourSet.parse(["22-6"])) == "22-6"
    assert str(HourSet.parse(["0-6,22-23"])) == "0-6,22-23"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1s", 1), ("90s", 90), ("5m", 300), ("24h", 86400), ("1h30m", 5400), ("1h1s", 3601), ("0h5m", 300), ("05m", 300)],
)
def test_durations_are_read(text, seconds):
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0s",
        "0h0m",
        "5",
        "5d",
        "1.5h",
        "-5m",
        "+5m",
        "5 m",
        " 5m",
        "5m ",
        "5m\n",
        "m",
        "30m1h",
        "5m5m",
        "1h1h",
        "\u0665m",
        "1H",
        "5min",
        "24h1s",
        "25h",
        "99999999999999999999h",
        "9" * 10_000 + "s",
        "1e3s",
        "PT5M",
        None,
        300,
        True,
        5.0,
    ],
)
def test_bad_durations_are_refused_with_what_is_allowed(text):
    message = refusal(parse_duration, text)
    assert "more than 0, at most 24h" in message
    assert len(message) < 300


def test_the_longest_duration_is_up_to_the_field():
    assert parse_duration("168h", MAX_DURATION) == timedelta(days=7)
    assert "at most 168h (7 days)" in refusal(parse_duration, "169h", MAX_DURATION)


@SEARCH
@given(st.integers(1, 7 * 86400))
def test_durations_are_written_in_a_form_that_reads_back(seconds):
    duration = timedelta(seconds=seconds)
    assert parse_duration(format_duration(duration), MAX_DURATION) == duration


def test_durations_are_written_short():
    assert [format_duration(timedelta(minutes=minutes)) for minutes in (1, 60, 90, 1440)] == [
        "1m",
        "1h",
        "1h30m",
        "24h",
    ]

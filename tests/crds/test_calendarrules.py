"""The rules of calendars on their corpus, and that an update answers only for what it changes."""

import json
from collections import Counter
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from crds import countries, names
from crds.calendarrules import check_calendar
from crds.calendars import CalendarKind
from crds.calendarschema import calendar_definitions
from crds.rules import check as check_machine
from crds.schedulecalendar import CalendarSpec, CalendarStatus
from tests.corpus import Case, calendar, load_calendars
from tests.crds.machines import scheduled
from tests.crds.test_schema import nodes

CASES = load_calendars()


def check(raw, **options):
    return check_calendar(raw, kind=CalendarKind.NAMESPACED, **options)


def test_there_are_three_invalid_calendars_for_every_rule():
    assert len({case.id for case in CASES}) == len(CASES)
    assert min(Counter(case.rule for case in CASES if not case.valid).values()) >= 3


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_the_rules_name_the_one_thing_that_is_wrong(case: Case):
    verdict = check(case.manifest)
    assert [violation.field for violation in verdict.violations] == ([] if case.valid else [case.field])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_the_controller_reads_a_calendar_only_whole(case: Case):
    spec = check(case.manifest, unknown="ignore").spec
    assert (spec is not None) == case.valid


@pytest.mark.parametrize("case", [case for case in CASES if case.valid], ids=lambda case: case.id)
def test_what_a_calendar_means_can_be_written_out_and_read_again(case: Case):
    spec = check(case.manifest).spec
    assert spec is not None
    assert CalendarSpec.parse(spec.to_json(), unknown="forbid") == spec


def test_everything_wrong_is_listed_at_once():
    raw = calendar()
    raw["metadata"]["name"] = "Holidays"
    raw["spec"] = {"dates": ["x"], "yearly": ["y"], "holidays": {"country": "XX"}, "ics": {}, "more": 1}
    assert {violation.field for violation in check(raw).violations} == {
        "metadata.name",
        "spec.dates[0]",
        "spec.yearly[0]",
        "spec.holidays.country",
        "spec.ics",
        "spec.more",
    }


def test_a_calendar_of_the_cluster_has_another_kind_and_no_namespace():
    raw = calendar() | {"kind": "ClusterScheduleCalendar"}
    found = check_calendar(raw, kind=CalendarKind.CLUSTER).violations
    assert [violation.field for violation in found] == ["metadata.namespace"]
    del raw["metadata"]["namespace"]
    assert check_calendar(raw, kind=CalendarKind.CLUSTER).allowed
    assert [violation.field for violation in check(raw).violations] == ["kind"]


def test_a_refusal_says_which_subdivisions_there_are():
    raw = calendar()
    raw["spec"] = {"holidays": {"country": "GB", "subdivision": "XXX"}}
    (violation,) = check(raw).violations
    assert violation.message == "is not a subdivision of GB; known are ENG, NIR, SCT, WLS"


def test_an_update_answers_only_for_what_it_changes():
    old = calendar()
    old["spec"] = {"holidays": {"country": "XX"}}
    touched = calendar()
    touched["spec"] = {"holidays": {"country": "XX"}, "yearly": ["12-25"]}
    assert check(touched, old=old).allowed
    touched["spec"]["yearly"] = ["12-32"]
    assert [violation.field for violation in check(touched, old=old).violations] == ["spec.yearly[0]"]


def test_a_calendar_that_is_being_deleted_can_go():
    old = calendar()
    old["spec"] = {}
    leaving = calendar() | {"spec": {}}
    leaving["metadata"]["deletionTimestamp"] = "2026-11-18T00:00:00Z"
    assert check(leaving, old=old).allowed


def test_the_text_of_a_calendar_is_never_quoted():
    raw = calendar() | {"spec": {"ics": {"inline": "secret" * 200_000}}}
    (violation,) = check(raw).violations
    assert "secret" not in str(violation)
    assert "secret" not in str(violation.to_json())
    assert violation.value == "1200000 characters"


some_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from(["", "2026-12-24", "12-25", "GB", "SCT", "09:00", "\ud800"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "dates",
                    "yearly",
                    "holidays",
                    "ics",
                    "inline",
                    "country",
                    "configMapKeyRef",
                    "name",
                    "from",
                    "to",
                    "days",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(some_json)
def test_whatever_a_spec_is_it_gets_a_verdict_in_plain_json(spec):
    verdict = check(calendar() | {"spec": spec})
    json.dumps([violation.to_json() for violation in verdict.violations])
    assert verdict.allowed == (verdict.spec is not None)


@given(some_json, some_json)
def test_whatever_windows_and_exceptions_are_they_get_a_verdict(windows, exceptions):
    verdict = check_machine(scheduled(windows=windows, exceptions=exceptions, daysOfWeek=["mon"]))
    json.dumps([violation.to_json() for violation in verdict.violations])


@pytest.mark.parametrize("raw", [None, [], "x", {}, {"spec": []}, {"spec": {"dates": {}, "ics": 1, "holidays": []}}])
def test_anything_at_all_gets_a_verdict(raw):
    assert not check(raw).allowed


def test_the_table_of_countries_is_that_of_the_library():
    assert {country: list(parts) for country, parts in countries.known().items()} == countries.supported()


@pytest.mark.parametrize("definition", calendar_definitions(), ids=lambda each: each["metadata"]["name"])
def test_everything_in_the_schema_has_a_bound_and_a_description(definition):
    parts = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    for path, schema in (*nodes(parts["spec"], "spec"), *nodes(parts["status"], "status")):
        if schema["type"] == "string":
            assert "maxLength" in schema or "enum" in schema, path
        if schema["type"] == "array":
            assert {"maxItems", "x-kubernetes-list-type"} <= schema.keys(), path
        assert path.endswith("[]") or schema["description"].endswith("."), path


def test_the_two_kinds_differ_only_in_where_they_live():
    one, other = (each["spec"]["versions"][0]["schema"]["openAPIV3Schema"] for each in calendar_definitions())
    assert one["properties"]["spec"] == other["properties"]["spec"]
    assert [each["spec"]["scope"] for each in calendar_definitions()] == ["Namespaced", "Cluster"]
    assert str(CalendarKind.NAMESPACED) == names.CALENDAR_KIND
    assert str(CalendarKind.CLUSTER) == names.CLUSTER_CALENDAR_KIND


def test_a_status_that_makes_no_sense_counts_as_none():
    assert CalendarStatus.read({"nextDates": 5}) == CalendarStatus.read(None) == CalendarStatus()
    status = {"nextDates": [{"date": "2026-12-25", "name": "Christmas Day"}], "knownThrough": "2036-12-31"}
    assert CalendarStatus.read(status).to_json() == status


EXAMPLES = sorted((Path(__file__).parents[2] / "examples" / "calendars").glob("*.yaml"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_is_allowed(path: Path):
    raw = yaml.safe_load(path.read_text(encoding="utf-8"))
    if raw["kind"] == names.KIND:
        assert check_machine(raw).allowed
    else:
        assert check_calendar(raw, kind=CalendarKind(raw["kind"])).allowed

"""Pages that name reasons, Events and rules name those that exist."""

import re

from crds.reasons import CalendarConditionReason, OverrideConditionReason
from service.decide.condition_types import EVENTS
from service.decide.lifecycle import RULES
from service.decide.reasons import Reason, Severity
from service.decide.reference import conditions_page, events_page, rules_table, with_rules
from tests.docs.pages import ROOT

WORD = re.compile(r"`([A-Z][A-Za-z]+)`")
EMITTED = {*EVENTS, *(reason for reason in Reason if reason.severity is Severity.WARNING)}


def rows(page: str) -> set[str]:
    return set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE))


def test_every_reason_has_a_row_on_the_page_of_conditions_or_events():
    assert set(Reason) - rows(conditions_page()) - rows(events_page()) == set()


def test_the_reasons_of_overrides_and_calendars_have_rows_too():
    for each in (*OverrideConditionReason, *CalendarConditionReason):
        assert f"| `{each.condition}` | `{each}` | {each.status} |" in conditions_page()


def test_every_event_has_a_row_and_every_row_is_an_event():
    assert rows(events_page()) == EMITTED


def test_the_table_of_rules_has_all_of_them_in_order():
    numbers = re.findall(r"^\| (\d+) \|", rules_table(), re.MULTILINE)
    assert numbers == [str(number) for number in range(len(RULES))]
    assert len(numbers) > 5


def test_the_table_of_rules_replaces_the_one_that_is_on_the_page():
    page = (ROOT / "docs" / "lifecycle.md").read_text()
    assert with_rules(page.replace("| 3 |", "| three |")) == page


def test_where_troubleshooting_points_to_events_it_names_events():
    page = (ROOT / "docs" / "troubleshooting.md").read_text()
    (section,) = [each for each in page.split("\n## ") if "Look at the events." in each]
    named = set(WORD.findall(section))
    assert len(named) > 4
    assert named - EMITTED == set()

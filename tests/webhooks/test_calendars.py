"""Admission of calendars, and what it says of those that schedules name."""

from typing import Any

import httpx
import orjson
import pytest

from crds import names
from crds.calendars import CalendarKind, CalendarReference
from tests.corpus import Case, calendar, load_calendars
from tests.webhooks.reviews import at_once, machine, review
from tests.webhooks.test_routes import Tally, well_formed
from webhooks.answers import AdmissionOutcome
from webhooks.configuration import Registration, ServiceRef, manifests
from webhooks.review import parse
from webhooks.routes import create_app
from webhooks.verdict import Gate

UK = {"calendarRef": {"name": "uk"}, "state": "Closed"}
BANK = {"calendarRef": {"kind": "ClusterScheduleCalendar", "name": "bank"}, "state": "Closed"}


def asked(given: dict[str, Any] | None, kind: str = names.CALENDAR_KIND, **options: Any) -> bytes:
    about = {"group": names.GROUP, "version": names.VERSION, "kind": kind}
    return orjson.dumps(review(given, kind=about, **options))


def judge(given: dict[str, Any] | None, *, gate: Gate | None = None, kind: str = names.CALENDAR_KIND, **options: Any):
    answer = (gate or Gate()).validate_calendar(parse(asked(given, kind, **options), kind))
    return answer, orjson.loads(answer.body)["response"]


@pytest.mark.parametrize("case", load_calendars(), ids=lambda case: case.id)
def test_the_webhook_judges_as_the_rules(case: Case):
    answer, response = judge(case.manifest)
    assert response["allowed"] is case.valid
    assert list(answer.fields) == ([] if case.valid else [case.field])


def test_a_refusal_names_the_kind():
    _, response = judge(calendar() | {"spec": {}})
    assert response["status"]["message"].startswith('ScheduleCalendar "holidays" is invalid: spec: ')
    assert response["status"]["details"]["kind"] == "ScheduleCalendar"


def test_a_calendar_of_the_cluster_is_judged_as_such():
    given = calendar() | {"kind": "ClusterScheduleCalendar", "metadata": {"name": "bank"}}
    assert judge(given, kind="ClusterScheduleCalendar")[1]["allowed"]
    assert not judge(calendar(), kind="ClusterScheduleCalendar")[1]["allowed"]


def test_an_update_answers_only_for_what_it_changes():
    old = calendar() | {"spec": {"holidays": {"country": "XX"}}}
    new = calendar() | {"spec": {"holidays": {"country": "XX"}, "yearly": ["12-25"]}}
    assert judge(new, old=old)[1]["allowed"]


def test_a_write_of_the_status_is_not_judged():
    answer, _ = judge(calendar() | {"spec": {}}, old=calendar(), subResource="status")
    assert answer.outcome is AdmissionOutcome.NOT_JUDGED


def test_the_deletion_of_a_calendar_in_use_warns_and_goes_on():
    users = [f"default/desk-{number}" for number in range(5)]
    seen: list[tuple[str, CalendarReference]] = []

    def lookup(namespace: str, reference: CalendarReference) -> list[str]:
        seen.append((namespace, reference))
        return users

    answer, response = judge(None, old=calendar(), operation="DELETE", gate=Gate(calendar_users=lookup))
    assert answer.outcome is AdmissionOutcome.WARNED
    assert response["allowed"]
    (warning,) = response["warnings"]
    assert "ScheduleCalendar holidays is used by default/desk-0, default/desk-1, default/desk-2 and 2 more" in warning
    assert seen == [("default", CalendarReference(CalendarKind.NAMESPACED, "holidays"))]


@pytest.mark.parametrize("users", [None, []])
def test_the_deletion_of_a_calendar_that_is_not_known_to_be_in_use_brings_no_warning(users):
    gate = Gate(calendar_users=lambda _namespace, _reference: users)
    answer, response = judge(None, old=calendar(), operation="DELETE", gate=gate)
    assert answer.outcome is AdmissionOutcome.ALLOWED
    assert "warnings" not in response


def warned(exists: Any, *exceptions: dict[str, Any]) -> list[str]:
    schedule = {"daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-17"], "exceptions": list(exceptions)}
    answer = at_once(Gate(calendar_exists=exists).validate(parse(orjson.dumps(review(machine(schedule=schedule))))))
    response = orjson.loads(answer.body)["response"]
    assert response["allowed"]
    found: list[str] = response.get("warnings", [])
    return found


def test_a_schedule_that_names_a_missing_calendar_is_stored_with_a_warning():
    one, other = warned(lambda _namespace, _reference: False, UK, BANK, UK)
    assert "there is no ScheduleCalendar uk in namespace default yet" in one
    assert "there is no ClusterScheduleCalendar bank yet" in other


@pytest.mark.parametrize("answer", [True, None])
def test_a_calendar_that_exists_or_is_not_known_brings_no_warning(answer):
    assert warned(lambda _namespace, _reference: answer, UK, BANK) == []


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        (names.VALIDATE_CALENDAR_PATH, names.CALENDAR_KIND),
        (names.VALIDATE_CLUSTER_CALENDAR_PATH, names.CLUSTER_CALENDAR_KIND),
    ],
)
async def test_each_kind_has_a_path_of_its_own(path, kind):
    transport = httpx.ASGITransport(create_app(Gate(), Tally()))
    given = calendar() | {"kind": kind, "metadata": {"name": "holidays"}}
    async with httpx.AsyncClient(transport=transport, base_url="https://webhooks") as client:
        right = well_formed(await client.post(path, content=asked(given, kind)))
        wrong = well_formed(await client.post(path, content=orjson.dumps(review(machine()))))
    assert right["allowed"]
    assert f"only {kind} of" in wrong["status"]["message"]


def test_the_api_server_asks_about_calendars_and_never_waits_for_us_to_delete_one():
    registration = Registration(ServiceRef("5spot-system", "5spot"), service_account="me", calendars=True)
    _, validating = manifests(registration)
    found = {webhook["name"].partition(".5spot")[0]: webhook for webhook in validating["webhooks"]}
    assert set(found) == {
        "validate.scheduledmachines",
        "validate.schedulecalendars",
        "deletion.schedulecalendars",
        "validate.clusterschedulecalendars",
        "deletion.clusterschedulecalendars",
    }
    for plural, scope in (("schedulecalendars", "Namespaced"), ("clusterschedulecalendars", "Cluster")):
        judges, warns = found[f"validate.{plural}"], found[f"deletion.{plural}"]
        assert [rule["operations"] for rule in judges["rules"]] == [["CREATE", "UPDATE"]]
        assert [rule["operations"] for rule in warns["rules"]] == [["DELETE"]]
        assert {rule["scope"] for each in (judges, warns) for rule in each["rules"]} == {scope}
        assert (judges["failurePolicy"], warns["failurePolicy"]) == ("Fail", "Ignore")
        assert [condition["name"] for condition in warns["matchConditions"]] == ["not-our-own"]


def test_calendars_are_asked_about_only_where_their_kinds_are_installed():
    _, validating = manifests(Registration(ServiceRef("5spot-system", "5spot")))
    assert len(validating["webhooks"]) == 1

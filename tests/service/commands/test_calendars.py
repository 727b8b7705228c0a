"""`preview` and `validate` with calendars from the files that they are given."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from service.cli import main
from tests.corpus import calendar, load_calendars
from tests.crds.machines import machine, scheduled
from tests.service.calendars.events import all_day, event
from tests.service.calendars.events import calendar as ics
from tests.service.commands.manifests import run_json, written

CHRISTMAS = ("--from", "2026-12-24", "--days", "3")
MY_ICS = {"ics": {"configMapKeyRef": {"name": "team", "key": "team.ics"}}}
CLUSTER = {"kind": "ClusterScheduleCalendar", "name": "holidays"}


def closed(reference: dict[str, str] | None = None, **schedule: Any) -> dict[str, Any]:
    """A ScheduledMachine that is out of service on the dates of a calendar."""
    exceptions = [{"calendarRef": reference or {"name": "holidays"}, "state": "Closed"}]
    return scheduled(**{"hoursOfDay": ["9"], "exceptions": exceptions, **schedule})


def holidays(**spec: Any) -> dict[str, Any]:
    return calendar() | {"spec": spec}


def of_cluster(**spec: Any) -> dict[str, Any]:
    return holidays(**spec) | {"kind": "ClusterScheduleCalendar", "metadata": {"name": "holidays"}}


def config_map(text: Any, namespace: Any = "default", name: Any = "team") -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"team.ics": text}}


def previewed(capsys, tmp_path, *documents):
    return run_json(capsys, "preview", written(tmp_path, *documents), *CHRISTMAS)


def opened(entry):
    return [window["opens"][:10] for window in entry["windows"]]


# preview


@pytest.mark.parametrize("swapped", [False, True])
def test_a_calendar_is_taken_from_the_files_whatever_their_order(tmp_path, capsys, swapped):
    files = [written(tmp_path, closed(), name="machine.yaml"), written(tmp_path, calendar(), name="calendar.yaml")]
    code, (entry,) = run_json(capsys, "preview", *(files[::-1] if swapped else files), *CHRISTMAS)
    assert (code, opened(entry)) == (0, ["2026-12-25", "2026-12-26"])
    assert entry["exceptions"] == [{"date": "2026-12-24", "state": "Closed"}]


def test_the_exceptions_of_the_period_are_named_and_no_others(tmp_path, capsys):
    code, (entry,) = previewed(capsys, tmp_path, closed(), holidays(holidays={"country": "GB", "subdivision": "SCT"}))
    assert (code, opened(entry)) == (0, ["2026-12-24"])
    assert entry["exceptions"] == [
        {"date": "2026-12-25", "state": "Closed", "name": "Christmas Day"},
        {"date": "2026-12-26", "state": "Closed", "name": "Boxing Day"},
    ]


def test_an_exception_is_on_the_date_of_the_schedules_zone(tmp_path, capsys):
    night = ics(event("DTSTART:20261224T160000Z", "DTEND:20261224T170000Z", "SUMMARY:Night"))
    tokyo = closed(timezone="Asia/Tokyo")
    _, (entry,) = previewed(capsys, tmp_path, tokyo, holidays(ics={"inline": night}))
    assert entry["exceptions"] == [{"date": "2026-12-25", "state": "Closed", "name": "Night"}]


def test_a_calendar_of_the_cluster_is_seen_from_every_namespace(tmp_path, capsys):
    desk = closed(CLUSTER)
    desk["metadata"]["namespace"] = "team-a"
    code, (entry,) = previewed(capsys, tmp_path, desk, of_cluster(yearly=["12-25"]))
    assert (code, opened(entry)) == (0, ["2026-12-24", "2026-12-26"])


def test_an_ics_comes_from_the_config_map_beside_the_calendar(tmp_path, capsys):
    text = ics(all_day("20261224", "SUMMARY:Team day"))
    code, (entry,) = previewed(capsys, tmp_path, closed(), holidays(**MY_ICS), config_map(text))
    assert (code, entry["exceptions"][0]["name"]) == (0, "Team day")


def test_the_config_map_of_a_cluster_calendar_is_in_the_operators_namespace(tmp_path, capsys):
    text = ics(all_day("20261224", "SUMMARY:Team day"))
    path = written(tmp_path, closed(CLUSTER), of_cluster(**MY_ICS), config_map(text, "operators"))
    assert main(["preview", path, *CHRISTMAS]) == 1
    assert main(["preview", path, *CHRISTMAS, "--operator-namespace", "operators"]) == 0
    assert "[closed: Team day]" in capsys.readouterr().out


def test_the_table_names_the_holidays_on_their_days(tmp_path, capsys):
    eve = {"dates": ["2026-12-24"], "state": "Open"}
    ref = {"calendarRef": {"name": "holidays"}, "state": "Closed"}
    path = written(tmp_path, closed(exceptions=[eve, ref]), holidays(holidays={"country": "GB"}))
    assert main(["preview", path, *CHRISTMAS]) == 0
    _, _, *days = capsys.readouterr().out.splitlines()
    assert days[0] == "Thu 2026-12-24 " + "█" * 48 + "  00:00-24:00  [open]"
    assert days[1] == "Fri 2026-12-25 " + "·" * 48 + "  [closed: Christmas Day]"


def test_windows_that_an_exception_opens_are_cut_to_the_period_and_marked(tmp_path, capsys):
    whole = scheduled(hoursOfDay=["9"], exceptions=[{"dates": ["2026-12-24/2026-12-26"], "state": "Open"}])
    _, (entry,) = run_json(capsys, "preview", written(tmp_path, whole), "--from", "2026-12-25T06:00:00Z", "--days", "1")
    cut = {"opens": "2026-12-25T06:00:00Z", "closes": "2026-12-26T06:00:00Z", "cut": ["opens", "closes"]}
    assert entry["windows"] == [cut]


# A calendar that is missing or broken


def test_a_calendar_that_is_not_in_the_files_is_named_with_what_to_do(tmp_path, capsys):
    path = written(tmp_path, closed(), machine(name="other"))
    assert main(["preview", path, *CHRISTMAS]) == 1
    shown = capsys.readouterr().out
    assert "default/worker: its windows cannot be known without all of its calendars" in shown
    assert "ScheduleCalendar holidays in namespace default is not in these files; give its file too" in shown
    assert "default/other: " in shown


def test_an_undecidable_schedule_has_no_windows_for_programs(tmp_path, capsys):
    code, (entry,) = previewed(capsys, tmp_path, closed(CLUSTER))
    message = "ClusterScheduleCalendar holidays is not in these files; give its file too"
    assert (code, entry["undecidable"]) == (1, [{"calendar": CLUSTER, "message": message}])
    assert "windows" not in entry


def test_a_calendar_of_another_namespace_is_another_calendar(tmp_path, capsys):
    elsewhere = calendar()
    elsewhere["metadata"]["namespace"] = "elsewhere"
    code, (entry,) = previewed(capsys, tmp_path, closed(), elsewhere)
    assert code == 1
    assert "in namespace default is not in these files" in entry["undecidable"][0]["message"]


def test_an_ics_without_its_config_map_says_to_give_it(tmp_path, capsys):
    code, (entry,) = previewed(capsys, tmp_path, closed(), holidays(**MY_ICS))
    assert code == 1
    assert entry["undecidable"][0]["message"].endswith("; give the file of the ConfigMap too")


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ({"dates": ["2026-02-30"]}, "is invalid; 5spot validate says why"),
        ({"ics": {"inline": "no calendar"}}, "spec.ics is not a calendar in the iCalendar format"),
        ({"ics": {"inline": ics(event("DTSTART:20260101T000000Z", "RRULE:FREQ=SECONDLY"))}}, "more often than daily"),
    ],
)
def test_a_broken_calendar_says_what_is_wrong(tmp_path, capsys, spec, says):
    code, (entry,) = previewed(capsys, tmp_path, closed(), holidays(**spec))
    assert code == 1
    assert says in entry["undecidable"][0]["message"]


def test_a_broken_calendar_that_no_schedule_names_does_no_harm(tmp_path, capsys):
    code, (entry,) = previewed(capsys, tmp_path, machine(), holidays(ics={"inline": "no calendar"}))
    assert code == 0
    assert "windows" in entry


@pytest.mark.parametrize(
    "hostile",
    [
        calendar() | {"metadata": {"name": "holidays", "namespace": ["default"]}},
        calendar() | {"metadata": {"name": {"a": 1}}},
        calendar() | {"metadata": None},
        calendar() | {"kind": ["ScheduleCalendar"]},
        calendar() | {"spec": None},
        holidays(dates={"2026-12-24": 1}),
        config_map(5, namespace={}),
        config_map(None, name=["team"]),
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": [], "data": []},
    ],
)
@pytest.mark.parametrize("command", ["preview", "validate"])
def test_documents_that_only_resemble_calendars_are_no_bug_of_ours(tmp_path, capsys, hostile, command):
    code = main([command, written(tmp_path, closed(), holidays(**MY_ICS), hostile), "-o", "json"])
    assert code in (0, 1)
    assert json.loads(capsys.readouterr().out)


def test_names_in_any_script_reach_any_terminal_without_control_characters(tmp_path):
    text = ics(all_day("20261224", "SUMMARY:Święto\x1b[31m \N{GRINNING FACE}" + "x" * 200))
    files = [written(tmp_path, closed()), written(tmp_path, holidays(ics={"inline": text}), name="calendar.json")]
    for encoding in ("ascii", "utf-8"):
        done = subprocess.run(
            [sys.executable, "-m", "service", "preview", *files, *CHRISTMAS],
            check=False, capture_output=True, env=os.environ | {"PYTHONIOENCODING": f"{encoding}:strict"},
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, b"")
        assert b"\x1b" not in done.stdout
        assert max(map(len, done.stdout.decode(encoding).splitlines())) < 200


def test_the_libraries_that_read_calendars_stay_in_their_own_process(tmp_path):
    path = written(tmp_path, closed(), holidays(holidays={"country": "GB"}))
    probe = (
        "import sys; from service.cli import main; code = main(['preview', sys.argv[1]]); "
        "heavy = {'holidays', 'icalendar', 'recurring_ical_events', 'kubernetes_asyncio'} & set(sys.modules); "
        "sys.exit(f'{heavy} loaded' if heavy else code)"
    )
    done = subprocess.run([sys.executable, "-c", probe, path], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_files_with_calendars_only_have_nothing_to_preview(tmp_path, capsys):
    path = written(tmp_path, calendar())
    assert main(["preview", path]) == 2
    assert capsys.readouterr().err == f"there is no ScheduledMachine in {path}\n"


# validate


def test_calendars_are_judged_as_by_the_webhook(tmp_path, capsys):
    cases = [case for case in load_calendars() if len(json.dumps(case.manifest)) < 100_000]
    _, verdicts = run_json(capsys, "validate", written(tmp_path, *(case.manifest for case in cases)))
    assert [verdict["allowed"] for verdict in verdicts] == [case.valid for case in cases]


def test_a_verdict_on_a_calendar_says_its_kind(tmp_path, capsys):
    path = written(tmp_path, calendar(), of_cluster(dates=["2026-12-24"]), machine())
    assert main(["validate", path]) == 0
    shown = capsys.readouterr()
    assert shown.out.splitlines() == [
        "ScheduleCalendar default/holidays: allowed",
        "ClusterScheduleCalendar holidays: allowed",
        "default/worker: allowed",
    ]
    assert shown.err == ""


def test_an_invalid_calendar_alone_is_rejected(tmp_path, capsys):
    code, (verdict,) = run_json(capsys, "validate", written(tmp_path, holidays(dates=["2026-02-30"])))
    assert (code, verdict["kind"]) == (1, "ScheduleCalendar")
    assert verdict["violations"][0]["field"].startswith("spec.dates")


def test_a_calendar_that_says_its_kind_in_the_wrong_case_is_rejected_over_its_kind(tmp_path, capsys):
    code, (verdict,) = run_json(capsys, "validate", written(tmp_path, calendar() | {"kind": "schedulecalendar"}))
    assert (code, [each["field"] for each in verdict["violations"]]) == (1, ["kind"])


def test_a_list_of_calendars_is_unpacked(tmp_path, capsys):
    listed = {"apiVersion": "5spot.finos.org/v1alpha1", "kind": "ScheduleCalendarList", "items": [calendar()]}
    assert main(["validate", written(tmp_path, listed)]) == 0


@pytest.mark.parametrize("beside", [True, False])
def test_an_ics_that_no_schedule_could_use_is_warned_of(tmp_path, capsys, beside):
    documents = [holidays(**MY_ICS), config_map("no calendar")] if beside else [holidays(ics={"inline": "no calendar"})]
    code, (verdict,) = run_json(capsys, "validate", written(tmp_path, *documents))
    assert code == 0
    (warning,) = verdict["warnings"]
    assert warning.startswith("ScheduleCalendar holidays: spec.ics is not a calendar in the iCalendar format")
    assert warning.endswith("; no schedule can use the calendar until it is corrected")


def test_an_ics_that_is_not_at_hand_is_passed_over_as_the_webhook_does(tmp_path, capsys):
    code, (verdict,) = run_json(capsys, "validate", written(tmp_path, holidays(**MY_ICS)))
    assert (code, verdict["warnings"]) == (0, [])


@pytest.mark.parametrize("empty", [{"holidays": {"country": "IO"}}, {"ics": {"inline": ics()}}])
def test_a_calendar_without_any_date_is_warned_of(tmp_path, capsys, empty):
    path = written(tmp_path, of_cluster(**empty), holidays(holidays={"country": "GB"}))
    code, (warned, filled) = run_json(capsys, "validate", path)
    assert code == 0
    (warning,) = warned["warnings"]
    assert warning.startswith("ClusterScheduleCalendar holidays names no date until ")
    assert filled["warnings"] == []

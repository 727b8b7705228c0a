import os
import subprocess
import sys
from pathlib import Path

import pytest

from service.cli import main
from tests.crds.machines import machine, scheduled
from tests.service.commands.manifests import run_json, written


def preview(capsys, tmp_path, manifest, start, days=1):
    code, (entry,) = run_json(
        capsys, "preview", "-f", written(tmp_path, manifest), "--from", start, "--days", str(days)
    )
    assert code == 0
    return entry


def test_windows_are_utc_instants_across_a_clock_change(tmp_path, capsys):
    manifest = scheduled(hoursOfDay=["2-3"], timezone="America/New_York")
    entry = preview(capsys, tmp_path, manifest, "2026-03-07T05:00:00Z", 2)
    assert entry == {
        "name": "worker",
        "namespace": "default",
        "timezone": "America/New_York",
        "enabled": True,
        "windows": [
            {"opens": "2026-03-07T07:00:00Z", "closes": "2026-03-07T09:00:00Z"},
            {"opens": "2026-03-08T07:00:00Z", "closes": "2026-03-08T08:00:00Z"},
        ],
        "exceptions": [],
    }


def test_windows_are_cut_to_the_period_and_the_cut_ends_are_named(tmp_path, capsys):
    entry = preview(capsys, tmp_path, scheduled(hoursOfDay=["0-23"]), "2026-03-07T05:30:00Z")
    whole_day = {"opens": "2026-03-07T05:30:00Z", "closes": "2026-03-08T05:30:00Z", "cut": ["opens", "closes"]}
    assert entry["windows"] == [whole_day]
    entry = preview(capsys, tmp_path, scheduled(hoursOfDay=["4-6", "12"]), "2026-03-07T05:30:00Z")
    assert [window.get("cut") for window in entry["windows"]] == [["opens"], None, ["closes"]]


def test_a_date_is_midnight_in_the_schedules_own_zone(tmp_path, capsys):
    tokyo = scheduled(hoursOfDay=["0"], timezone="Asia/Tokyo")
    london = scheduled(hoursOfDay=["0"], timezone="Europe/London")
    path = written(tmp_path, tokyo, london)
    _, entries = run_json(capsys, "preview", path, "--from", "2026-07-01", "--days", "1")
    assert [each["windows"] for each in entries] == [
        [{"opens": "2026-06-30T15:00:00Z", "closes": "2026-06-30T16:00:00Z"}],
        [{"opens": "2026-06-30T23:00:00Z", "closes": "2026-07-01T00:00:00Z"}],
    ]


def test_the_table_carries_on_to_midnight_and_marks_the_windows_that_it_cuts(tmp_path, capsys):
    path = written(tmp_path, scheduled(hoursOfDay=["22-6"], timezone="Europe/Berlin"))
    assert main(["preview", path, "--from", "2026-11-18T01:30:00Z", "--days", "1"]) == 0
    first, last = capsys.readouterr().out.splitlines()[2:]
    assert first == "Wed 2026-11-18 " + " " * 5 + "█" * 9 + "·" * 30 + "█" * 4 + "  …02:30-07:00, 22:00-24:00"
    assert last == "Thu 2026-11-19 " + "█" * 14 + "·" * 30 + "█" * 4 + "  00:00-07:00, 22:00-24:00…"


def test_a_file_and_a_name_in_a_cluster_are_not_asked_for_at_once(tmp_path, capsys):
    assert main(["preview", "desk-7", "-f", written(tmp_path, machine())]) == 2
    assert "desk-7 is in a cluster: run preview once for each" in capsys.readouterr().err


def test_a_name_without_a_cluster_says_what_is_missing(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "absent"))
    assert main(["preview", "desk-7"]) == 2
    printed = capsys.readouterr().err
    assert f"{tmp_path}/absent: no such kubeconfig file" in printed
    assert "if desk-7 is a file, it does not exist here" in printed


def test_a_path_is_no_name_in_a_cluster(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "absent"))
    assert main(["preview", written(tmp_path, machine()), "-n", "team-a"]) == 2
    assert "stands for files, and namespace team-a is in a cluster: run preview once" in capsys.readouterr().err


def test_a_name_that_a_file_has_too_says_how_to_read_the_file(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "absent"))
    monkeypatch.chdir(tmp_path)
    name = Path(written(tmp_path, machine())).name
    assert main(["preview", name, "-n", "team-a"]) == 2
    assert f"{name} exists here, too: leave out -n to read it" in capsys.readouterr().err


def test_without_arguments_it_says_what_it_wants(capsys):
    assert main(["preview"]) == 2
    assert "name a FILE, the NAME of a ScheduledMachine in a cluster, or a namespace with -n" in capsys.readouterr().err


def test_adjoining_windows_are_one(tmp_path, capsys):
    manifest = scheduled(cron="0 * * * *", duration="1h")
    entry = preview(capsys, tmp_path, manifest, "2026-03-07T00:00:00Z", 3)
    assert len(entry["windows"]) == 1


def test_the_period_may_be_given_in_any_offset(tmp_path, capsys):
    entry = preview(capsys, tmp_path, scheduled(hoursOfDay=["9"]), "2026-03-07T05:30:00+05:30")
    assert entry["windows"] == [{"opens": "2026-03-07T09:00:00Z", "closes": "2026-03-07T10:00:00Z"}]


def test_a_disabled_schedule_is_shown_too(tmp_path, capsys):
    entry = preview(capsys, tmp_path, scheduled(hoursOfDay=["9"], enabled=False), "2026-03-07T00:00:00Z")
    assert entry["enabled"] is False
    assert len(entry["windows"]) == 1


def test_an_invalid_document_gets_its_verdict_in_its_place(tmp_path, capsys):
    path = written(tmp_path, machine(), machine(priority=-1), machine())
    code, entries = run_json(capsys, "preview", "-f", path, "--from", "2026-03-07T00:00:00Z")
    assert code == 1
    keys = ["enabled", "exceptions", "name", "namespace", "timezone", "windows"]
    assert sorted(entries[0]) == sorted(entries[2]) == keys
    assert entries[1]["allowed"] is False
    assert entries[1]["violations"][0]["field"] == "spec.priority"


def test_the_table_is_a_week_with_a_bar_per_day_in_the_schedules_zone(tmp_path, capsys):
    manifest = scheduled(daysOfWeek=["mon-fri"], hoursOfDay=["9-17"], timezone="America/New_York")
    assert main(["preview", "-f", written(tmp_path, manifest), "--from", "2026-03-09T04:00:00Z"]) == 0
    title, scale, *bars = capsys.readouterr().out.splitlines()
    assert title == "default/worker: mon-fri 9-17 America/New_York"
    assert scale.split() == ["0", "3", "6", "9", "12", "15", "18", "21"]
    assert [bar[:3] for bar in bars] == ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
    assert bars[0] == "Mon 2026-03-09 " + "·" * 18 + "█" * 18 + "·" * 12 + "  09:00-18:00"
    assert bars[5] == "Sat 2026-03-14 " + "·" * 48
    assert max(map(len, bars)) <= 100


def test_an_invalid_document_is_explained_in_the_table(tmp_path, capsys):
    assert main(["preview", "-f", written(tmp_path, machine(priority=-1))]) == 1
    assert "spec.priority: -1: must be at least 0" in capsys.readouterr().out


@pytest.mark.parametrize(
    "options",
    [
        ["--from", "2026-02-30"],
        ["--from", "2026-03-07T00:00:00"],
        ["--from", "2026-02-30T00:00:00Z"],
        ["--from", "yesterday"],
        ["--days", "0"],
        ["--days", "-1"],
        ["--days", "1e9"],
        ["--days", "99999999999999999999"],
    ],
)
def test_a_period_that_makes_no_sense_exits_2(tmp_path, capsys, options):
    assert main(["preview", "-f", written(tmp_path, machine()), *options]) == 2
    assert options[0] in capsys.readouterr().err


def test_the_end_of_time_is_not_an_error_of_ours(tmp_path, capsys):
    assert main(["preview", "-f", written(tmp_path, machine()), "--from", "9999-12-31T00:00:00Z"]) == 2
    assert "9999" in capsys.readouterr().err


def test_a_day_with_a_clock_change_is_shown_on_any_terminal(tmp_path):
    path = written(tmp_path, scheduled(daysOfWeek=["sun"], timezone="America/New_York"))
    command = [sys.executable, "-m", "service", "preview", "-f", path, "--from", "2026-03-08T00:00:00Z"]
    environment = os.environ | {"PYTHONIOENCODING": "ascii:strict"}
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    assert "[clock 02:00 -> 03:00]" in done.stdout


LEADS = {"hoursOfDay": ["9-10,12-17"], "startEarly": "1h", "stopEarly": "Auto"}


def test_the_table_shows_leads_and_the_gaps_that_they_bridge_in_another_shade(tmp_path, capsys):
    assert main(["preview", written(tmp_path, scheduled(**LEADS)), "--from", "2026-11-18", "--days", "1"]) == 0
    *_, day, legend = capsys.readouterr().out.splitlines()
    bar = "·" * 16 + "░░" + "████" + "░░" + "█" * 11 + "░" + "·" * 12
    assert day == f"Wed 2026-11-18 {bar}  09:00-11:00, 12:00-18:00"
    assert legend == "░ requested 1h before an opening, shut down 5m (Auto) before a close"


def test_auto_is_shown_as_the_status_has_it(tmp_path, capsys):
    manifest = {**scheduled(**LEADS), "status": {"leads": {"stopEarly": "45m"}}}
    assert main(["preview", written(tmp_path, manifest), "--from", "2026-11-18", "--days", "1"]) == 0
    *_, day, legend = capsys.readouterr().out.splitlines()
    assert "█" * 10 + "░░·" in day
    assert "shut down 45m (Auto) before a close" in legend


def test_a_window_that_the_lead_uses_up_is_shown_as_a_lead(tmp_path, capsys):
    manifest = scheduled(hoursOfDay=["9"], stopEarly="1h")
    assert main(["preview", written(tmp_path, manifest), "--from", "2026-11-18", "--days", "1"]) == 0
    *_, day, _ = capsys.readouterr().out.splitlines()
    assert "·" * 18 + "░░" + "·" * 28 in day


def test_json_has_the_windows_without_leads(tmp_path, capsys):
    entries = [
        preview(capsys, tmp_path, scheduled(**{"hoursOfDay": ["9-10,12-17"], **leads}), "2026-11-18")
        for leads in ({}, {"startEarly": "1h", "stopEarly": "Auto"})
    ]
    assert entries[0] == entries[1]


OFFICE = {"hoursOfDay": ["9-16"], "timezone": "UTC"}


def override(state, begins, until, name="tonight", **spec):
    given = {"machines": ["worker"], "state": state, "from": f"2026-11-18T{begins}:00Z", "until": until, **spec}
    version = "5spot.finos.org/v1alpha1"
    return {"apiVersion": version, "kind": "ScheduleOverride", "metadata": {"name": name}, "spec": given}


def pictured(capsys, tmp_path, *manifests):
    """The bar of one day, and the lines below it."""
    assert main(["preview", written(tmp_path, *manifests), "--from", "2026-11-18", "--days", "1"]) == 0
    _, _, day, *legend = capsys.readouterr().out.splitlines()
    return day[15:63], legend


def test_the_table_shows_what_overrides_add_and_what_they_remove_in_shades_of_their_own(tmp_path, capsys):
    late = override("Open", "16:00", "2026-11-18T20:00:00Z", "late")
    lunch = override("Closed", "12:00", "2026-11-18T13:00:00Z", "lunch")
    bar, legend = pictured(capsys, tmp_path, scheduled(**OFFICE), late, lunch)
    assert bar == "·" * 18 + "█" * 6 + "xx" + "█" * 8 + "▓" * 6 + "·" * 8
    assert legend == ["▓ in service by an override, x out of service by one: lunch, late"]


@pytest.mark.parametrize("output", ["table", "json"])
def test_an_override_that_is_rejected_is_not_passed_over_in_silence(tmp_path, capsys, output):
    wrong = override("Opened", "16:00", "2026-11-18T20:00:00Z")
    assert main(["preview", written(tmp_path, scheduled(**OFFICE), wrong), "-o", output]) == 1
    out, err = capsys.readouterr()
    assert "worker" in out
    first, second = err.splitlines()
    assert first == "ScheduleOverride default/tonight: rejected"
    assert second.startswith('  spec.state: "Opened": must be')


def test_leads_are_those_of_the_overridden_schedule(tmp_path, capsys):
    late = override("Open", "16:00", "2026-11-18T20:00:00Z")
    bar, _ = pictured(capsys, tmp_path, scheduled(**OFFICE, startEarly="30m", stopEarly="1h"), late)
    assert bar == "·" * 17 + "░" + "█" * 16 + "▓" * 4 + "░░" + "·" * 8


def test_no_lead_is_shown_within_a_closed_override(tmp_path, capsys):
    early = override("Closed", "07:00", "2026-11-18T09:00:00Z")
    bar, _ = pictured(capsys, tmp_path, scheduled(**OFFICE, startEarly="1h"), early)
    assert bar == "·" * 18 + "█" * 16 + "·" * 14


def test_overrides_of_other_machines_namespaces_and_states_change_nothing(tmp_path, capsys):
    until = "2026-11-18T20:00:00Z"
    others = override("Open", "16:00", until, machines=["desk-8"])
    elsewhere = override("Open", "16:00", until)
    elsewhere["metadata"]["namespace"] = "another"
    as_ever = override("Scheduled", "08:00", until)
    bar, _ = pictured(capsys, tmp_path, scheduled(**OFFICE), others, elsewhere, as_ever)
    assert bar == "·" * 18 + "█" * 16 + "·" * 14


def test_json_has_the_windows_without_overrides(tmp_path, capsys):
    both = written(tmp_path, scheduled(**OFFICE), override("Open", "16:00", "2026-11-18T20:00:00Z"))
    code, (entry,) = run_json(capsys, "preview", "-f", both, "--from", "2026-11-18", "--days", "1")
    assert (code, entry["windows"]) == (0, [{"opens": "2026-11-18T09:00:00Z", "closes": "2026-11-18T17:00:00Z"}])

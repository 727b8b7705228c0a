"""What commands print of texts that other users wrote."""

from datetime import timedelta

from rich.text import Text

from service.commands.fleet import Details, Occurrence, Scope
from service.commands.machineprinting import output_console, print_details
from service.commands.overrideprinting import show
from service.fleet.overrides import ListedOverride
from service.fleet.summary import Summary
from tests.service.fleet.fleet_overrides import NOON, at, desk_as_stored, stored

HOSTILE = "[/b] \x1b[2J\x1b]8;;http://evil\x07[red]:boom: a\nb"
HARMLESS = "[/b] [2J ]8;;http://evil [red]:boom: a b"
TEAM = Scope("team-a", ())


def test_what_users_write_into_overrides_neither_breaks_nor_paints_the_table(capsys):
    raw = stored("tonight", "Open", at(22), reason=HOSTILE, requestedBy=HOSTILE)
    assert show([ListedOverride.read(raw, NOON)], TEAM, "table") == 0
    _, row = capsys.readouterr().out.splitlines()
    assert row.count(HARMLESS) == 2
    assert row.isprintable()


def test_what_others_write_into_events_and_statuses_is_shown_as_it_is(capsys):
    override = {"name": "tonight", "state": "Open", "until": "2026-03-06T22:00:00Z", "by": HOSTILE}
    raw = {**desk_as_stored(), "status": {"message": HOSTILE, "override": override}}
    event = Occurrence(NOON - timedelta(hours=1), "Note[/i]", HOSTILE, warning=True)
    assert print_details([Details(raw, Summary.read(raw), [event])], TEAM, "table") == 0
    shown = capsys.readouterr().out
    assert shown.count(HARMLESS) == 3
    assert "Note[/i]" in shown
    assert all(line.isprintable() for line in shown.splitlines())


def test_brackets_are_no_markup(capsys):
    with output_console() as console:
        console.print("[bold]:boom:[/nothing]")
        console.print(Text("fin"))
    assert capsys.readouterr().out.splitlines() == ["[bold]:boom:[/nothing]", "fin"]

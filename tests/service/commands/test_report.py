"""What `5spot report` prints: for people, for programs, and as a page."""

import csv
import io
import re
from datetime import timedelta
from html.parser import HTMLParser

import pytest

from crds import names
from service.commands import reports
from service.commands.report_html import page
from service.commands.table import UsageError
from service.fleet.usage import report_of
from tests.service.decide.builders import MONDAY
from tests.service.fleet.test_usage import DAY, MONTH, served_since


def machine(name: str = "desk", cost: str | None = "1.50", records: int = 4):
    raw = served_since(MONDAY + 2 * DAY, records=records)
    raw["metadata"] |= {"name": name}
    if cost:
        raw["metadata"]["annotations"] = {names.ANNOTATION_HOURLY_COST: cost}
    return raw


def made(*raws):
    return report_of(raws or (machine(),), MONTH)


@pytest.mark.parametrize(("text", "days"), [("30d", 30), ("2w", 14), ("12h", 0.5), ("366d", 366)])
def test_since_is_a_number_and_a_unit(text, days):
    assert reports.length(text) == timedelta(days=days)


@pytest.mark.parametrize("text", ["", "30", "d", "0d", "367d", "1m", "-3d", "1.5d", "30d ago", "٣d"])
def test_anything_else_is_wrong_usage(text):
    with pytest.raises(UsageError, match="--since needs a time such as 30d"):
        reports.length(text)


def test_csv_has_a_line_for_each_machine():
    lines = list(csv.DictReader(io.StringIO(reports.as_csv(made(machine("a"), machine("b", cost=None))))))
    assert [(line["name"], line["servedHours"], line["saved"]) for line in lines] == [
        ("a", "35.97", "1020.00"),
        ("b", "35.97", ""),
    ]


def test_csv_without_machines_has_the_same_head_and_no_line():
    head, _, _line = reports.as_csv(made()).partition("\n")
    assert reports.as_csv(report_of([], MONTH)) == f"{head}\n"
    assert head.split(",") == list(made().to_json()["machines"][0])


def test_a_text_that_a_spreadsheet_would_calculate_is_quoted():
    raw = machine()
    raw["spec"]["infrastructureSpec"]["kind"] = "=HYPERLINK(1)"
    (line,) = csv.DictReader(io.StringIO(reports.as_csv(made(raw))))
    assert line["kind"] == "'=HYPERLINK(1)"


def test_nothing_in_an_object_reaches_the_terminal_as_a_command(capsys):
    raw = machine()
    raw["status"]["infrastructureRef"] = {"kind": "\x1b[2J\nRemote" + "x" * 200}
    reports.print_report(made(raw), "table")
    shown = capsys.readouterr().out
    assert r"\x1b[2J\nRemotex" in shown
    assert "\x1b" not in shown
    assert "x" * 100 not in shown


def test_the_table_says_it_in_a_few_lines(capsys):
    assert reports.print_report(made(machine("a"), machine("b")), "table") == 0
    shown = capsys.readouterr().out
    facts = [re.split(r"  +", line) for line in shown.splitlines()]
    assert ["machines", "2"] in facts
    assert ["served", "71.9 h (5.0 %)"] in facts
    assert ["Ready within a minute of the opening", "8 of 8 windows (100.0 %)"] in facts
    assert ["time to Ready, RemoteMachine (p50, p90, p99)", "30 s, 30 s, 30 s of 8"] in facts
    assert re.search(r"team +a +36.0 h +680.0 h +4 +4/4 +0 +1,020.00", shown)


class Links(HTMLParser):
    """Finds everything that a page would fetch, and whether its elements are closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.fetched += [f"{tag} {name}" for name, _ in attrs if name in ("src", "href", "action", "srcset", "data")]
        if tag not in ("meta", "rect"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_startendtag(self, tag, attrs):
        assert tag == "rect"


def test_the_page_stands_alone_and_is_well_formed():
    text = page(made())
    found = Links(text)
    assert (found.fetched, found.open) == ([], [])
    assert not re.search(r"url\(|@import|<script|https?://", text)


def test_the_page_shows_the_totals_and_each_machine():
    text = page(made(machine("a"), machine("b")))
    assert "<dt>Served</dt><dd>72 h <small>5.0 %</small></dd>" in text
    assert "<dt>Ready within a minute</dt><dd>100.0 % <small>8 of 8</small></dd>" in text
    assert text.count('role="img"') == 2


def test_nothing_in_an_object_becomes_markup():
    raw = machine()
    raw["spec"]["infrastructureSpec"]["kind"] = "<script>alert(1)</script>"
    assert "<script" not in page(made(raw))


def test_metrics_know_neither_namespaces_nor_single_machines():
    with pytest.raises(UsageError, match="leave out -n"):
        reports.check_scope("team", "table")
    with pytest.raises(UsageError, match="-o csv"):
        reports.check_scope(None, "csv")

"""The pages in docs/reference are what the code says today."""

from pathlib import Path

from service import reference
from service.commands.root import load
from service.commands.table import COMMANDS


def test_the_pages_in_docs_are_up_to_date(capsys):
    assert reference.main(["--check"]) == 0, capsys.readouterr().err


def test_a_stale_page_is_named_and_left_alone_by_check_and_written_without(tmp_path: Path, capsys):
    assert reference.main(["--check", "--folder", str(tmp_path)]) == 1
    assert "cli.md is out of date; run make generate" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
    assert reference.main(["--folder", str(tmp_path)]) == 0
    assert reference.main(["--check", "--folder", str(tmp_path)]) == 0


def test_every_command_and_every_option_is_on_the_page_of_the_command_line():
    page = reference.command_line()
    for command in (command for command in COMMANDS if command.exists):
        assert f"## 5spot {command.name}\n" in page
        if command.name != "run":
            assert_described(f"5spot {command.name}", load(command.name), page)


def assert_described(title: str, command, page: str) -> None:
    section = page.split(f"# {title}\n")[1].split("\n##", maxsplit=1)[0]
    options = {name for param in command.params for name in param.opts if name.startswith("-")}
    assert {name for name in options if f"`{name}" not in section} == set()
    for name, inner in getattr(command, "commands", {}).items():
        assert_described(f"{title} {name}", inner, page)


def test_a_counter_is_named_as_queries_name_it():
    names = {reference.full_name(metric) for metric in reference.declared()}
    assert {"fivespot_reconciles_total", "fivespot_queue_depth", "fivespot_activation_lateness_seconds"} <= names

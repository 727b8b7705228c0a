import os
import subprocess
import sys
import types
from typing import Annotated, Any

import pytest
import typer

from service.cli import main
from service.commands import table, verdicts
from service.commands.table import COMMANDS, Command, UsageError


def command(monkeypatch: pytest.MonkeyPatch, *, own_parser: bool = False, **names: Any) -> None:
    """Makes `5spot try` run a command whose module has these names."""
    module = types.ModuleType("service.commands.attempt")
    vars(module).update(names)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(table, "find_spec", lambda _name: object())
    monkeypatch.setattr(table, "COMMANDS", (Command("try", module.__name__, "Try it.", own_parser=own_parser),))


def returning_the_count() -> typer.Typer:
    app = typer.Typer(add_completion=False)

    @app.command()
    def attempt(count: Annotated[int, typer.Option()] = 0) -> int:
        return count

    return app


def failing(error: BaseException) -> typer.Typer:
    app = typer.Typer(add_completion=False)

    @app.command()
    def attempt() -> int:
        raise error

    return app


def plain(text: str) -> str:
    """What a person reads of Rich's output: words, without frames and line breaks."""
    return " ".join("".join(char if char not in "│╭╮╰╯─" else " " for char in text).split())


def test_the_overview_lists_every_command_that_is_there(capsys: pytest.CaptureFixture[str]):
    assert main(["--help"]) == 0
    shown = plain(capsys.readouterr().out)
    for each in COMMANDS:
        assert (f"{each.name} {each.summary}" in shown) == each.exists
    assert "run" in shown


@pytest.mark.parametrize("flag", ["-h", "--help"])
@pytest.mark.parametrize("name", [each.name for each in COMMANDS if each.exists])
def test_every_command_explains_itself_with_examples(name: str, flag: str, capsys: pytest.CaptureFixture[str]):
    assert main([name, flag]) == 0
    shown = capsys.readouterr().out
    assert f"Usage: 5spot {name}" in shown
    assert f"5spot {name}" in shown.partition("Example")[2]


@pytest.mark.parametrize("name", [each.name for each in COMMANDS if each.exists])
def test_no_help_loses_text_on_a_narrow_terminal(name: str):
    environment = os.environ | {"COLUMNS": "80"}
    shown = subprocess.run(
        [sys.executable, "-m", "service", name, "--help"], capture_output=True, text=True, check=True, env=environment
    )
    cut = [line for line in shown.stdout.splitlines() if line.rstrip(" │").endswith("…")]
    assert cut == []
    assert max(map(len, shown.stdout.splitlines())) <= 82


def test_an_unknown_command_is_named_with_the_one_that_is_meant(capsys: pytest.CaptureFixture[str]):
    assert main(["sprint"]) == 2
    assert capsys.readouterr().err == "5spot: No such command 'sprint'. Try '5spot --help'.\n"
    assert main(["valdate"]) == 2
    assert "Did you mean 'validate'?" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["validate", "--nmae", "x"], ["run", "--nmae", "x"], ["agent", "--nmae"]])
def test_an_unknown_option_is_named(words: list[str], capsys: pytest.CaptureFixture[str]):
    code = exit_code(words)
    assert code == 2
    assert "--nmae" in capsys.readouterr().err


def exit_code(words: list[str]) -> Any:
    """How the process ends: argparse, which the operator and the agent use, raises SystemExit."""
    try:
        return main(words)
    except SystemExit as ended:
        return ended.code


def test_an_option_without_its_value_leads_to_the_help_of_its_command(capsys: pytest.CaptureFixture[str]):
    assert main(["adopt", "-n"]) == 2
    assert capsys.readouterr().err == "5spot: Option '-n' requires an argument. Try '5spot adopt --help'.\n"


def test_an_abbreviated_option_is_refused(capsys: pytest.CaptureFixture[str]):
    assert main(["release", "--dry"]) == 2
    assert "No such option: --dry" in capsys.readouterr().err


def test_no_command_at_all_shows_the_overview(capsys: pytest.CaptureFixture[str]):
    assert main([]) == 2
    assert "Usage: 5spot" in capsys.readouterr().out


def test_a_group_without_a_command_shows_its_commands(capsys: pytest.CaptureFixture[str]):
    assert main(["local"]) == 2
    assert "Usage: 5spot local" in capsys.readouterr().out


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("5spot ")


def loaded_by(*words: str) -> set[str]:
    """The heavy libraries that are in memory after a command line."""
    heavy = "'pydantic fastapi uvicorn kubernetes_asyncio aiohttp cryptography structlog yaml asyncio rich typer'"
    script = (
        "import sys, contextlib, io\n"
        "from service.cli import main\n"
        "with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):\n"
        f"    main({list(words)!r}) if {bool(words)} else None\n"
        f"print(*sorted(set({heavy}.split()) & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_the_program_itself_needs_no_library():
    assert loaded_by() == set()


@pytest.mark.parametrize("name", ["validate", "preview", "demo", "completion"])
def test_help_needs_only_what_prints_it(name: str):
    assert loaded_by(name, "--help") <= {"rich", "typer"}


@pytest.mark.parametrize("name", ["adopt", "release"])
def test_help_does_not_wait_for_the_client(name: str):
    assert loaded_by(name, "--help") <= {"rich", "typer", "asyncio"}


def test_the_agent_runs_without_typer():
    assert loaded_by("agent", "--node", "x") == set()


def test_the_operator_runs_without_typer():
    assert loaded_by("run", "--workers", "none") & {"rich", "typer"} == set()


def test_a_command_gets_its_arguments_and_returns_its_exit_code(monkeypatch: pytest.MonkeyPatch):
    command(monkeypatch, app=returning_the_count())
    assert main(["try", "--count", "3"]) == 3


def test_a_command_with_its_own_parser_gets_the_words(monkeypatch: pytest.MonkeyPatch):
    command(monkeypatch, own_parser=True, main=len)
    assert main(["try", "a", "b"]) == 2


def test_wrong_usage_exits_2_with_a_sentence(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    command(monkeypatch, app=failing(UsageError("name a file")))
    assert main(["try"]) == 2
    assert capsys.readouterr().err == "5spot: name a file\n"


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (ValueError("the file\nis odd"), "5spot: the file is odd\n"),
        (FileNotFoundError(2, "No such file or directory", "x.yaml"), "5spot: x.yaml: No such file or directory\n"),
        (OSError(28, "No space left on device"), "5spot: No space left on device\n"),
        (KeyError(), "5spot: KeyError\n"),
        (
            ExceptionGroup("both", [ValueError("one"), ExceptionGroup("x", [ValueError("two")])]),
            "5spot: one\n5spot: two\n",
        ),
    ],
)
def test_an_error_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: Exception, says: str
):
    monkeypatch.delenv(table.DEBUG_VARIABLE, raising=False)
    command(monkeypatch, app=failing(error))
    assert main(["try"]) == 1
    assert capsys.readouterr().err == says


@pytest.mark.parametrize("name", ["validate", "preview"])
def test_a_crash_of_a_command_that_judges_is_no_verdict(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
):
    def crash(*_arguments: object, **_options: object) -> None:
        raise TypeError("unhashable")

    monkeypatch.setattr(verdicts, "judge_all", crash)
    assert main([name, "-f", "-"]) == table.CRASHED
    assert capsys.readouterr() == ("", "5spot: unhashable\n")


def test_a_traceback_is_shown_on_request(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setenv(table.DEBUG_VARIABLE, "1")
    command(monkeypatch, app=failing(ValueError("odd")))
    main(["try"])
    assert "Traceback" in capsys.readouterr().err


def test_ctrl_c_is_quiet(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    command(monkeypatch, app=failing(KeyboardInterrupt()))
    assert main(["try"]) == 130
    assert capsys.readouterr() == ("", "")


def into_a_closed_pipe(*words: str) -> subprocess.CompletedProcess[bytes]:
    """The program, writing to a pipe whose reader has ended."""
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as pipe:
        command = [sys.executable, "-m", "service", *words]
        return subprocess.run(command, stdout=pipe, stderr=subprocess.PIPE, check=False)


@pytest.mark.parametrize(
    "words", [["--help"], ["validate", "-f", "examples/office-hours.yaml", "-o", "json"], ["run", "--help"]]
)
def test_a_closed_pipe_ends_it_quietly_with_a_code_of_its_own(words: list[str]):
    ended = into_a_closed_pipe(*words)
    assert (ended.stderr, ended.returncode) == (b"", table.BROKEN_PIPE)

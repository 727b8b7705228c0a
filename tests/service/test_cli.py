import os
import subprocess
import sys
import types
from typing import Any

import pytest

from service import cli
from service.cli import COMMANDS, Command, main
from service.commands import preview, validate


def command(monkeypatch: pytest.MonkeyPatch, **functions: Any) -> None:
    """Makes `5spot try` run a command that consists of these functions."""
    module = types.ModuleType("service.commands.attempt")
    vars(module).update(functions)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(cli, "find_spec", lambda _name: object())
    monkeypatch.setattr(cli, "COMMANDS", (Command("try", module.__name__, "try something"),))


def register(subparsers: Any) -> None:
    subparsers.add_parser("try").add_argument("--count", type=int, default=0)


def failing(error: BaseException) -> Any:
    def run(_args: object) -> int:
        raise error

    return run


def test_the_overview_lists_every_command_that_is_there(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    for each in COMMANDS:
        assert (each.summary.split(",")[0] in " ".join(shown.split())) == each.exists
    assert "run" in shown


@pytest.mark.parametrize("name", [each.name for each in COMMANDS if each.exists])
def test_every_command_explains_itself(name: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as ended:
        main([name, "--help"])
    assert ended.value.code == 0
    assert f"usage: 5spot {name}" in capsys.readouterr().out


def test_an_unknown_command_is_named_with_those_there_are(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as ended:
        main(["sprint"])
    assert ended.value.code == 2
    assert "invalid choice: 'sprint'" in capsys.readouterr().err


def test_no_command_at_all_shows_the_overview(capsys: pytest.CaptureFixture[str]):
    assert main([]) == 2
    assert "usage: 5spot" in capsys.readouterr().out


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out.startswith("5spot ")


def test_only_the_module_of_the_command_is_imported():
    heavy = ("pydantic", "fastapi", "uvicorn", "kubernetes_asyncio", "aiohttp", "cryptography", "structlog", "yaml")
    script = f"import sys, service.cli; print([m for m in {heavy} if m in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


def test_a_command_gets_its_arguments_and_says_how_it_ended(monkeypatch: pytest.MonkeyPatch):
    command(monkeypatch, register=register, run=lambda args: args.count)
    assert main(["try", "--count", "3"]) == 3


def test_a_command_may_name_its_own_handler(monkeypatch: pytest.MonkeyPatch):
    def registering(subparsers: Any) -> None:
        subparsers.add_parser("try").set_defaults(run=lambda _args: 7)

    command(monkeypatch, register=registering)
    assert main(["try"]) == 7


def test_a_command_with_a_parser_of_its_own_gets_the_words(monkeypatch: pytest.MonkeyPatch):
    command(monkeypatch, main=len)
    assert main(["try", "a", "b"]) == 2


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
    monkeypatch.delenv(cli.DEBUG_VARIABLE, raising=False)
    command(monkeypatch, register=register, run=failing(error))
    assert main(["try"]) == 1
    assert capsys.readouterr().err == says


@pytest.mark.parametrize("name", ["validate", "preview"])
def test_a_crash_of_a_command_that_judges_is_no_verdict(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
):
    def crash(_files: object, _arguments: object) -> None:
        raise TypeError("unhashable")

    monkeypatch.setattr(validate, "judge_all", crash)
    monkeypatch.setattr(preview, "judge_all", crash)
    assert main([name, "-f", "-"]) == cli.CRASHED
    assert capsys.readouterr() == ("", "5spot: unhashable\n")


def test_a_traceback_is_shown_on_request(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setenv(cli.DEBUG_VARIABLE, "1")
    command(monkeypatch, register=register, run=failing(ValueError("odd")))
    main(["try"])
    assert "Traceback" in capsys.readouterr().err


def test_ctrl_c_is_quiet(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    command(monkeypatch, register=register, run=failing(KeyboardInterrupt()))
    assert main(["try"]) == 130
    assert capsys.readouterr() == ("", "")


def unheard(*words: str) -> subprocess.CompletedProcess[bytes]:
    """The program, writing to a pipe that nobody reads from."""
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as pipe:
        command = [sys.executable, "-m", "service", *words]
        return subprocess.run(command, stdout=pipe, stderr=subprocess.PIPE, check=False)


def test_a_reader_that_stopped_reading_is_no_reason_to_complain():
    assert unheard("--help").stderr == b""


def test_a_verdict_that_nobody_heard_is_neither_good_nor_bad():
    ended = unheard("validate", "-f", "examples/office-hours.yaml", "-o", "json")
    assert (ended.stderr, ended.returncode) == (b"", cli.UNHEARD)

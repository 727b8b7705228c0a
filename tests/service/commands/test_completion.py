"""What a shell gets when a user presses Tab."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from service.cli import main
from service.commands.table import COMMANDS, COMPLETE_VARIABLE

HERE = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


def completed(*words: str) -> list[str]:
    """What bash offers for the last word, by the script that a user would load."""
    line = " ".join(f"'{word}'" for word in words)
    script = (
        "source <(5spot completion bash)\n"
        f"COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}\n"
        '_5spot_completion 5spot; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True, env=HERE)
    assert done.stderr == ""
    return done.stdout.split()


def test_bash_completes_commands():
    assert completed("5spot", "") == [each.name for each in COMMANDS if each.exists]
    assert completed("5spot", "va") == ["validate"]
    assert completed("5spot", "local", "") == ["up", "status", "env", "down"]


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("validate", "--out"), ["--output"]),
        (("validate", "-o", ""), ["text", "json"]),
        (("release", "--operator"), ["--operator-namespace"]),
        (("run", "--log"), ["--log-level", "--log-format"]),
        (("run", "--log-level", ""), ["debug", "info", "warning", "error"]),
        (("agent", "--source", "po"), ["polling"]),
    ],
)
def test_bash_completes_options_and_values_of_every_kind_of_command(words: tuple[str, ...], offered: list[str]):
    assert completed("5spot", *words) == offered


def test_bash_is_left_to_complete_files():
    assert completed("5spot", "validate", "exa") == []
    assert completed("5spot", "run", "--kubeconfig", "") == []


def answered(shell: str, words: str, **variables: str) -> str:
    """What the program answers the script of a shell that may not be on this machine."""
    asked = {COMPLETE_VARIABLE: f"complete_{shell}", "_TYPER_COMPLETE_ARGS": words, **variables}
    command = [sys.executable, "-m", "service"]
    return subprocess.run(command, capture_output=True, text=True, check=True, env={**HERE, **asked}).stdout


def test_zsh_and_fish_get_the_descriptions_too():
    assert '"validate":"Check manifests offline' in answered("zsh", "5spot val")
    fish = answered("fish", "5spot val", _TYPER_COMPLETE_FISH_ACTION="get-args")
    assert fish.startswith("validate\tCheck manifests offline")


@pytest.mark.parametrize(("shell", "says"), [("bash", "complete "), ("zsh", "#compdef 5spot"), ("fish", "complete ")])
def test_each_shell_gets_a_script_of_its_own(shell: str, says: str, capsys: pytest.CaptureFixture[str]):
    assert main(["completion", shell]) == 0
    assert says in capsys.readouterr().out


def test_another_shell_is_refused_with_those_there_are(capsys: pytest.CaptureFixture[str]):
    assert main(["completion", "csh"]) == 2
    assert "'csh' is not one of 'bash', 'zsh', 'fish'" in capsys.readouterr().err

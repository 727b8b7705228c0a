"""The `5spot` command: runs the subcommand asked for, and turns each error into a sentence and an exit code.

Only the module of that subcommand is imported, and Typer only for commands that use it: see `service.commands.root`.
"""

import io
import os
import sys
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Final

PROGRAM: Final = "5spot"
DEBUG_VARIABLE: Final = "FIVESPOT_DEBUG"
COMPLETE_VARIABLE: Final = "_5SPOT_COMPLETE"
"""A shell sets it to ask for completions; the script that `5spot completion` prints does so."""
HELP_FLAGS: Final = ("-h", "--help")
FAILED: Final = 1
WRONG_USAGE: Final = 2
CRASHED: Final = 70
"""The `EX_SOFTWARE` of sysexits.h, for commands whose exit code 1 is a verdict."""
INTERRUPTED: Final = 130
BROKEN_PIPE: Final = 141
"""What a shell reports for a program that SIGPIPE ended: 128 and the signal's number."""


class UsageError(Exception):
    """The arguments do not say what to do; the message says what to write instead."""


@dataclass(frozen=True, slots=True)
class Command:
    """A subcommand: its module, its line in the overview, and its exit code after an error.

    The module has `app`, a `typer.Typer`. One with its own argparse parser has `parser()` and `main(argv)` instead: the
    agent and the operator run for months and need no Typer in memory.
    """

    name: str
    module: str
    summary: str
    failed: int = FAILED
    own_parser: bool = False

    @property
    def exists(self) -> bool:
        """Whether the module is part of this installation."""
        return find_spec(self.module) is not None


COMMANDS: Final = (
    Command("run", "service.commands.run", "Run the operator: webhooks, controller, health, metrics.", own_parser=True),
    Command("agent", "agent.__main__", "Run the agent that requests emergency reclaim of its Node.", own_parser=True),
    Command("preview", "service.commands.preview", "Show when the windows of a schedule open and close.", CRASHED),
    Command("validate", "service.commands.validate", "Check manifests offline, with the webhook's rules.", CRASHED),
    Command("adopt", "service.commands.adopt", "Reconnect restored ScheduledMachines to their Machines."),
    Command("release", "service.commands.release", "Remove the operator's finalizers after it is uninstalled."),
    Command("local", "local.cli", "Start, show or stop a throw-away control plane on this machine."),
    Command("demo", "local.demo", "Watch four schedules at work on a throw-away control plane."),
    Command("completion", "service.commands.completion", "Print the completion script for bash, zsh or fish."),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line and returns the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    _escape_unprintable_output()
    try:
        return _flushed(words)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        return _broken_pipe()
    except UsageError as error:
        _print_error(error)
        return WRONG_USAGE
    except Exception as error:  # noqa: BLE001 - the outermost border: a user gets a sentence, not a traceback
        _print_error(error)
        chosen = chosen_command(words)
        return chosen.failed if chosen else FAILED


def chosen_command(words: Sequence[str]) -> Command | None:
    """The command that the first word names."""
    return next((command for command in COMMANDS if words and command.name == words[0] and command.exists), None)


def _dispatch(words: list[str]) -> int:
    chosen = chosen_command(words)
    if chosen and chosen.own_parser and not _needs_typer(words):
        return int(import_module(chosen.module).main(words[1:]) or 0)
    from service.commands import root  # noqa: PLC0415 - the agent and the operator do not need Typer

    return root.run(words)


def _needs_typer(words: list[str]) -> bool:
    return COMPLETE_VARIABLE in os.environ or not set(words).isdisjoint(HELP_FLAGS)


def _escape_unprintable_output() -> None:
    # Manifests hold any character, and some terminals and pipes take ASCII only: escape instead of failing halfway.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _flushed(words: list[str]) -> int:
    try:
        return _dispatch(words)
    except SystemExit as ended:
        # Rich, which prints the help, answers a closed pipe with SystemExit(1).
        if isinstance(ended.__context__, BrokenPipeError):
            raise BrokenPipeError from None
        raise
    finally:
        # A closed pipe must show here, where it is handled, and not while the interpreter shuts down.
        sys.stdout.flush()


def _broken_pipe() -> int:
    # Python flushes the rest of the buffer at exit, and would raise again: send it to the null device.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return BROKEN_PIPE


def _print_error(error: Exception) -> None:
    if os.environ.get(DEBUG_VARIABLE):
        traceback.print_exception(error)
    for sentence in sentences(error):
        print(f"{PROGRAM}: {sentence}", file=sys.stderr)


def sentences(error: BaseException) -> list[str]:
    """What went wrong, for people; an exception group has one sentence for each of its errors."""
    return [_sentence(leaf) for leaf in _leaves(error)]


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error


def _sentence(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    text = " ".join(str(error).split())
    return text or type(error).__name__

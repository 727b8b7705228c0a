"""The `5spot` command: finds the subcommand asked for and imports nothing but that.

A command's module has `register(subparsers)`, which adds its parser, and `run(args) -> int`. One that keeps its own
parser, as the agent does, has `main(argv) -> int` instead.
"""

import argparse
import io
import os
import sys
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any, Final

from service import __version__

PROGRAM: Final = "5spot"
DEBUG_VARIABLE: Final = "FIVESPOT_DEBUG"
FAILED: Final = 1
CRASHED: Final = 70
"""The `EX_SOFTWARE` of sysexits.h, for commands whose exit code 1 is a verdict."""
INTERRUPTED: Final = 130
UNHEARD: Final = 141
"""What a shell says of a program that nobody listened to any more: 128 and SIGPIPE."""


@dataclass(frozen=True, slots=True)
class Command:
    """A subcommand: where it lives, what the overview says of it, and how it exits after an error."""

    name: str
    module: str
    summary: str
    failed: int = FAILED

    @property
    def exists(self) -> bool:
        """Whether the module is part of this installation."""
        return find_spec(self.module) is not None


COMMANDS: Final = (
    Command("run", "service.commands.run", "run the operator: webhooks, controller, health and metrics"),
    Command("agent", "agent.__main__", "run the node-side agent that asks for emergency reclaim"),
    Command("preview", "service.commands.preview", "show the windows of a manifest's schedule", CRASHED),
    Command(
        "validate", "service.commands.validate", "judge manifests as the admission webhook would, offline", CRASHED
    ),
    Command("adopt", "service.commands.adopt", "give a restored ScheduledMachine its Machine back"),
    Command("release", "service.commands.release", "drop the finalizers of this operator, once it is uninstalled"),
    Command("local", "local.cli", "start, stop or show a throw-away control plane on this machine"),
    Command("demo", "local.demo", "watch a schedule at work on a throw-away control plane"),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line and answers the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    _escape_what_cannot_be_shown()
    try:
        return _flushing(words)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _silence_stdout()
        return UNHEARD
    except Exception as error:  # noqa: BLE001 - the outermost border: a user gets a sentence, not a traceback
        _explain(error)
        chosen = _chosen(words)
        return chosen.failed if chosen else FAILED


def _chosen(words: list[str]) -> Command | None:
    return next((command for command in COMMANDS if words and command.name == words[0] and command.exists), None)


def _dispatch(words: list[str]) -> int:
    chosen = _chosen(words)
    if chosen is None:
        return _overview(words)
    module = import_module(chosen.module)
    if not hasattr(module, "register"):
        return int(module.main(words[1:]) or 0)
    parser = root_parser()
    module.register(parser.add_subparsers(dest="command", metavar="COMMAND", required=True))
    return _run(module, parser.parse_args(words))


def _run(module: ModuleType, args: argparse.Namespace) -> int:
    handler = getattr(args, "run", None)
    return int((handler if callable(handler) else module.run)(args) or 0)


def _overview(words: list[str]) -> int:
    parser = root_parser()
    subparsers: Any = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands", required=True)
    for command in COMMANDS:
        if command.exists:
            subparsers.add_parser(command.name, help=command.summary, add_help=False)
    if not words:
        parser.print_help()
        return 2
    parser.parse_args(words)
    return 2


def root_parser() -> argparse.ArgumentParser:
    """What all commands hang on."""
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        description="Adds machines to Cluster API clusters on schedule, and takes them out again gracefully.",
        epilog=f"`{PROGRAM} COMMAND --help` explains a command. {DEBUG_VARIABLE}=1 shows tracebacks.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    return parser


def _escape_what_cannot_be_shown() -> None:
    # Manifests hold any character, terminals and pipes may know ASCII only; an error halfway would help nobody.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _flushing(words: list[str]) -> int:
    try:
        return _dispatch(words)
    finally:
        # A closed pipe must show here, where it is handled, and not while the interpreter shuts down.
        sys.stdout.flush()


def _silence_stdout() -> None:
    # What is still buffered would raise once more at exit; give it somewhere to go.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _explain(error: Exception) -> None:
    if os.environ.get(DEBUG_VARIABLE):
        traceback.print_exception(error)
    for sentence in sentences(error):
        print(f"{PROGRAM}: {sentence}", file=sys.stderr)


def sentences(error: BaseException) -> list[str]:
    """What went wrong, for people; a group has one for each of its errors."""
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

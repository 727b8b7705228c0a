"""The `5spot` command: runs the subcommand asked for, and turns each error into a sentence and an exit code.

Only the module of that subcommand is imported, and Typer only for commands that use it: see `service.commands.root`.
"""

import io
import os
import sys
import traceback
from collections.abc import Iterator, Sequence
from importlib import import_module

from service.commands.table import (
    BROKEN_PIPE,
    COMPLETE_VARIABLE,
    DEBUG_VARIABLE,
    FAILED,
    HELP_FLAGS,
    INTERRUPTED,
    PROGRAM,
    WRONG_USAGE,
    UsageError,
    chosen_command,
)
from service.imports import without_collection


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


def _dispatch(words: list[str]) -> int:
    chosen = chosen_command(words)
    if chosen and chosen.own_parser and not _needs_typer(words):
        with without_collection():
            command = import_module(chosen.module)
        return int(command.main(words[1:]) or 0)
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

"""The Typer group of all commands; it imports the module of a command only when that command is asked for."""

import argparse
import inspect
import os
import sys
from importlib import import_module
from typing import Annotated, Any, Final

import typer
from typer.completion import get_completion_inspect_parameters, shell_complete
from typer.core import TyperCommand, TyperGroup

from service import __version__
from service.commands import table
from service.commands.help import PlainCommand, ReadableGroup, show_help
from service.commands.table import COMPLETE_VARIABLE, HELP_FLAGS, PROGRAM, Command, UsageError

EPILOG: Final = """
Exit codes:
  0    success
  1    failure
  2    wrong usage
  130  stopped by Ctrl-C
  141  the program that reads the output has ended
Some commands have more; their help lists them.

Examples:
  5spot validate machines/    check all manifests in a directory
  5spot preview desk-7.yaml   show the next seven days of a schedule
  5spot demo                  watch machines come and go, without a cluster

`5spot COMMAND --help` describes a command. FIVESPOT_DEBUG=1 prints tracebacks."""


class LazyGroup(ReadableGroup):
    """A group whose overview knows one line of each command, and which loads a command to run or complete it."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """The command that the first word names, imported now."""
        name, found, rest = super().resolve_command(ctx, args)
        return name, found and load(args[0]), rest


def run(words: list[str]) -> int:
    """Runs the words of a command line, or answers a shell that asks for completions."""
    if instruction := os.environ.get(COMPLETE_VARIABLE):
        return complete(instruction)
    group = root()
    try:
        with group.make_context(PROGRAM, words) as context:
            return int(group.invoke(context) or 0)
    except typer.Exit as ended:
        return ended.exit_code
    except typer.TyperException as error:
        raise UsageError(_explained(error, words)) from error


def complete(instruction: str) -> int:
    """Does what a shell's completion asks for: `source_bash` prints the script, `complete_bash` the next words."""
    get_completion_inspect_parameters()  # registers the shells
    return shell_complete(root(), {}, PROGRAM, COMPLETE_VARIABLE, instruction)


def root() -> TyperGroup:
    """The group with a line for each command."""
    app = typer.Typer(
        name=PROGRAM,
        cls=LazyGroup,
        add_completion=False,
        epilog=EPILOG,
        invoke_without_command=True,
        subcommand_metavar="COMMAND",
        context_settings={"help_option_names": list(HELP_FLAGS)},
    )
    app.callback()(_overview)
    group = typer.main.get_group(app)
    for command in table.COMMANDS:
        if command.exists:
            group.add_command(TyperCommand(command.name, short_help=command.summary))
    return group


def load(name: str) -> Any:
    """A command with all its options."""
    command = next(command for command in table.COMMANDS if command.name == name)
    module = import_module(command.module)
    app = _described(command, module.parser()) if command.own_parser else module.app
    loaded = typer.main.get_command(app)
    loaded.name = name
    return loaded


def _overview(
    context: typer.Context,
    *,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    """Adds machines to Cluster API clusters on schedule, and removes them gracefully."""
    if version:
        sys.stdout.write(f"{PROGRAM} {__version__}\n")
        raise typer.Exit
    if context.invoked_subcommand is None:
        show_help(context)


def _explained(error: typer.TyperException, words: list[str]) -> str:
    message = error.format_message().replace("Value error, ", "")
    context: typer.Context | None = getattr(error, "ctx", None)
    path = context.command_path if context else f"{PROGRAM} {words[0]}"
    end = "" if message.endswith((".", "?")) else "."
    return f"{message}{end} Try '{path} --help'."


def _described(command: Command, parser: argparse.ArgumentParser) -> typer.Typer:
    """A command with its own parser, described to Typer for help and completion; it does not run through Typer."""

    def never(**_: Any) -> None:
        raise UsageError(f"try '{PROGRAM} {command.name} --help'")

    options = [_option(action) for action in parser._actions if action.dest != "help"]  # noqa: SLF001 - no other way
    never.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    app = typer.Typer(add_completion=False, rich_markup_mode=None)  # Rich cuts long words, such as names of variables
    app.command(cls=PlainCommand, help=parser.description, epilog=parser.epilog)(never)
    return app


def _option(action: argparse.Action) -> inspect.Parameter:
    metavar = str(action.metavar or "|".join(action.choices or ()))
    option = typer.Option(
        *action.option_strings,
        metavar=metavar,
        help=(action.help or "") % {"default": action.default},
        show_default=False,
        autocompletion=lambda: metavar.split("|") if "|" in metavar else [],
    )
    kind: Any = bool if action.nargs == 0 else str
    name = action.option_strings[0].lstrip("-").replace("-", "_")
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[kind, option])

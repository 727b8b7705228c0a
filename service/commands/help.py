"""How the help texts of all commands are laid out. Rich prints them: a `[` in text must be escaped for it."""

from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from service.commands.table import WRONG_USAGE


class ReadableCommand(TyperCommand):
    """A command whose help shows only the types that help a reader."""

    def get_params(self, ctx: Any) -> list[Any]:
        """All parameters, `--help` too."""
        return _readable(super().get_params(ctx))


class ReadableGroup(TyperGroup):
    """A group of such commands."""

    def get_params(self, ctx: Any) -> list[Any]:
        """All parameters, `--help` too."""
        return _readable(super().get_params(ctx))


class PlainCommand(ReadableCommand):
    """A command whose help has an epilog with lines of their own, printed without Rich."""

    def format_epilog(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - Click's signature
        """Writes the epilog as it is."""
        if self.epilog:
            formatter.write(f"\n{self.epilog.strip()}\n")


def _readable(params: list[Any]) -> list[Any]:
    for param in params:
        if param.param_type_name == "argument" and param.nargs != 1:
            param.display_type_rich = lambda ctx: None  # noqa: ARG005 - instead of "<list[str]>"
        if getattr(param, "is_flag", False):
            param.metavar = ""
            param.default = param.default or False  # Typer imports pydantic to convert None
    return params


def paragraphs(text: str) -> str:
    """Text whose lines flow together; a blank line separates paragraphs."""
    return literal("\n\n".join(" ".join(part.split()) for part in text.strip().split("\n\n")))


def literal(text: str) -> str:
    """Text in which nothing is Rich's markup."""
    return text.replace("[", r"\[")


def show_help(context: typer.Context) -> None:
    """Prints the help of a group that was called without a command, and exits as for wrong usage."""
    typer.echo(context.get_help(), nl=False)
    raise typer.Exit(WRONG_USAGE)

"""Reference pages made from the code: command line, settings, metrics. `python -m service.reference [--check]`.

The pages are kept in docs/reference; a test compares them with what this module makes.
"""

import argparse
import inspect
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Final

from prometheus_client.metrics import MetricWrapperBase

from agent.settings import build_parser as agent_parser
from service import metrics, settings
from service.cli import COMMANDS, Command, root_parser

FOLDER: Final = Path(__file__).resolve().parent.parent / "docs" / "reference"
_MADE: Final = "<!-- Made by `python -m service.reference` from the code. Do not edit. -->\n"
_CLI: Final = f"""\
{_MADE}# Command line

`5spot` is one program. It exits with 0 when all went well, 1 when something failed, 2 when it was called wrongly, 130
after Ctrl-C, 141 when nobody reads what it prints; where a command has further codes, its description names them.
`5spot --version` prints the version.
"""
_METRICS: Final = f"""\
{_MADE}# Metrics

Served at `/metrics` on port 8080, in the formats of Prometheus and OpenMetrics. [Monitoring](../monitoring.md) tells
which of them to watch, and what to do. Beside these there are `fivespot_process_*` (processor time, memory, open files)
and Python's own `python_*`. A histogram has the series `_bucket`, `_sum` and `_count`.

"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the pages, or with `--check` only say which are out of date."""
    parser = argparse.ArgumentParser(prog="python -m service.reference", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a page is out of date")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where the pages are")
    options = parser.parse_args(arguments)
    stale = [(path, text) for path, text in made(options.folder) if _read(path) != text]
    for path, text in stale:
        if options.check:
            sys.stderr.write(f"{path.name} is out of date; run python -m service.reference\n")
        else:
            path.write_text(text, encoding="utf-8")
    return 1 if stale and options.check else 0


def made(folder: Path) -> Iterator[tuple[Path, str]]:
    """Each page with its content."""
    yield folder / "cli.md", command_line()
    yield folder / "settings.md", _MADE + settings.reference()
    yield folder / "metrics.md", _METRICS + "\n".join(_metric_rows()) + "\n"


def command_line() -> str:
    """The page of all commands."""
    return "\n".join([_CLI, *(section for command in COMMANDS if command.exists for section in _sections(command))])


def _sections(command: Command) -> Iterator[str]:
    yield f"## 5spot {command.name}\n"
    if command.name == "run":
        yield "Runs the operator: admission webhooks, controller, health and metrics in one process. Its flags are the"
        yield "[settings](settings.md).\n"
        return
    parser = parser_of(command)
    yield from _described(parser)
    for name, inner in subcommands(parser).items():
        yield f"### 5spot {command.name} {name}\n"
        yield from _described(inner)


def parser_of(command: Command) -> argparse.ArgumentParser:
    """The parser of one command, as the command line uses it."""
    if command.name == "agent":
        return agent_parser({})
    root = root_parser()
    import_module(command.module).register(root.add_subparsers())
    return subcommands(root)[command.name]


def subcommands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The parsers below one, by name."""
    groups = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))  # noqa: SLF001
    return {name: inner for group in groups for name, inner in group.choices.items()}


def _described(parser: argparse.ArgumentParser) -> Iterator[str]:
    yield f"{_paragraphs(parser.description)}\n"
    rows = list(_options(parser))
    if rows:
        yield "| option | meaning |\n|---|---|"
        yield "\n".join(rows) + "\n"
    if parser.epilog and parser.formatter_class is argparse.RawDescriptionHelpFormatter:
        yield f"```text\n{parser.epilog}\n```\n"
    elif parser.epilog:
        yield f"{_flowing(parser.epilog)}\n"


def _options(parser: argparse.ArgumentParser) -> Iterator[str]:
    formatter = argparse.HelpFormatter(parser.prog)
    for action in parser._actions:  # noqa: SLF001 - argparse has no other way to list them
        if isinstance(action, argparse._HelpAction | argparse._SubParsersAction):  # noqa: SLF001
            continue
        value = formatter._metavar_formatter(action, action.dest.upper())(1)[0] if action.nargs != 0 else ""  # noqa: SLF001
        names = ", ".join(f"`{f'{name} {value}'.strip()}`" for name in action.option_strings or ("",))
        needed = " Required." if action.required and action.option_strings else ""
        yield f"| {names} | {_cell(formatter._expand_help(action))}{needed} |"  # noqa: SLF001


def _metric_rows() -> Iterator[str]:
    yield "| metric | type | labels | meaning |\n|---|---|---|---|"
    for metric in sorted(declared(), key=full_name):
        (told,) = metric.describe()
        labels = ", ".join(f"`{label}`" for label in metric._labelnames)  # noqa: SLF001 - not told otherwise
        yield f"| `{full_name(metric)}` | {told.type} | {labels} | {_cell(told.documentation)} |"


def declared() -> list[MetricWrapperBase]:
    """Every metric of the service."""
    return [found for _, found in inspect.getmembers(metrics) if isinstance(found, MetricWrapperBase)]


def full_name(metric: MetricWrapperBase) -> str:
    """As a query names it."""
    (told,) = metric.describe()
    return f"{told.name}_total" if told.type == "counter" else str(told.name)


def _paragraphs(text: str | None) -> str:
    return "\n\n".join(_flowing(part) for part in (text or "").split("\n\n"))


def _flowing(text: str | None) -> str:
    # An angle bracket outside of back-ticks would begin a tag.
    return " ".join((text or "").split()).replace("<", "&lt;")


def _cell(text: str) -> str:
    return _flowing(text).removesuffix(".").replace("|", "\\|") + "."


def _read(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.exists() else None


if __name__ == "__main__":
    sys.exit(main())

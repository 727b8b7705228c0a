"""Reference pages made from the code: command line, settings, metrics. `python -m service.reference [--check]`.

The pages are kept in docs/reference; a test compares them with what this module makes.
"""

import argparse
import inspect
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from prometheus_client.metrics import MetricWrapperBase

from service import metrics, settings
from service.commands.root import load
from service.commands.table import COMMANDS, Command

FOLDER: Final = Path(__file__).resolve().parent.parent / "docs" / "reference"
_MADE: Final = "<!-- Made by `python -m service.reference` from the code. Do not edit. -->\n"
_CLI: Final = f"""\
{_MADE}# Command line

`5spot` is one program. It exits with 0 after success, 1 after a failure, 2 after wrong usage, 130 after Ctrl-C, and 141
when the program that reads its output has ended. The sections of some commands list more exit codes. `5spot --version`
prints the version, `5spot COMMAND --help` describes a command, and `FIVESPOT_DEBUG=1` prints tracebacks.
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
    loaded = load(command.name)
    yield from _described(loaded, options=command.name != "run")
    for name, inner in getattr(loaded, "commands", {}).items():
        yield f"### 5spot {command.name} {name}\n"
        yield from _described(inner)


def _described(command: Any, *, options: bool = True) -> Iterator[str]:
    yield f"{_paragraphs(command.help)}\n"
    if not options:
        yield "Its flags are the [settings](settings.md).\n"
    elif command.params:
        yield "| option | meaning |\n|---|---|"
        yield "\n".join(map(_row, command.params)) + "\n"
    if command.epilog:
        yield f"```text\n{_unescaped(command.epilog).strip()}\n```\n"


def _row(param: Any) -> str:
    value = "" if getattr(param, "is_flag", False) else param.metavar or param.name.upper()
    names = [""] if param.param_type_name == "argument" else [*param.opts, *param.secondary_opts]
    shown = ", ".join(f"`{f'{name} {value}'.strip()}`" for name in names).replace("|", "\\|")
    default = f" Default: {param.default}." if param.default and param.show_default else ""
    return f"| {shown} | {_cell(param.help)}{default} |"


def _metric_rows() -> Iterator[str]:
    yield "| metric | type | labels | meaning |\n|---|---|---|---|"
    for metric in sorted(declared(), key=full_name):
        (family,) = metric.describe()
        labels = ", ".join(f"`{label}`" for label in metric._labelnames)  # noqa: SLF001 - there is no other way
        yield f"| `{full_name(metric)}` | {family.type} | {labels} | {_cell(family.documentation)} |"


def declared() -> list[MetricWrapperBase]:
    """Every metric of the service."""
    return [found for _, found in inspect.getmembers(metrics) if isinstance(found, MetricWrapperBase)]


def full_name(metric: MetricWrapperBase) -> str:
    """As a query names it."""
    (family,) = metric.describe()
    return f"{family.name}_total" if family.type == "counter" else str(family.name)


def _paragraphs(text: str | None) -> str:
    return "\n\n".join(_flowing(part) for part in _unescaped(text or "").split("\n\n"))


def _unescaped(text: str) -> str:
    """Without the escapes that keep Rich from reading markup."""
    return text.replace(r"\[", "[")


def _flowing(text: str | None) -> str:
    # An angle bracket outside of back-ticks would begin a tag.
    return " ".join((text or "").split()).replace("<", "&lt;")


def _cell(text: str) -> str:
    return _flowing(text).removesuffix(".").replace("|", "\\|") + "."


def _read(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.exists() else None


if __name__ == "__main__":
    sys.exit(main())

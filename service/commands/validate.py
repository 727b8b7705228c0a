"""`5spot validate`: the webhook's verdict on manifests, offline."""

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from crds import names, providers
from crds.providers import ProviderPolicy
from crds.rules import Verdict, check
from crds.violations import shown
from service.commands.documents import Document, Unreadable, read
from service.commands.filenames import expanded

ALLOWED: Final = 0
REJECTED: Final = 1
UNREADABLE: Final = 2

FILES_HELP: Final = (
    "YAML or JSON file, a directory of them, or a pattern such as 'machines/*.yaml'; - is standard input"
)
UNREADABLE_HELP: Final = (
    "2: a file cannot be read or is not a manifest, or there is no ScheduledMachine in what was given; "
    "70: a bug in 5spot."
)
LISTS: Final = ("List", f"{names.KIND}List")
_SEPARATE: Final = "write them as documents of their own, with --- between them"


@dataclass(frozen=True, slots=True)
class Judged:
    """A manifest with its verdict."""

    document: Document
    name: str
    namespace: str
    verdict: Verdict

    def to_json(self) -> dict[str, Any]:
        """As `-o json` prints it."""
        return {
            "name": self.name,
            "namespace": self.namespace,
            "allowed": self.verdict.allowed,
            "violations": [violation.to_json() for violation in self.verdict.violations],
            "warnings": list(self.verdict.warnings),
        }


def register(subparsers: Any) -> None:
    """Add the command to the `5spot` parser."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "validate",
        help="say whether manifests would be admitted, and if not, why",
        description="Judges ScheduledMachines as the admission webhook would, without a cluster. "
        f"Exit code 0: all allowed; 1: at least one rejected; {UNREADABLE_HELP}",
    )
    parser.add_argument("paths", nargs="*", metavar="FILE", help=FILES_HELP)
    add_files(parser)
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text", help="default: text")
    parser.set_defaults(run=run)


def add_files(parser: argparse.ArgumentParser) -> None:
    """The options that name manifests, and the operator's policy for them."""
    parser.add_argument(
        "-f",
        "--filename",
        dest="files",
        metavar="FILE",
        action="append",
        default=[],
        help=f"the same as FILE, as kubectl has it: {FILES_HELP}; may be repeated",
    )
    parser.add_argument("-R", "--recursive", action="store_true", help="read the directories below a directory too")
    providers.add_flags(parser)


def run(arguments: argparse.Namespace) -> int:
    """Judge all documents and print the verdicts."""
    files = [*arguments.paths, *arguments.files]
    if not files:
        sys.stderr.write("name at least one FILE, - for standard input\n")
        return UNREADABLE
    judged, readable = judge_all(files, arguments)
    print_verdicts(judged, arguments.output)
    return exit_code(judged, readable=readable)


def exit_code(judged: list[Judged], *, readable: bool) -> int:
    """What the exit code says of these verdicts."""
    if not readable or not judged:
        return UNREADABLE
    return ALLOWED if all(each.verdict.allowed for each in judged) else REJECTED


def judge_all(files: list[str], arguments: argparse.Namespace) -> tuple[list[Judged], bool]:
    """The verdict on every document, and whether all could be read; standard error names those that could not."""
    judged: list[Judged] = []
    unreadable: list[Unreadable] = []
    policy = providers.from_flags(arguments)
    for each in _manifests(expanded(files, recursive=arguments.recursive)):
        if isinstance(each, Unreadable):
            sys.stderr.write(f"{each}\n")
            unreadable.append(each)
        elif is_ours(each.content):
            judged.append(judge(each, policy))
        else:
            sys.stderr.write(f"{each.source}:{each.line}: skipped {_described(each.content)}\n")
    if not unreadable and not judged:
        sys.stderr.write(f"there is no {names.KIND} in {', '.join(files)}\n")
    return judged, not unreadable


def _manifests(files: Iterable[str | Unreadable]) -> Iterator[Document | Unreadable]:
    """All manifests in order, and between them what is none."""
    for source in files:
        try:
            if isinstance(source, Unreadable):
                raise source
            for document in read(source):
                yield from _unpacked(document)
        except Unreadable as error:
            yield error


def _unpacked(document: Document) -> Iterator[Document | Unreadable]:
    """The items of a `kind: List`, as kubectl reads it, or the document itself."""
    problem = no_manifest(document.content)
    if problem:
        yield Unreadable(f"{document.source}:{document.line}: {problem}")
    elif document.content.get("kind") in LISTS:
        for item in document.content.get("items") or ():
            yield from _unpacked(replace(document, content=item))
    else:
        yield document


def no_manifest(content: Any) -> str | None:
    """Why this cannot be an object of any API, or None."""
    if isinstance(content, list):
        return f"is a list, not a manifest; put its entries in `items` of a `kind: List`, or {_SEPARATE}"
    if not isinstance(content, dict):
        return f"is no manifest but {json.dumps(shown(content))}"
    kind = content.get("kind")
    if not isinstance(kind, str) and not is_ours(content):
        return "is no manifest: it has no kind" if kind is None else "is no manifest: its kind is not a text"
    if kind in LISTS and not isinstance(content.get("items"), list | None):
        return f"is a {kind} whose items are not a list"
    return None


def is_ours(content: dict[str, Any]) -> bool:
    """Whether this is a ScheduledMachine, of whatever version, or was meant to be one."""
    kind, version = content.get("kind"), content.get("apiVersion")
    named = isinstance(kind, str) and kind.lower() == names.KIND.lower()
    if not isinstance(version, str):
        return named
    return version.partition("/")[0] == names.GROUP and (named or not isinstance(kind, str))


def judge(document: Document, policy: ProviderPolicy) -> Judged:
    """The verdict on one manifest; without a namespace it counts as in `default`."""
    metadata = document.content.get("metadata")
    known = metadata if isinstance(metadata, dict) else {}
    name = known.get("name") or known.get("generateName") or ""
    namespace = known.get("namespace") or "default"
    return Judged(document, str(shown(name)), str(shown(namespace)), check(document.content, policy=policy))


def print_verdicts(judged: list[Judged], output: str) -> None:
    """On standard output, for people or programs."""
    if output == "json":
        print_json([each.to_json() for each in judged])
        return
    for each in judged:
        sys.stdout.write("".join(f"{line}\n" for line in verdict_lines(each)))


def print_json(entries: list[dict[str, Any]]) -> None:
    """One array on standard output; what it cannot show, and no terminal should see, is escaped as JSON escapes it."""
    everything = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    lines = json.dumps(entries, indent=2, ensure_ascii=not everything).split("\n")
    sys.stdout.write("".join(f"{_escaped(line)}\n" for line in lines))


def _escaped(line: str) -> str:
    if line.isprintable():
        return line
    return "".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in line)


def verdict_lines(judged: Judged) -> Iterator[str]:
    """A verdict for people."""
    yield f"{judged.namespace}/{judged.name}: {'allowed' if judged.verdict.allowed else 'rejected'}"
    for violation in judged.verdict.violations:
        yield f"  {violation}"
    for warning in judged.verdict.warnings:
        yield f"  warning: {warning}"


def _described(content: dict[str, Any]) -> str:
    kind, version = shown(content.get("kind")), shown(content.get("apiVersion"))
    metadata = content.get("metadata")
    name = shown(metadata.get("name")) if isinstance(metadata, dict) else None
    return f"{kind} {name or ''} ({version or 'no apiVersion'})".replace("  ", " ")

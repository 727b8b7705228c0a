"""`5spot validate`: the webhook's verdict on manifests, offline."""

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from crds import names, providers
from crds.providers import ProviderPolicy
from crds.rules import Verdict, check
from crds.violations import shown
from service.commands.documents import Document, Unreadable, read

ALLOWED: Final = 0
REJECTED: Final = 1
UNREADABLE: Final = 2


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
        "Exit code 0: all allowed; 1: at least one rejected; 2: something could not be read.",
    )
    add_files(parser)
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text", help="default: text")
    parser.set_defaults(run=run)


def add_files(parser: argparse.ArgumentParser) -> None:
    """The option that names manifests."""
    parser.add_argument(
        "-f",
        "--filename",
        dest="files",
        metavar="FILE",
        action="append",
        required=True,
        help="YAML or JSON file with one or more documents, - for standard input; may be repeated",
    )
    providers.add_flags(parser)


def run(arguments: argparse.Namespace) -> int:
    """Judge all documents and print the verdicts."""
    judged, readable = judge_all(arguments)
    print_verdicts(judged, arguments.output)
    if not readable:
        return UNREADABLE
    return ALLOWED if all(each.verdict.allowed for each in judged) else REJECTED


def judge_all(arguments: argparse.Namespace) -> tuple[list[Judged], bool]:
    """The verdict on every document, and whether all files could be read; what could not is told on standard error."""
    judged: list[Judged] = []
    readable = True
    policy = providers.from_flags(arguments)
    for source in arguments.files:
        try:
            judged.extend(_judged(source, policy))
        except Unreadable as error:
            sys.stderr.write(f"{error}\n")
            readable = False
    if readable and not judged:
        sys.stderr.write(f"there is no {names.KIND} in what was given\n")
    return judged, readable


def _judged(source: str, policy: ProviderPolicy) -> Iterator[Judged]:
    """The verdict on each ScheduledMachine; other kinds are named on standard error and skipped."""
    for document in read(source):
        for each in _unpacked(document):
            if is_ours(each.content):
                yield judge(each, policy)
            else:
                sys.stderr.write(f"{each.source}:{each.line}: skipped {_described(each.content)}\n")


def _unpacked(document: Document) -> list[Document]:
    """The items of a `kind: List`, as kubectl reads it, or the document itself."""
    content = document.content
    if isinstance(content, dict) and content.get("kind") in {"List", f"{names.KIND}List"}:
        items = content.get("items")
        return [Document(document.source, document.line, item) for item in items or ()] if _is_list(items) else []
    return [document]


def _is_list(items: Any) -> bool:
    return items is None or isinstance(items, list)


def is_ours(content: Any) -> bool:
    """Whether this is a ScheduledMachine, of whatever version."""
    if not isinstance(content, dict) or content.get("kind") != names.KIND:
        return False
    version = content.get("apiVersion")
    return not isinstance(version, str) or version.partition("/")[0] == names.GROUP


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
        sys.stdout.write(json.dumps([each.to_json() for each in judged], indent=2, ensure_ascii=False) + "\n")
        return
    for each in judged:
        sys.stdout.write("".join(f"{line}\n" for line in verdict_lines(each)))


def verdict_lines(judged: Judged) -> Iterator[str]:
    """A verdict for people."""
    yield f"{judged.namespace}/{judged.name}: {'allowed' if judged.verdict.allowed else 'rejected'}"
    for violation in judged.verdict.violations:
        yield f"  {violation}"
    for warning in judged.verdict.warnings:
        yield f"  warning: {warning}"


def _described(content: Any) -> str:
    if not isinstance(content, dict):
        return "a document that is not an object"
    kind, version = shown(content.get("kind")), shown(content.get("apiVersion"))
    metadata = content.get("metadata")
    name = shown(metadata.get("name")) if isinstance(metadata, dict) else None
    return f"{kind or 'an object without kind'} {name or ''} ({version or 'no apiVersion'})".replace("  ", " ")

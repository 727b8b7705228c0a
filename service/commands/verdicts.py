"""The verdict of the webhook's rules on manifests, and how it is printed; for `5spot validate` and `preview`."""

import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from crds import names
from crds.calendarrules import KINDS as CALENDARS
from crds.calendarrules import CalendarVerdict, check_calendar
from crds.calendars import CalendarKind
from crds.classrules import ClassVerdict, check_class
from crds.overriderules import OverrideVerdict, check_override, end_warnings
from crds.providers import ProviderPolicy
from crds.rules import Verdict, check
from crds.schedulecalendar import CalendarSpec
from crds.scheduleoverride import OverrideSpec
from crds.schedulespec import ScheduleSpec
from crds.violations import shown
from service.commands.documents import Document, UnreadableFile, read
from service.commands.filenames import expanded
from service.fleet.tenancies import NO_TENANCIES, Tenancies

ALLOWED: Final = 0
REJECTED: Final = 1
UNREADABLE: Final = 2

KINDS: Final = (names.KIND, *CALENDARS, names.OVERRIDE_KIND, names.CLASS_KIND)
LISTS: Final = ("List", *(f"{kind}List" for kind in KINDS))
_BY_ANY_CASE: Final = {kind.lower(): kind for kind in KINDS}
_SEPARATE: Final = "separate them with ---"


@dataclass(frozen=True, slots=True)
class Judged:
    """A manifest with its verdict; the namespace of what is in none is empty."""

    document: Document
    kind: str
    name: str
    namespace: str
    verdict: Verdict | CalendarVerdict | OverrideVerdict | ClassVerdict
    warnings: tuple[str, ...] = ()

    @property
    def schedule(self) -> ScheduleSpec | None:
        """The schedule of a ScheduledMachine, if it is one and can be read."""
        written = self.verdict.written if isinstance(self.verdict, Verdict) else None
        return written.schedule if written is not None else None

    @property
    def calendar(self) -> CalendarSpec | None:
        """The calendar, if it is one and can be read."""
        return self.verdict.spec if isinstance(self.verdict, CalendarVerdict) else None

    @property
    def override(self) -> OverrideSpec | None:
        """The override, if it is one and can be read."""
        return self.verdict.spec if isinstance(self.verdict, OverrideVerdict) else None

    def warned(self, warnings: Iterable[str]) -> "Judged":
        """The same with further warnings."""
        return replace(self, warnings=(*self.warnings, *warnings))

    def to_json(self) -> dict[str, Any]:
        """As `-o json` prints it."""
        return {
            "kind": self.kind,
            "name": self.name,
            "namespace": self.namespace,
            "allowed": self.verdict.allowed,
            "violations": [violation.to_json() for violation in self.verdict.violations],
            "warnings": list(self.warnings),
        }


@dataclass(frozen=True, slots=True)
class Reading:
    """What files hold: the verdicts on our own kinds, all manifests, and whether every file could be read."""

    judged: list[Judged]
    contents: list[dict[str, Any]]
    readable: bool


def exit_code(judged: list[Judged], *, readable: bool) -> int:
    """The exit code for these verdicts."""
    if not readable or not judged:
        return UNREADABLE
    return ALLOWED if all(each.verdict.allowed for each in judged) else REJECTED


def judge_all(files: list[str], policy: ProviderPolicy, *, recursive: bool, wanted: Iterable[str] = KINDS) -> Reading:
    """The verdict on every document of our own kinds.

    Standard error names what cannot be read and what is skipped, and says if no object of a `wanted` kind is there.
    """
    documents: list[Document] = []
    unreadable: list[UnreadableFile] = []
    for each in _manifests(expanded(files, recursive=recursive)):
        if isinstance(each, UnreadableFile):
            sys.stderr.write(f"{each}\n")
            unreadable.append(each)
        else:
            documents.append(each)
    tenancies = Tenancies.of((each.content for each in documents), policy)
    judged = [judge(each, policy, tenancies) for each in documents if is_ours(each.content)]
    _name_skipped(documents, _read_too({each.kind for each in judged}))
    if not unreadable and not any(each.kind in wanted for each in judged):
        sys.stderr.write(f"there is no {names.KIND} in {', '.join(files)}\n")
    return Reading(judged, [each.content for each in documents], not unreadable)


def _read_too(judged: set[str]) -> set[str]:
    """The kinds that are read beside ours: ConfigMaps for calendars, Namespaces for what machines in them may be."""
    beside_calendars = {"ConfigMap"} if judged - {names.KIND} else set[str]()
    beside_machines = {"Namespace"} if names.KIND in judged else set[str]()
    return beside_calendars | beside_machines


def _name_skipped(documents: list[Document], read_too: set[str]) -> None:
    for each in documents:
        if not is_ours(each.content) and each.content.get("kind") not in read_too:
            sys.stderr.write(f"{each.source}:{each.line}: skipped {_described(each.content)}\n")


def _manifests(files: Iterable[str | UnreadableFile]) -> Iterator[Document | UnreadableFile]:
    """All manifests in order, and an error in the place of each document that is not a manifest."""
    for source in files:
        try:
            if isinstance(source, UnreadableFile):
                raise source
            for document in read(source):
                yield from _unpacked(document)
        except UnreadableFile as error:
            yield error


def _unpacked(document: Document) -> Iterator[Document | UnreadableFile]:
    """The items of a `kind: List`, as kubectl reads it, or the document itself."""
    problem = _not_a_manifest(document.content)
    if problem:
        yield UnreadableFile(f"{document.source}:{document.line}: {problem}")
    elif document.content.get("kind") in LISTS:
        for item in document.content.get("items") or ():
            yield from _unpacked(replace(document, content=item))
    else:
        yield document


def _not_a_manifest(content: Any) -> str | None:
    """Why this cannot be an object of any API, or None."""
    if isinstance(content, list):
        return f"is a list, not a manifest; put its entries in `items` of a `kind: List`, or {_SEPARATE}"
    if not isinstance(content, dict):
        return f"is not a manifest: expected an object, found {json.dumps(shown(content))}"
    kind = content.get("kind")
    if not isinstance(kind, str) and not is_ours(content):
        return "is not a manifest: it has no kind" if kind is None else "is not a manifest: its kind is not a string"
    if kind in LISTS and not isinstance(content.get("items"), list | None):
        return f"is a {kind} whose items are not a list"
    return None


def is_ours(content: dict[str, Any]) -> bool:
    """Whether this is an object of our own kinds, of any version, or is meant to be one."""
    kind, version = content.get("kind"), content.get("apiVersion")
    named = isinstance(kind, str) and kind.lower() in _BY_ANY_CASE
    if not isinstance(version, str):
        return named
    return version.partition("/")[0] == names.GROUP and (named or not isinstance(kind, str))


def judge(document: Document, policy: ProviderPolicy, tenancies: Tenancies = NO_TENANCIES) -> Judged:
    """The verdict on one manifest; without a namespace it counts as in `default`."""
    kind = _BY_ANY_CASE.get(str(document.content.get("kind")).lower(), names.KIND)
    metadata = document.content.get("metadata")
    known = metadata if isinstance(metadata, dict) else {}
    name = str(shown(known.get("name") or known.get("generateName") or ""))
    namespace = str(shown(known.get("namespace") or "default"))
    if kind == names.KIND:
        verdict = check(document.content, policy=policy, tenancy=tenancies.of_namespace(namespace))
        return Judged(document, kind, name, namespace, verdict, verdict.warnings)
    if kind == names.OVERRIDE_KIND:
        return Judged(document, kind, name, namespace, check_override(document.content))
    if kind == names.CLASS_KIND:
        found = check_class(document.content, policy=policy)
        return Judged(document, kind, name, "", found, found.warnings)
    judgement = check_calendar(document.content, kind=CALENDARS[kind])
    in_none = CALENDARS[kind] is CalendarKind.CLUSTER
    return Judged(document, kind, name, "" if in_none else namespace, judgement)


def with_vain_ends(judged: Iterable[Judged], now: datetime, longest: timedelta) -> list[Judged]:
    """The verdicts, with a warning for each override that is over or ends later than the controller accepts."""
    return [
        each.warned(end_warnings(each.override, each.document.content, now, longest)) if each.override else each
        for each in judged
    ]


def print_verdicts(judged: list[Judged], output: str) -> None:
    """On standard output, for people or programs."""
    if output == "json":
        print_json([each.to_json() for each in judged])
        return
    for each in judged:
        sys.stdout.write("".join(f"{line}\n" for line in verdict_lines(each)))


def print_json(entries: list[dict[str, Any]]) -> None:
    """One array on standard output; characters that it cannot show, and control characters, are escaped as in JSON."""
    everything = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    lines = json.dumps(entries, indent=2, ensure_ascii=not everything).split("\n")
    sys.stdout.write("".join(f"{_escaped(line)}\n" for line in lines))


def _escaped(line: str) -> str:
    if line.isprintable():
        return line
    return "".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in line)


def verdict_lines(judged: Judged) -> Iterator[str]:
    """A verdict for people."""
    yield f"{_title(judged)}: {'allowed' if judged.verdict.allowed else 'rejected'}"
    for violation in judged.verdict.violations:
        yield f"  {violation}"
    for warning in judged.warnings:
        yield f"  warning: {warning}"


def _title(judged: Judged) -> str:
    """A ScheduledMachine is named as kubectl does; other kinds have their name before it."""
    place = f"{judged.namespace}/{judged.name}" if judged.namespace else judged.name
    return place if judged.kind == names.KIND else f"{judged.kind} {place}"


def _described(content: dict[str, Any]) -> str:
    kind, version = shown(content.get("kind")), shown(content.get("apiVersion"))
    metadata = content.get("metadata")
    name = shown(metadata.get("name")) if isinstance(metadata, dict) else None
    return f"{kind} {name or ''} ({version or 'no apiVersion'})".replace("  ", " ")

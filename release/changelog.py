"""What CHANGELOG.md says about a version: for the release's notes, and entry by entry for Artifact Hub."""

import re
from collections.abc import Iterator
from typing import Final

from release.contents import ReleaseError

SECTION: Final = re.compile(r"^## \[([^\]]+)\][^\n]*\n(.*?)(?=^## \[|\Z)", re.MULTILINE | re.DOTALL)
KIND: Final = re.compile(r"^### (\w+)\n(.*?)(?=^### |\Z)", re.MULTILINE | re.DOTALL)
ENTRY: Final = re.compile(r"^- (.*?)(?=^- |^#|^\s*$|\Z)", re.MULTILINE | re.DOTALL)
LINK: Final = re.compile(r"\[([^\]]+)\]\([^)]+\)")
KINDS: Final = ("added", "changed", "deprecated", "removed", "fixed", "security")
NEXT: Final = "Unreleased"


def section(text: str, version: str) -> str:
    """What is said about a version; before its release that is said about the next one."""
    found = {match[1]: match[2].strip() for match in SECTION.finditer(text)}
    said = found.get(version, found.get(NEXT))
    if not said:
        raise ReleaseError(f"CHANGELOG.md has no section [{version}], nor an [{NEXT}] one: write what is new in it.")
    return said


def entries(said: str) -> Iterator[tuple[str, str]]:
    """Each entry of a section with its kind, as plain text."""
    for kind, body in KIND.findall(said):
        if kind.lower() not in KINDS:
            raise ReleaseError(f"CHANGELOG.md: ### {kind} is none of {', '.join(KINDS)}.")
        for entry in ENTRY.findall(body):
            yield kind.lower(), " ".join(LINK.sub(r"\1", entry).replace("`", "").split())

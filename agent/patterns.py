"""What counts as a match: the patterns of the per-node ConfigMap and the sentence that explains a hit."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from crds.names import RECLAIM_CONFIG_KEY

MAX_PATTERNS = 100
MAX_PATTERN_LENGTH = 256
MAX_REASON_LENGTH = 256
_SHOWN_PATTERN = 96


@dataclass(frozen=True, slots=True)
class Hit:
    """A pattern that matched, and whether it was the name or the command line that did."""

    pattern: str
    by: str


@dataclass(frozen=True, slots=True)
class Patterns:
    """The list to look for, kept as bytes too: process names and command lines need not be text."""

    entries: tuple[str, ...] = ()
    needles: tuple[bytes, ...] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "needles", tuple(entry.encode("utf-8", "surrogatepass") for entry in self.entries))

    def __bool__(self) -> bool:
        return bool(self.entries)

    def match(self, comm: bytes, cmdline: bytes) -> Hit | None:
        """The first pattern that equals `comm` or occurs in `cmdline`."""
        for pattern, needle in zip(self.entries, self.needles, strict=True):
            if needle == comm:
                return Hit(pattern, "name")
            if needle in cmdline:
                return Hit(pattern, "command line")
        return None


NO_PATTERNS = Patterns()


@dataclass(frozen=True, slots=True)
class PatternConfig:
    """A ConfigMap as understood: usable patterns, and complaints about what was left out."""

    patterns: Patterns = NO_PATTERNS
    problems: tuple[str, ...] = ()


def read_config(data: Mapping[str, str] | None) -> PatternConfig:
    """Patterns from a ConfigMap's `data`. Whatever cannot be understood is left out, never guessed at."""
    text = (data or {}).get(RECLAIM_CONFIG_KEY, "")
    if not text.strip():
        return PatternConfig()
    try:
        entries = json.loads(text)
    except (ValueError, RecursionError) as error:
        return PatternConfig(problems=(f"{RECLAIM_CONFIG_KEY} is not JSON ({error}); nothing will match",))
    if not isinstance(entries, list):
        return PatternConfig(problems=(f"{RECLAIM_CONFIG_KEY} must be a JSON array of strings; nothing will match",))
    return _usable(entries)


def _usable(entries: list[object]) -> PatternConfig:
    kept: dict[str, None] = {}
    problems: list[str] = []
    for index, entry in enumerate(entries):
        problem = _problem(entry)
        if problem is None and isinstance(entry, str):
            kept[entry] = None
        else:
            problems.append(f"{RECLAIM_CONFIG_KEY}[{index}] {problem}; left out")
    if len(kept) > MAX_PATTERNS:
        problems.append(f"only the first {MAX_PATTERNS} of {len(kept)} patterns are used")
    return PatternConfig(Patterns(tuple(kept)[:MAX_PATTERNS]), tuple(problems))


def _problem(entry: object) -> str | None:
    if not isinstance(entry, str):
        return "is not a string"
    if not entry.strip():
        # As a substring it would occur in nearly every command line, and eject the node for nothing.
        return "is blank"
    if len(entry) > MAX_PATTERN_LENGTH:
        return f"is longer than {MAX_PATTERN_LENGTH} characters"
    return None


def reason(hit: Hit, comm: bytes, pid: int) -> str:
    """A short printable sentence. It never quotes the command line, which may hold secrets."""
    name = printable(comm.decode("utf-8", "replace"), 64)
    pattern = printable(hit.pattern, _SHOWN_PATTERN)
    return f'process "{name}" (pid {pid}) matched "{pattern}" by its {hit.by}'[:MAX_REASON_LENGTH]


def printable(text: str, limit: int) -> str:
    """`text` on one line without control characters, cut to `limit`."""
    clean = "".join(char if char.isprintable() else "?" for char in text)
    return clean if len(clean) <= limit else clean[: limit - 1] + "…"

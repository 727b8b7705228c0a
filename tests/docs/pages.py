"""What the pages of the documentation hold, for tests that hold them to it.

A `console` block is run by a test as it stands: `$ ` begins a command, `> ` goes on with it, the lines below are what
it prints, `…` standing for any text. A `sh` block is an example to adapt: its commands are read, not run.
"""

import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

ROOT = Path(__file__).parents[2]
TOP = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "examples/README.md")
PAGES = (*sorted((ROOT / "docs").rglob("*.md")), *(ROOT / name for name in TOP))
# Also inside of a list, where it is indented.
FENCE = re.compile(r"^( *)```(\S+)[^\n]*\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
MARK = "@@@ command"
SLOWEST = 600


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block of a page."""

    page: Path
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}: {self.text.splitlines()[0][:60] if self.text else ''}"


@dataclass(frozen=True, slots=True)
class Step:
    """A command of a `console` block and what the page says that it prints."""

    command: str
    shown: tuple[str, ...]

    def agrees_with(self, printed: str) -> bool:
        """Whether the output is as shown; nothing shown is nothing promised."""
        if not self.shown:
            return True
        pattern = r"\s*".join(_pattern(line) for line in self.shown)
        return re.fullmatch(rf"\s*{pattern}\s*", printed) is not None


def blocks(*languages: str, pages: Sequence[Path] = PAGES) -> list[Block]:
    """All fenced blocks of these languages."""
    found = ((page, match[2], dedent(match[3])) for page in pages for match in FENCE.finditer(page.read_text()))
    return [Block(page, language, text) for page, language, text in found if language in languages]


def steps(text: str) -> Iterator[Step]:
    """The commands of a `console` block."""
    command, shown = "", list[str]()
    for line in text.splitlines():
        if line.startswith("$ "):
            if command:
                yield Step(command, tuple(shown))
            command, shown = line[2:], []
        elif line.startswith("> ") and not shown:
            command += "\n" + line[2:]
        else:
            shown.append(line)
    yield Step(command, tuple(shown))


def commands(block: Block) -> list[str]:
    """The command lines of a `console` or `sh` block, without comments."""
    if block.language == "console":
        return [step.command for step in steps(block.text)]
    joined = block.text.replace("\\\n", " ")
    lines = (re.sub(r"(^|\s)#.*", "", line).strip() for line in joined.splitlines())
    return [line.removeprefix("$ ") for line in lines if line]


def run(todo: Sequence[Step], environment: Mapping[str, str]) -> list[tuple[int, str]]:
    """Exit code and output of each command, all in one shell, as a reader would type them."""
    script = "\n".join(f"echo '{MARK}'\n{{ {step.command}\n}} 2>&1\necho \"{MARK} $?\"" for step in todo)
    done = subprocess.run(
        ["bash"], input=script, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=SLOWEST, check=False
    )
    found = re.findall(rf"^{MARK}\n(.*?)^{MARK} (\d+)$", done.stdout, re.MULTILINE | re.DOTALL)
    assert len(found) == len(todo), done.stdout + done.stderr
    return [(int(code), output) for output, code in found]


def _pattern(line: str) -> str:
    parts = (r"\s+".join(re.escape(word) for word in part.split()) for part in line.split("…"))
    return r"[\s\S]*?".join(rf"\s*{part}\s*" for part in parts)

"""Runs a tool, passes on its output, and explains its failure in a sentence. Used to build the control plane."""

import errno
import shlex
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from local.errors import LocalError

LAST_LINES: Final = 15
FULL: Final = ("no space left on device", "disk quota exceeded")
FULL_ERRORS: Final = (errno.ENOSPC, errno.EDQUOT)


@dataclass(frozen=True, slots=True)
class Tool:
    """An executable with its environment and working directory."""

    path: Path
    environ: Mapping[str, str]
    folder: Path
    keep_open: tuple[int, ...] = ()

    def run(self, *arguments: str, on_line: Callable[[str], None] = lambda _: None) -> list[str]:
        """Runs to the end and returns all lines of output; `on_line` gets each as it comes."""
        words = [str(self.path), *arguments]
        lines = []
        with self._started(words) as process:
            for raw in process.stdout or ():
                lines.append(raw.rstrip())
                on_line(lines[-1])
        if process.returncode != 0:
            raise _failure(words, process.returncode, lines[-LAST_LINES:])
        return lines

    @contextmanager
    def _started(self, words: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
        try:
            process = subprocess.Popen(  # noqa: S603 - our own arguments, no shell
                words,
                cwd=self.folder,
                env=dict(self.environ),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=self.keep_open,
                text=True,
                errors="replace",
            )
        except OSError as error:
            raise LocalError(f"{self.path} cannot be run: {error.strerror}.") from error
        with process:
            try:
                yield process
            except BaseException:
                process.terminate()
                raise


@contextmanager
def explained(doing: str) -> Iterator[None]:
    """Turns file system errors within the block into sentences: the disk is full, permission is denied."""
    try:
        yield
    except OSError as error:
        if error.errno in FULL_ERRORS:
            raise disk_full(f"{doing} failed") from error
        raise LocalError(
            f"{doing} failed: {error.filename or 'a file'}: {error.strerror}. "
            "Set XDG_CACHE_HOME to a folder that you may write to."
        ) from error


def disk_full(what: str, detail: str = "") -> LocalError:
    """The error for a full disk."""
    return LocalError(
        f"the disk is full: {what}. Building the control plane takes about 4 GB in Go's caches and 1 GB in "
        "5spot's. Free some space, or set XDG_CACHE_HOME (and GOMODCACHE) to a folder on a larger disk, and try again."
        + detail
    )


def _failure(words: Sequence[str], code: int, said: Sequence[str]) -> LocalError:
    command = shlex.join(words)
    last = "\n".join(f"    {line}" for line in said) or "    (it printed nothing)"
    if any(sign in line.lower() for line in said for sign in FULL):
        return disk_full(f"`{Path(words[0]).name} {words[1]}` failed", f"\nits last lines:\n{last}")
    return LocalError(f"this command failed with exit code {code}:\n  {command}\nits last lines:\n{last}")

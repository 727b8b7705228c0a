"""Which files `validate` and `preview` read: files named, files of a directory, files that match a pattern."""

import glob
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from service.commands.documents import STDIN, UnreadableFile

ENDINGS: Final = (".yaml", ".yml", ".json")
FILES_MAX: Final = 10_000


def looks_like_a_file(argument: str) -> bool:
    """Whether an argument names files rather than an object, as far as one can see."""
    return cannot_be_a_name(argument) or argument.endswith(ENDINGS) or Path(argument).exists()


def cannot_be_a_name(argument: str) -> bool:
    """Whether an argument has a sign that the name of a Kubernetes object never has."""
    return glob.has_magic(argument) or "/" in argument or argument == STDIN


def expanded(given: Iterable[str], *, recursive: bool) -> Iterator[str | UnreadableFile]:
    """Every file that the arguments name, in order; an error in the place of an argument that names none."""
    for argument in given:
        try:
            yield from _files(argument, recursive=recursive)
        except OSError as error:
            yield UnreadableFile(f"{argument}: {error.strerror or error}")


def _files(argument: str, *, recursive: bool) -> Iterator[str | UnreadableFile]:
    path = Path(argument)
    if not argument:  # for Path it is the current directory, for users a variable of their shell that is not set
        yield UnreadableFile("a FILE has an empty name")
    elif argument == STDIN:
        yield argument
    elif path.is_dir():
        yield from _in_directory(path, recursive=recursive)
    elif not path.exists() and glob.has_magic(argument):
        yield from _matching(argument, recursive=recursive)
    else:
        yield argument


def _in_directory(path: Path, *, recursive: bool) -> Iterator[str | UnreadableFile]:
    entries = path.rglob("*") if recursive else path.iterdir()
    found = sorted(str(each) for each in entries if each.name.endswith(ENDINGS) and _to_be_read(each))
    hint = "" if recursive else "; -R reads its subdirectories too"
    yield from _bounded(found, f"{path}: the directory has no {', '.join(ENDINGS)} file{hint}")


def _to_be_read(path: Path) -> bool:
    """Whether it is a file, or a link to nothing, which is named as an error."""
    return path.is_file() or not path.exists()


def _matching(pattern: str, *, recursive: bool) -> Iterator[str | UnreadableFile]:
    found = sorted(glob.glob(pattern, recursive=True))  # noqa: PTH207 - Path.glob takes no absolute pattern
    for each in _bounded(found, f"{pattern}: no file matches"):
        if isinstance(each, str) and Path(each).is_dir():
            yield from _in_directory(Path(each), recursive=recursive)
        else:
            yield each


def _bounded(found: list[str], none: str) -> Iterator[str | UnreadableFile]:
    if not found:
        yield UnreadableFile(none)
    yield from found[:FILES_MAX]
    if len(found) > FILES_MAX:
        yield UnreadableFile(f"more than {FILES_MAX} files; name fewer at a time")

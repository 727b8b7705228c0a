"""Archives that have the same bytes whenever they hold the same files: sorted, of one time, without owners."""

import gzip
import io
import tarfile
from collections.abc import Mapping
from pathlib import Path

from release.contents import EPOCH


def pack(files: Mapping[str, bytes], target: Path) -> None:
    """Writes a compressed tar archive of these files."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name in sorted(files):
            archive.addfile(_entry(name, len(files[name])), io.BytesIO(files[name]))
    with target.open("wb") as raw, gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=EPOCH) as compressed:
        compressed.write(plain.getvalue())


def pack_folder(folder: Path, target: Path) -> None:
    """Writes a plain tar archive of a folder's files; large ones are not read into memory."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    with tarfile.open(target, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in files:
            with path.open("rb") as content:
                archive.addfile(_entry(str(path.relative_to(folder)), path.stat().st_size), content)


def unpack(archive: Path) -> dict[str, bytes]:
    """The files of an archive by name."""
    with tarfile.open(archive) as opened:
        found = ((member.name, opened.extractfile(member)) for member in opened if member.isfile())
        return {name: content.read() for name, content in found if content is not None}


def read(archive: Path, name: str) -> bytes:
    """One file of an archive."""
    with tarfile.open(archive) as opened:
        content = opened.extractfile(name)
        return content.read() if content is not None else b""


def _entry(name: str, size: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.size = size
    entry.mtime = EPOCH
    entry.mode = 0o644
    return entry

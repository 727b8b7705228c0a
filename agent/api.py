"""A very small client for one API server: GET, server-side apply and watch streams over http.client.

ApiError
├── Unreachable   no answer, or not a whole one: try later
└── Refused       an answer, and it was no (`status`); 410 means: list again
"""

import json
import socket
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse, HTTPSConnection
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from crds.names import AGENT_FIELD_MANAGER

JSON = "application/json"
METADATA_ONLY = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
APPLY = "application/apply-patch+yaml"
CALL_SECONDS = 5.0
# Longer than any watch is asked to last. A cluster in which nothing changes sends no bookmarks, so silence means
# little: TCP keep-alive probes find out when the other end is gone.
SILENCE_SECONDS = 330.0
PROBES = ((socket.TCP_KEEPIDLE, 30), (socket.TCP_KEEPINTVL, 10), (socket.TCP_KEEPCNT, 3))
MAX_MESSAGE = 300


class ApiError(Exception):
    """The request failed: no answer came, or the API server refused."""


class Unreachable(ApiError):
    """The API server gave no usable answer."""


class Refused(ApiError):
    """The API server answered with an error."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"HTTP {status}: {message}")
        self.status = status


@dataclass(frozen=True, slots=True)
class APIServer:
    """Where the API server is and how to authenticate; files are read each time, as both rotate."""

    host: str
    port: int
    ca_file: Path
    token_file: Path

    def connect(self, timeout: float) -> HTTPSConnection:
        """A connection that trusts this cluster's CA and nothing else."""
        return HTTPSConnection(self.host, self.port, timeout=timeout, context=self._tls())

    def authorization(self) -> str:
        """The header that carries the current token."""
        return f"Bearer {self.token_file.read_text(encoding='ascii').strip()}"

    def _tls(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.ca_file)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        return context


class Session:
    """Requests over one connection, one after the other."""

    def __init__(self, endpoint: APIServer, connection: HTTPSConnection) -> None:
        self._endpoint = endpoint
        self._connection = connection

    def get(self, path: str, accept: str = JSON) -> Any:
        """The object or list at `path`."""
        return _parsed(self._send("GET", path, {"Accept": accept}).read())

    def apply(self, path: str, body: Mapping[str, Any]) -> Any:
        """Server-side apply as the agent; what it owns stays its own even if another wrote it last."""
        query = urlencode({"fieldManager": AGENT_FIELD_MANAGER, "force": "true"})
        headers = {"Accept": JSON, "Content-Type": APPLY}
        return _parsed(self._send("PATCH", f"{path}?{query}", headers, json.dumps(body).encode()).read())

    def stream(self, path: str, accept: str = JSON) -> Iterator[Any]:
        """The events of a watch, until the server ends it."""
        response = self._send("GET", path, {"Accept": accept})
        if self._connection.sock is not None:
            _be_patient(self._connection.sock)
        while line := response.readline():
            yield _parsed(line)

    def _send(self, method: str, path: str, headers: dict[str, str], body: bytes | None = None) -> HTTPResponse:
        headers |= {"Authorization": self._endpoint.authorization(), "User-Agent": AGENT_FIELD_MANAGER}
        self._connection.request(method, path, body=body, headers=headers)
        response = self._connection.getresponse()
        if response.status >= 300:
            raise Refused(response.status, _message(response.read()))
        return response


class Api:
    """Opens sessions with one API server and turns everything that can go wrong into an ApiError."""

    def __init__(self, endpoint: APIServer) -> None:
        self.endpoint = endpoint

    @contextmanager
    def session(self, timeout: float = CALL_SECONDS) -> Iterator[Session]:
        """A session whose connection is closed at the end."""
        connection: HTTPSConnection | None = None
        try:
            connection = self.endpoint.connect(timeout)
            yield Session(self.endpoint, connection)
        except (OSError, HTTPException, ValueError) as error:
            raise Unreachable(f"{type(error).__name__}: {error}") from error
        finally:
            if connection is not None:
                connection.close()


def object_path(collection: str, name: str) -> str:
    """The path of one object."""
    return f"{collection}/{quote(name, safe='')}"


def selecting(collection: str, name: str, **query: str) -> str:
    """The path of a list or watch that sees one object only."""
    return f"{collection}?{urlencode({'fieldSelector': f'metadata.name={name}', **query})}"


def _be_patient(link: socket.socket) -> None:
    link.settimeout(SILENCE_SECONDS)
    link.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in PROBES:
        link.setsockopt(socket.IPPROTO_TCP, option, value)


def _parsed(body: bytes) -> Any:
    return json.loads(body)


def _message(body: bytes) -> str:
    try:
        return str(json.loads(body)["message"])[:MAX_MESSAGE]
    except (ValueError, KeyError, TypeError):
        return body[:MAX_MESSAGE].decode("utf-8", "replace")

"""The console in a cluster: many users, each with a bearer token of their own. The console itself has no rights.

The token comes from the login form, or with every request from a proxy in front that logs users in.
"""

import asyncio
import re
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Annotated, Final
from urllib.parse import urlsplit

from fastapi import FastAPI, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from service.console import answers
from service.console.guard import AllowedOrigins
from service.console.limits import LoginLimit
from service.console.server import application
from service.console.sessions import Sessions
from service.console.viewer import Viewer
from service.console.viewers import Caller, Viewers
from service.http.servers import BoundServer
from service.kube.errors import KubeError, Unauthorized

SESSION_SECONDS: Final = 8 * 3600.0
IDLE_SECONDS: Final = 15 * 60.0
SWEEP_SECONDS: Final = 30.0
TOKEN: Final = r"[A-Za-z0-9._~+/-]{1,16384}=*"  # noqa: S105 - what RFC 6750 allows
NAMESPACE: Final = r"([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)?"
NAMESPACE_COOKIE: Final = "5spot-namespace"
LOG_IN: Final = "Log in with a token of your own for this cluster."
TOO_OFTEN: Final = "There were too many attempts to log in; try again in {} s."
BAD_TOKEN: Final = "The API server does not accept this token."  # noqa: S105 - a message
_BEARER: Final = re.compile(rf"Bearer +({TOKEN})", re.ASCII | re.IGNORECASE)
_NAMESPACE: Final = re.compile(NAMESPACE, re.ASCII)


class TooManyLogins(Exception):
    """The caller tries to log in too often; the argument says how many seconds to wait."""


class Login(BaseModel):
    """A token, and the namespace to show; empty shows all."""

    model_config = ConfigDict(extra="forbid")

    token: Annotated[str, Field(pattern=f"^{TOKEN}$")]
    namespace: Annotated[str, Field(pattern=f"^{NAMESPACE}$")] = ""


class ShownNamespace(BaseModel):
    """Which namespace to show; empty shows all."""

    model_config = ConfigDict(extra="forbid")

    namespace: Annotated[str, Field(pattern=f"^{NAMESPACE}$")] = ""


@dataclass(slots=True)
class ClusterEntrance:
    """Lets in whom the API server lets in."""

    viewers: Viewers
    secure: bool = True
    """Whether browsers speak TLS to it; else it is reached on this machine only, by a port-forward."""
    limit: LoginLimit = field(default_factory=LoginLimit)
    sessions: Sessions[Caller] = field(init=False)
    _joining: dict[str, "asyncio.Task[Caller]"] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Viewers leave when their sessions end."""
        self.sessions = Sessions(SESSION_SECONDS, IDLE_SECONDS, self.viewers.monotonic, self.viewers.leave)

    @property
    def cookie(self) -> str:
        """Its name; `__Host-` has browsers refuse it from another host, and without TLS."""
        return "__Host-5spot-console" if self.secure else "5spot-console"

    def routes(self, app: FastAPI) -> None:
        """Adds login, logout, and the choice of a namespace."""

        @app.post("/login")
        async def login(request: Request, given: Login) -> Response:
            caller = await self._let_in(request, given.token, given.namespace)
            answer = answers.data({"welcome": True})
            self._begin(answer, caller)
            self._set(answer, NAMESPACE_COOKIE, given.namespace)
            return answer

        @app.post("/logout")
        async def logout(request: Request) -> Response:
            self.sessions.close(request.cookies.get(self.cookie))
            answer = answers.data({"goodbye": True})
            answer.delete_cookie(self.cookie, path="/", secure=self.secure, httponly=True, samesite="strict")
            return answer

        @app.post("/namespace")
        async def namespace(request: Request, given: ShownNamespace) -> Response:
            answer = answers.data({"namespace": given.namespace})
            caller = self.sessions.find(request.cookies.get(self.cookie))
            if caller is not None:
                moved = await self._join(caller.text, given.namespace)
                self.sessions.close(request.cookies.get(self.cookie))
                self._begin(answer, moved)
            self._set(answer, NAMESPACE_COOKIE, given.namespace)
            return answer

        @app.exception_handler(Unauthorized)
        async def unauthorized(_request: Request, _error: Exception) -> Response:
            return answers.data({"error": BAD_TOKEN, "login": True}, 401)

        @app.exception_handler(TooManyLogins)
        async def too_often(_request: Request, error: Exception) -> Response:
            seconds = str(error)
            answer = answers.refused(429, TOO_OFTEN.format(seconds))
            answer.headers["Retry-After"] = seconds
            return answer

    def about(self, request: Request) -> dict[str, bool]:
        """Whether the page offers to log out, and to show another namespace."""
        return {"logout": "authorization" not in request.headers, "choice": True}

    def closed(self) -> Response:
        """Has the page show the login form."""
        return answers.data({"error": LOG_IN, "login": True}, 401)

    async def viewer(self, request: Request) -> Viewer | None:
        """What the owner of the token may see; a proxy's header goes before a cookie."""
        header = request.headers.get("authorization")
        if header is not None:
            return await self._by_header(request, header)
        cookie = request.cookies.get(self.cookie)
        caller = self.sessions.find(cookie)
        return await self._verified(cookie, caller)

    async def _by_header(self, request: Request, header: str) -> Viewer | None:
        found, scope = _BEARER.fullmatch(header), request.cookies.get(NAMESPACE_COOKIE, "")
        if found is None or not _NAMESPACE.fullmatch(scope):
            return None
        key = f"bearer {found[1]} {scope}"
        caller = self.sessions.find(key)
        if caller is None:
            # A page sends several requests at once: they are one attempt.
            task = self._joining.get(key)
            if task is None:
                task = self._joining[key] = asyncio.create_task(self._added(request, key, found[1], scope))
                task.add_done_callback(lambda _task: self._joining.pop(key, None))
            caller = await asyncio.shield(task)
        return await self._verified(key, caller)

    async def _added(self, request: Request, key: str, token: str, namespace: str) -> Caller:
        caller = await self._let_in(request, token, namespace)
        caller.viewer.still = lambda: self.sessions.find(key) is not None
        self.sessions.add(key, caller, caller.key.user)
        return caller

    async def _let_in(self, request: Request, token: str, namespace: str) -> Caller:
        address = request.client.host if request.client else ""
        wait = self.limit.wait(address)
        if wait:
            raise TooManyLogins(f"{wait:.0f}" if wait > 1 else "1")
        caller = await self._join(token, namespace)
        self.limit.succeeded(address)
        return caller

    async def _join(self, token: str, namespace: str) -> Caller:
        return await self.viewers.join(token, namespace or None, self.sessions.drop_oldest)

    async def _verified(self, key: str | None, caller: Caller | None) -> Viewer | None:
        if caller is None:
            return None
        try:
            await self.viewers.verify(caller)
        except Unauthorized:
            self.sessions.close(key)
            return None
        except KubeError:
            # An API server that does not answer refuses nobody: what it is asked next says so.
            return caller.viewer
        return caller.viewer

    def _begin(self, answer: Response, caller: Caller) -> None:
        cookie = self.sessions.open(caller, caller.key.user)
        caller.viewer.still = lambda: self.sessions.find(cookie) is not None
        self._set(answer, self.cookie, cookie)

    def _set(self, answer: Response, name: str, value: str) -> None:
        answer.set_cookie(name, value, httponly=True, samesite="strict", secure=self.secure, path="/")

    async def sweep(self) -> None:
        """Ends sessions that nobody uses, until cancelled."""
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            self.sessions.sweep()


@asynccontextmanager
async def serving(
    viewers: Viewers, origins: frozenset[str], listener: socket.socket, tls: ssl.SSLContext | None = None
) -> AsyncIterator[ClusterEntrance]:
    """Runs the console of a cluster until the block ends."""
    secure = all(urlsplit(each).scheme == "https" for each in origins)
    entrance = ClusterEntrance(viewers, secure)
    server = BoundServer("console", application(entrance, AllowedOrigins(origins)), listener, tls)
    tasks = [asyncio.create_task(server.serve()), asyncio.create_task(entrance.sweep())]
    try:
        yield entrance
    finally:
        for each in viewers.shared.values():
            each.viewer.end()
        server.stop()
        await tasks[0]
        tasks[1].cancel()
        await asyncio.wait(tasks[1:])
        await viewers.stop()
        listener.close()

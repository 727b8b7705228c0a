"""The console of one user on this machine: one viewer, and a token that lets one browser in."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Annotated, Final

from fastapi import FastAPI, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from service.console import answers
from service.console.guard import AllowedOrigins
from service.console.server import application
from service.console.sessions import OneTimeToken, PageKeys, Sessions
from service.console.viewer import Viewer, ViewPlace
from service.http.servers import BoundServer, bound

LOOPBACK: Final = "127.0.0.1"
CLOSED: Final = "This browser has no session: open the address that 5spot console printed."
KEY_HEADER: Final = "x-5spot-key"
KEY_PARAMETER: Final = "key"
"""For the feed, as an EventSource sends no headers."""
USED: Final = "This address was used before: it opens the console once. Start 5spot console again for a new one."


class Given(BaseModel):
    """The token from the address."""

    model_config = ConfigDict(extra="forbid")

    token: Annotated[str, Field(min_length=1, max_length=128)]


@dataclass(slots=True)
class LocalEntrance:
    """Exchanges the token once for a cookie, and a key that the page sends beside it."""

    viewed: Viewer
    port: int
    token: OneTimeToken = field(default_factory=OneTimeToken)
    sessions: Sessions[Viewer] = field(default_factory=Sessions)
    keys: PageKeys = field(default_factory=PageKeys)

    @property
    def cookie(self) -> str:
        """Its name: cookies do not tell ports apart, and a machine may run two consoles."""
        return f"5spot-console-{self.port}"

    @property
    def address(self) -> str:
        """Where to open the console. What follows # stays in the browser until the page exchanges it."""
        return f"http://{LOOPBACK}:{self.port}/#token={self.token.text}"

    def routes(self, app: FastAPI) -> None:
        """Adds the exchange."""

        @app.post("/session")
        async def exchange(given: Given) -> Response:
            if not self.token.redeem(given.token):
                return answers.refused(403, USED)
            cookie = self.sessions.open(self.viewed)
            answer = answers.data({"key": self.keys.of(cookie)})
            answer.set_cookie(self.cookie, cookie, httponly=True, samesite="strict", path="/")
            return answer

    def about(self, request: Request) -> dict[str, bool]:  # noqa: ARG002
        """Nothing: it ends with the command that started it."""
        return {}

    def closed(self) -> Response:
        """Says where to find the address."""
        return answers.refused(401, CLOSED)

    async def viewer(self, request: Request) -> Viewer | None:
        """The one viewer, for a page with a session and its key."""
        cookie = request.cookies.get(self.cookie, "")
        given = request.headers.get(KEY_HEADER) or request.query_params.get(KEY_PARAMETER, "")
        return self.sessions.find(cookie) if self.keys.match(cookie, given) else None


@asynccontextmanager
async def serving(place: ViewPlace, port: int = 0) -> AsyncIterator[LocalEntrance]:
    """Runs the console until the block ends."""
    viewer = Viewer(place)
    listener = bound(LOOPBACK, port)
    listening = int(listener.getsockname()[1])
    entrance = LocalEntrance(viewer, listening)
    server = BoundServer("console", application(entrance, AllowedOrigins.loopback(listening)), listener)
    try:
        await viewer.start()
        listener.listen()  # so that a browser that opens the address at once waits for the server
        task = asyncio.create_task(server.serve())
        try:
            yield entrance
        finally:
            viewer.end()
            server.stop()
            await task
    finally:
        await viewer.stop()
        listener.close()

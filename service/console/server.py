"""The console as one application: its routes, its pages, and what errors become."""

from collections.abc import Mapping
from http import HTTPStatus
from importlib import resources
from pathlib import PurePosixPath
from typing import Final, Protocol

from fastapi import FastAPI, Request, Response
from fastapi.exception_handlers import http_exception_handler
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from service.console import answers, api
from service.console.api import NoSession
from service.console.guard import SAFE, AllowedOrigins, Guard
from service.console.viewer import Viewer
from service.fleet.overriding import PointlessError
from service.fleet.requests import RefusedError
from service.kube.errors import Forbidden, KubeError, NotFound

PAGES: Final = ("/", "/fleet", "/week", "/machine/{namespace}/{name}", "/calendars", "/overrides", "/report")
FOR_SCRIPTS: Final = ("api", "static")
"""What the addresses begin with that scripts ask for, and users do not type."""
TYPES: Final = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
STATUSES: Final[Mapping[type[Exception], int]] = {NotFound: 404, Forbidden: 403, RefusedError: 403, PointlessError: 409}


class Entrance(Protocol):
    """Lets browsers in."""

    def routes(self, app: FastAPI) -> None:
        """Adds the routes by which a browser gets its session."""
        ...

    def about(self, request: Request) -> dict[str, bool]:
        """What else a page offers: `logout`, and the `choice` of a namespace."""
        ...

    def closed(self) -> Response:
        """The answer to a browser that has no session."""
        ...

    async def viewer(self, request: Request) -> Viewer | None:
        """What the browser that sends a request may see; None if it was not let in."""
        ...


def application(entrance: Entrance, origins: AllowedOrigins) -> FastAPI:
    """The application behind its guard."""
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False)
    app.state.entrance = entrance
    app.include_router(api.router)
    entrance.routes(app)
    _add_pages(app)
    _add_errors(app, entrance)
    app.add_middleware(Guard, origins=origins)
    return app


def _add_pages(app: FastAPI) -> None:
    files = _files()

    async def page() -> Response:
        return files["index.html"]

    for path in PAGES:
        for address in {path, path.rstrip("/") + "/"}:
            app.api_route(address, methods=[*SAFE])(page)

    @app.api_route("/health", methods=[*SAFE])
    async def health() -> Response:
        return answers.data({"well": True})

    @app.api_route("/favicon.ico", methods=[*SAFE])
    async def icon() -> Response:
        return files["mark.svg"]

    @app.api_route("/static/{name}", methods=[*SAFE])
    async def static(name: str) -> Response:
        return files.get(name) or answers.refused(404, "There is no such file.")

    @app.exception_handler(HTTPException)
    async def unknown(request: Request, error: HTTPException) -> Response:
        if error.status_code != HTTPStatus.NOT_FOUND or not _typed(request):
            return await http_exception_handler(request, error)
        index = files["index.html"]
        return Response(index.body, error.status_code, headers=dict(index.headers))


def _typed(request: Request) -> bool:
    """Whether a request is for an address that a user may have typed, so that a page has to answer."""
    return request.method in SAFE and request.url.path.split("/")[1] not in FOR_SCRIPTS


def _files() -> dict[str, Response]:
    """All that pages load, from the package; browsers ask again each time, which loopback makes cheap."""
    found = {}
    for each in resources.files("service.console").joinpath("static").iterdir():
        kind = TYPES.get(PurePosixPath(each.name).suffix)
        if kind:
            found[each.name] = Response(each.read_bytes(), media_type=kind, headers={"Cache-Control": "no-cache"})
    return found


def _add_errors(app: FastAPI, entrance: Entrance) -> None:
    @app.exception_handler(NoSession)
    async def no_session(_request: Request, _error: Exception) -> Response:
        return entrance.closed()

    @app.exception_handler(RequestValidationError)
    async def invalid(_request: Request, error: RequestValidationError) -> Response:
        wrong = error.errors()[0]
        return answers.refused(422, f"{'.'.join(str(each) for each in wrong['loc'][1:])}: {wrong['msg']}"[:300])

    @app.exception_handler(KubeError)
    async def refused(_request: Request, error: KubeError) -> Response:
        return answers.refused(_status(error), error.message)

    @app.exception_handler(PointlessError)
    @app.exception_handler(RefusedError)
    async def explained(_request: Request, error: Exception) -> Response:
        return answers.refused(_status(error), str(error))


def _status(error: Exception) -> int:
    return next((status for kind, status in STATUSES.items() if isinstance(error, kind)), 502)

"""Liveness and readiness of the process, served on their own port."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

import orjson
from fastapi import FastAPI, Request, Response

Check = Callable[[], str | None]
"""Returns why something is not ready; None if it is."""


@dataclass(slots=True)
class Health:
    """The supervised tasks and the readiness checks; filled by `service.app`, probed by the kubelet."""

    tasks: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    checks: dict[str, Check] = field(default_factory=dict)
    stopping: bool = False

    def dead(self) -> dict[str, str]:
        """The supervised tasks that have ended; that there is an answer at all shows that the event loop runs."""
        if self.stopping:
            return {}
        return {name: "has ended" for name, task in self.tasks.items() if task.done()}

    def unready(self) -> dict[str, str]:
        """Why the process is not ready, by name of the check."""
        if self.stopping:
            return {"service": "is stopping"}
        reasons = {name: check() for name, check in self.checks.items()}
        return {name: reason for name, reason in reasons.items() if reason is not None} | self.dead()


def create_app(health: Health) -> FastAPI:
    """Serves `/health` and `/ready`."""
    app = FastAPI(title="5-Spot health", openapi_url=None, docs_url=None, redoc_url=None)
    app.add_route("/health", _answering(health.dead), methods=["GET"])
    app.add_route("/ready", _answering(health.unready), methods=["GET"])
    return app


def _answering(problems: Callable[[], dict[str, str]]) -> Callable[[Request], Response]:
    async def answer(_request: Request) -> Response:
        found = problems()
        body = orjson.dumps({"status": "unavailable" if found else "ok", "problems": found})
        return Response(body, 503 if found else 200, media_type="application/json")

    return answer  # type: ignore[return-value]

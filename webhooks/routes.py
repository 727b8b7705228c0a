"""The endpoints that API servers call: bounded reading, judging, and an answer whatever comes in."""

import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final, Protocol

import structlog
from fastapi import FastAPI
from fastapi.telemetry import TelemetryConfig
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from crds import names
from webhooks.answers import AdmissionOutcome, Answer
from webhooks.body import DROP_LIMIT, Body, TooLargeError
from webhooks.complexity import VALUES_MAX, too_complex
from webhooks.review import BODY_LIMIT, MalformedReviewError, Review, parse, refuse, uid_at_start
from webhooks.throttle import LIGHT_BYTES, BusyError, Throttle, is_light
from webhooks.verdict import Gate

log = structlog.get_logger(__name__)

Judge = Callable[[Review], Answer | Awaitable[Answer]]

CALENDARS: Final = (
    (names.VALIDATE_CALENDAR_PATH, names.CALENDAR_KIND),
    (names.VALIDATE_CLUSTER_CALENDAR_PATH, names.CLUSTER_CALENDAR_KIND),
)


_NO_TELEMETRY: Final[TelemetryConfig] = {"tracing": False, "metrics": False, "logs": False}
"""Otherwise each request asks the environment whether OpenTelemetry is set up; our metrics are Prometheus'."""


class Recorder(Protocol):
    """Counts and times answers; `webhook` is `validate` or `default`."""

    def answered(self, webhook: str, outcome: str, fields: tuple[str, ...]) -> None:
        """One request has been answered; `fields` are those found wrong."""
        ...

    def took(self, path: str, status: int, seconds: float) -> None:
        """How long that was, and with which HTTP status it ended."""
        ...


def _not_instrumented(_app: FastAPI) -> None:
    """Leaves what is no review unmeasured."""


def create_app(gate: Gate, recorder: Recorder, instrument: Callable[[FastAPI], None] = _not_instrumented) -> FastAPI:
    """The webhooks as an ASGI application; `instrument` adds what measures every request that is no review."""
    app = FastAPI(title="5-Spot admission", openapi_url=None, docs_url=None, redoc_url=None, telemetry=_NO_TELEMETRY)
    throttle = Throttle()
    endpoints = {
        path: WebhookEndpoint(webhook, judge, recorder, throttle, kind)
        for path, webhook, judge, kind in _webhooks(gate)
    }
    app.router.routes += [Route(path, endpoint, methods=["POST"]) for path, endpoint in endpoints.items()]
    instrument(app)
    app.add_middleware(Shortcut, endpoints)
    return app


class Shortcut:
    """Takes reviews to their endpoint at once; everything else goes through all layers to the router.

    These layers take as long as half the judgement: they try one path after the other, twice, and serve what the
    endpoints do not use. So it is the outermost one, and the endpoints time themselves.
    """

    def __init__(self, app: ASGIApp, endpoints: Mapping[str, ASGIApp]) -> None:
        self._layers = app
        self._endpoints = endpoints

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes one request on."""
        is_review = scope["type"] == "http" and scope["method"] == "POST"
        endpoint = self._endpoints.get(scope["path"]) if is_review else None
        await (endpoint or self._layers)(scope, receive, send)


def _webhooks(gate: Gate) -> Iterator[tuple[str, str, Judge, str]]:
    """Each path, with what it is called in the metrics, what judges there, and the kind that is judged."""
    yield names.VALIDATE_PATH, "validate", gate.validate, names.KIND
    yield names.MUTATE_PATH, "default", gate.default, names.KIND
    for path, kind in CALENDARS:
        yield path, "validate", gate.validate_calendar, kind
    yield names.VALIDATE_CLASS_PATH, "validate", gate.validate_class, names.CLASS_KIND
    yield names.VALIDATE_OVERRIDE_PATH, "validate", gate.overrides.validate, names.OVERRIDE_KIND
    yield names.MUTATE_OVERRIDE_PATH, "default", gate.overrides.default, names.OVERRIDE_KIND


@dataclass(frozen=True, slots=True)
class WebhookEndpoint:
    """One webhook, spoken to in bare ASGI: there are no dependencies to solve and no models to serialise."""

    webhook: str
    judge: Judge
    recorder: Recorder
    throttle: Throttle
    kind: str = names.KIND

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Reads, judges and answers one request."""
        started = time.perf_counter()
        try:
            answer, status = await self._answered(receive), HTTPStatus.OK
        except MalformedReviewError as error:
            answer = _refusal(error)
            status = HTTPStatus.OK if error.uid else error.status
        except TooLargeError:
            answer, status = _TOO_LARGE, HTTPStatus.REQUEST_ENTITY_TOO_LARGE
        except BusyError:
            answer, status = _BUSY, HTTPStatus.TOO_MANY_REQUESTS
        self.recorder.answered(self.webhook, answer.outcome, answer.fields)
        await _send(send, status, answer.body)
        self.recorder.took(scope["path"], status, time.perf_counter() - started)

    async def _answered(self, receive: Receive) -> Answer:
        body = await self._received(receive)
        if is_light(body):
            review = parse(body, self.kind)
            judged = self._judged(review)
        else:
            async with self.throttle.judging():
                review = self._read_heavy(body)
                judged = self._judged(review)
        return judged if isinstance(judged, Answer) else await self._finished(review, judged)

    def _read_heavy(self, body: bytes) -> Review:
        if too_complex(body):
            status = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
            raise MalformedReviewError(_TOO_COMPLEX, status=status, uid=uid_at_start(body))
        return parse(body, self.kind)

    def _judged(self, review: Review) -> Answer | Awaitable[Answer]:
        try:
            return self.judge(review)
        except Exception:  # the gate must answer, whatever a rule does
            log.exception(_RULE_FAILED, namespace=review.namespace, name=review.name, uid=review.uid)
            return _failed(review)

    async def _finished(self, review: Review, judged: Awaitable[Answer]) -> Answer:
        """The answer of a judge that has to ask elsewhere."""
        try:
            return await judged
        except Exception:  # likewise
            log.exception(_RULE_FAILED, namespace=review.namespace, name=review.name, uid=review.uid)
            return _failed(review)

    async def _received(self, receive: Receive) -> bytes:
        body = Body()
        body.take(await receive())
        if body.more:
            await body.receive(receive, LIGHT_BYTES)
        if body.more:
            async with self.throttle.receiving():
                await body.receive(receive, DROP_LIMIT)
        return body.whole()


def _failed(review: Review) -> Answer:
    message = "5-Spot failed while it checked this object; the log of the operator has the details"
    refusal = refuse(review.uid, HTTPStatus.INTERNAL_SERVER_ERROR, "InternalError", message)
    return Answer(refusal, AdmissionOutcome.FAILED)


async def _send(send: Send, status: int, body: bytes) -> None:
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": int(status), "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _refusal(error: MalformedReviewError) -> Answer:
    outcome = (
        AdmissionOutcome.TOO_LARGE
        if error.status is HTTPStatus.REQUEST_ENTITY_TOO_LARGE
        else AdmissionOutcome.MALFORMED
    )
    return Answer(refuse(error.uid, error.status, "BadRequest", error.message), outcome)


_RULE_FAILED: Final = "admission: a rule failed"
_TOO_COMPLEX: Final = (
    f"the object, its old version and their metadata must hold at most {VALUES_MAX} values together; "
    "put long lists of numbers, texts or objects into one text"
)
_TOO_LARGE: Final = Answer(
    refuse(
        "",
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        "RequestEntityTooLarge",
        f"the review must be smaller than {BODY_LIMIT} bytes",
    ),
    AdmissionOutcome.TOO_LARGE,
)
_BUSY: Final = Answer(
    refuse(
        "",
        HTTPStatus.TOO_MANY_REQUESTS,
        "TooManyRequests",
        "5-Spot is busy with other large reviews; try again",
    ),
    AdmissionOutcome.BUSY,
)

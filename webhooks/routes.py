"""The endpoints that API servers call: bounded reading, judging, and an answer whatever comes in."""

from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final, Protocol

import structlog
from fastapi import FastAPI
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from crds import names
from webhooks.body import DROP_LIMIT, Body, TooLargeError
from webhooks.complexity import VALUES_MAX, too_complex
from webhooks.review import BODY_LIMIT, MalformedReviewError, Review, parse, refuse, uid_at_start
from webhooks.throttle import LIGHT_BYTES, BusyError, Throttle, is_light
from webhooks.verdict import AdmissionOutcome, Answer, Gate

log = structlog.get_logger(__name__)

Judge = Callable[[Review], Answer]

CALENDARS: Final = (
    (names.VALIDATE_CALENDAR_PATH, names.CALENDAR_KIND),
    (names.VALIDATE_CLUSTER_CALENDAR_PATH, names.CLUSTER_CALENDAR_KIND),
)


class Recorder(Protocol):
    """Counts answers; `webhook` is `validate` or `default`."""

    def answered(self, webhook: str, outcome: str, fields: tuple[str, ...]) -> None:
        """One request has been answered; `fields` are those found wrong."""
        ...


def create_app(gate: Gate, recorder: Recorder) -> FastAPI:
    """The webhooks as an ASGI application."""
    app = FastAPI(title="5-Spot admission", openapi_url=None, docs_url=None, redoc_url=None)
    throttle = Throttle()
    app.router.routes += [
        Route(names.VALIDATE_PATH, WebhookEndpoint("validate", gate.validate, recorder, throttle), methods=["POST"]),
        Route(names.MUTATE_PATH, WebhookEndpoint("default", gate.default, recorder, throttle), methods=["POST"]),
        *(
            Route(path, WebhookEndpoint("validate", gate.validate_calendar, recorder, throttle, kind), methods=["POST"])
            for path, kind in CALENDARS
        ),
    ]
    return app


@dataclass(frozen=True, slots=True)
class WebhookEndpoint:
    """One webhook, spoken to in bare ASGI: there are no dependencies to solve and no models to serialise."""

    webhook: str
    judge: Judge
    recorder: Recorder
    throttle: Throttle
    kind: str = names.KIND

    async def __call__(self, _scope: Scope, receive: Receive, send: Send) -> None:
        """Reads, judges and answers one request."""
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

    async def _answered(self, receive: Receive) -> Answer:
        body = await self._received(receive)
        if is_light(body):
            return self._judged(body)
        async with self.throttle.judging():
            return self._judged(body)

    def _judged(self, body: bytes) -> Answer:
        if too_complex(body):
            status = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
            raise MalformedReviewError(_TOO_COMPLEX, status=status, uid=uid_at_start(body))
        review = parse(body, self.kind)
        try:
            return self.judge(review)
        except Exception:  # the gate must answer, whatever a rule does
            log.exception("admission: a rule failed", namespace=review.namespace, name=review.name, uid=review.uid)
            message = "5-Spot could not judge this object because of an error of its own; its log has the details"
            refusal = refuse(review.uid, HTTPStatus.INTERNAL_SERVER_ERROR, "InternalError", message)
            return Answer(refusal, AdmissionOutcome.FAILED)

    async def _received(self, receive: Receive) -> bytes:
        body = Body()
        body.take(await receive())
        if body.more:
            await body.receive(receive, LIGHT_BYTES)
        if body.more:
            async with self.throttle.receiving():
                await body.receive(receive, DROP_LIMIT)
        return body.whole()


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

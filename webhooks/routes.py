"""The two endpoints that API servers call: bounded reading, judging, and an answer whatever comes in."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final, Protocol

import structlog
from fastapi import FastAPI
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from crds import names
from webhooks.review import BODY_LIMIT, MalformedReviewError, Review, parse, refuse
from webhooks.verdict import Answer, Gate, Outcome

# What is over the limit is read and dropped up to this, so that the client gets to see the answer.
DROP_LIMIT: Final = 16 * 1024 * 1024
BODY_SECONDS: Final = 10.0

log = structlog.get_logger(__name__)

Judge = Callable[[Review], Answer]


class Recorder(Protocol):
    """Counts answers; `webhook` is `validate` or `default`."""

    def answered(self, webhook: str, outcome: str, fields: tuple[str, ...]) -> None:
        """One request has been answered; `fields` are those found wrong."""
        ...


class TooLargeError(Exception):
    """More was sent than any review can be long."""


def create_app(gate: Gate, recorder: Recorder) -> FastAPI:
    """The webhooks as an ASGI application."""
    app = FastAPI(title="5-Spot admission", openapi_url=None, docs_url=None, redoc_url=None)
    app.router.routes += [
        Route(names.VALIDATE_PATH, Endpoint("validate", gate.validate, recorder), methods=["POST"]),
        Route(names.MUTATE_PATH, Endpoint("default", gate.default, recorder), methods=["POST"]),
    ]
    return app


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One webhook, spoken to in bare ASGI: there are no dependencies to solve and no models to serialise."""

    webhook: str
    judge: Judge
    recorder: Recorder

    async def __call__(self, _scope: Scope, receive: Receive, send: Send) -> None:
        """Reads, judges and answers one request."""
        try:
            answer, status = _judged(self.judge, await _read(receive)), HTTPStatus.OK
        except MalformedReviewError as error:
            answer = _refusal(error)
            status = HTTPStatus.OK if error.uid else error.status
        except TooLargeError:
            answer, status = _TOO_LARGE, HTTPStatus.REQUEST_ENTITY_TOO_LARGE
        self.recorder.answered(self.webhook, answer.outcome, answer.fields)
        await _send(send, status, answer.body)


async def _send(send: Send, status: int, body: bytes) -> None:
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": int(status), "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _judged(judge: Judge, body: bytes) -> Answer:
    review = parse(body)
    try:
        return judge(review)
    except Exception:  # the gate must answer, whatever a rule does
        log.exception("admission: a rule failed", namespace=review.namespace, name=review.name, uid=review.uid)
        message = "5-Spot could not judge this object because of an error of its own; its log has the details"
        refusal = refuse(review.uid, HTTPStatus.INTERNAL_SERVER_ERROR, "InternalError", message)
        return Answer(refusal, Outcome.FAILED)


async def _read(receive: Receive) -> bytes:
    message = await receive()
    if message["type"] == "http.request" and not message.get("more_body", False):
        body: bytes = message.get("body", b"")
        if len(body) >= BODY_LIMIT:
            raise TooLargeError
        return body
    try:
        async with asyncio.timeout(BODY_SECONDS):
            return await _collect(message.get("body", b""), receive)
    except TimeoutError:
        raise MalformedReviewError("the body did not arrive in time", status=HTTPStatus.REQUEST_TIMEOUT) from None


async def _collect(first: bytes, receive: Receive) -> bytes:
    chunks, size, more = [first], len(first), True
    while more and size < DROP_LIMIT:
        message = await receive()
        if message["type"] != "http.request":
            raise MalformedReviewError("the connection ended within the body")
        chunk, more = message.get("body", b""), message.get("more_body", False)
        size += len(chunk)
        if size < BODY_LIMIT:
            chunks.append(chunk)
        else:
            chunks.clear()
    if size >= BODY_LIMIT:
        raise TooLargeError
    return b"".join(chunks)


def _refusal(error: MalformedReviewError) -> Answer:
    return Answer(refuse(error.uid, error.status, "BadRequest", error.message), Outcome.MALFORMED)


_TOO_LARGE: Final = Answer(
    refuse(
        "",
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        "RequestEntityTooLarge",
        f"the review must be smaller than {BODY_LIMIT} bytes",
    ),
    Outcome.TOO_LARGE,
)

"""The AdmissionReview envelope: reads what an API server asks and writes what it is answered.

Bytes in, bytes out. Whatever cannot be read raises `MalformedReviewError`, which says how to answer.
"""

import re
from binascii import b2a_base64
from http import HTTPStatus
from typing import Any, Final, NamedTuple

import orjson

from crds import names
from crds.bounds import DEPTH_MAX
from webhooks import nesting

REVIEW_VERSION: Final = "admission.k8s.io/v1"
REVIEW_KIND: Final = "AdmissionReview"
# An object is at most 1.5 MiB in etcd, and a review of an update carries two of them.
BODY_LIMIT: Final = 3 * 1024 * 1024
UID_LIMIT: Final = 256
# API servers write the uid first.
UID_WITHIN: Final = 1024
WARNINGS_LIMIT: Final = 10
WARNING_LENGTH: Final = 256
CAUSES_LIMIT: Final = 500
# kubectl prints the causes; the message is for those who see nothing else.
MESSAGE_LENGTH: Final = 16 * 1024

_UID: Final = re.compile(rb'"uid": ?"([^"\\]{1,256})"')

JSONPatch = list[dict[str, Any]]


class Review(NamedTuple):
    """What is to be judged."""

    uid: str
    operation: str
    namespace: str
    name: str
    subresource: str
    object: dict[str, Any] | None
    old: dict[str, Any] | None
    kind: str = names.KIND
    user: dict[str, Any] | None = None
    """Who makes the request."""


class Cause(NamedTuple):
    """One thing that is wrong, as `kubectl` lists it."""

    reason: str
    field: str
    message: str


class MalformedReviewError(Exception):
    """A request that is no review we could judge; `uid` is empty where the request did not get that far."""

    def __init__(self, message: str, *, status: HTTPStatus = HTTPStatus.BAD_REQUEST, uid: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.uid = uid


def parse(body: bytes, kind: str = names.KIND) -> Review:
    """Reads a review of an object of one of our kinds."""
    envelope = _decoded(body)
    request = envelope.get("request")
    if type(request) is not dict:
        raise MalformedReviewError("the AdmissionReview has no request")
    uid = _text(request, "uid")
    if not uid or len(uid) > UID_LIMIT:
        raise MalformedReviewError(f"request.uid must be a text of 1 to {UID_LIMIT} characters")
    if envelope.get("apiVersion") != REVIEW_VERSION or envelope.get("kind") != REVIEW_KIND:
        raise MalformedReviewError(f"only {REVIEW_KIND} of {REVIEW_VERSION} is understood here", uid=uid)
    _expect_kind(request, kind, uid)
    return Review(
        uid=uid,
        operation=_text(request, "operation", uid),
        namespace=_text(request, "namespace", uid),
        name=_text(request, "name", uid),
        subresource=_text(request, "subResource", uid),
        object=_object(request, "object", uid),
        old=_object(request, "oldObject", uid),
        kind=kind,
        user=_object(request, "userInfo", uid),
    )


def uid_at_start(body: bytes) -> str:
    """The uid of a review that is not read any further, where it stands as API servers write it; else nothing."""
    found = _UID.search(body, 0, UID_WITHIN)
    return found[1].decode(errors="replace") if found else ""


def allow(uid: str, warnings: tuple[str, ...] = (), patch: JSONPatch | None = None) -> bytes:
    """The answer that lets an object in, changed by `patch` if there is one."""
    response: dict[str, Any] = {"uid": uid, "allowed": True}
    if warnings:
        response["warnings"] = [_cut(text, WARNING_LENGTH) for text in warnings[:WARNINGS_LIMIT]]
    if patch:
        response["patchType"] = "JSONPatch"
        response["patch"] = _base64(orjson.dumps(patch))
    return _answer(response)


def refuse(uid: str, status: HTTPStatus, reason: str, message: str) -> bytes:
    """The answer that keeps an object out for a reason that is not about its fields."""
    body = {"status": "Failure", "code": int(status), "reason": reason, "message": _cut(message, MESSAGE_LENGTH)}
    return _answer({"uid": uid, "allowed": False, "status": body})


def reject(review: Review, causes: list[Cause]) -> bytes:
    """The answer that lists all that is wrong with an object, as the API server itself would write it."""
    kept = causes[:CAUSES_LIMIT]
    listed = "; ".join(f"{cause.field}: {cause.message}" for cause in kept)
    more = f"; and {len(causes) - len(kept)} more" if len(causes) > len(kept) else ""
    status = {
        "status": "Failure",
        "code": int(HTTPStatus.UNPROCESSABLE_ENTITY),
        "reason": "Invalid",
        "message": _cut(f'{review.kind} "{review.name}" is invalid: {listed}{more}', MESSAGE_LENGTH),
        "details": {
            "name": review.name,
            "group": names.GROUP,
            "kind": review.kind,
            "causes": [cause._asdict() for cause in kept],
        },
    }
    return _answer({"uid": review.uid, "allowed": False, "status": status})


def _decoded(body: bytes) -> dict[str, Any]:
    try:
        envelope = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        envelope = _decoded_in_part(body, error)
    if type(envelope) is not dict:
        raise MalformedReviewError(f"the body must be an {REVIEW_KIND}")
    return envelope


def _decoded_in_part(body: bytes, problem: orjson.JSONDecodeError) -> Any:
    """A review of an object that is nested too deeply for the decoder, with what lies deepest replaced."""
    try:
        return orjson.loads(nesting.cut(body))
    except orjson.JSONDecodeError:
        raise MalformedReviewError(f"the body is not JSON: {_cut(problem.msg, 200)}") from None
    except nesting.TooManyTokensError:
        message = f"the object is nested deeper than {DEPTH_MAX} levels and too large to be looked at more closely"
        raise MalformedReviewError(message, uid=uid_at_start(body)) from None


def _expect_kind(request: dict[str, Any], kind: str, uid: str) -> None:
    given = request.get("kind")
    expected = (
        type(given) is dict
        and given.get("kind") == kind
        and given.get("group") == names.GROUP
        and given.get("version") == names.VERSION
    )
    if not expected:
        raise MalformedReviewError(f"only {kind} of {names.API_VERSION} is judged here", uid=uid)


def _text(request: dict[str, Any], key: str, uid: str = "") -> str:
    value = request.get(key)
    if value is None:
        return ""
    if type(value) is not str:
        raise MalformedReviewError(f"request.{key} must be a text", uid=uid)
    return value


def _object(request: dict[str, Any], key: str, uid: str) -> dict[str, Any] | None:
    value = request.get(key)
    if value is None or type(value) is dict:
        return value
    raise MalformedReviewError(f"request.{key} must be an object", uid=uid)


def _answer(response: dict[str, Any]) -> bytes:
    return orjson.dumps({"apiVersion": REVIEW_VERSION, "kind": REVIEW_KIND, "response": response})


def _base64(content: bytes) -> str:
    return b2a_base64(content, newline=False).decode("ascii")


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"

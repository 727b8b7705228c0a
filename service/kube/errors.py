"""Errors of requests to an API server; the class says what to do next.

KubeError
├── Unavailable          try later (no connection, timeout, 5xx); a write may have been applied all the same
│   ├── Untrusted        the server's certificate is not signed by the CA we were given: read credentials again
│   ├── TooLarge         the answer exceeds a limit: request less
│   ├── Unreadable       the server sent something that is not a valid object: skip it
│   ├── TooManyRequests  429: try after `retry_after`
│   └── Blocked          429 to an eviction: a PodDisruptionBudget does not allow it now; the message names it
├── Conflict             read again: the object changed (409), or another has its name (422 to its uid)
├── AlreadyExists        read again: the object exists, perhaps from our own earlier try (409)
├── NotFound             read again: it does not exist (404); `missing_kind` if the server does not serve the kind
├── Expired              list again: the resourceVersion is too old (410)
├── Unauthorized         our credentials were refused, even after reading them again (401)
└── Rejected             a user must act (400 and other 4xx)
    ├── Forbidden        a permission is missing, or the namespace is being deleted (403)
    │   └── QuotaExceeded  a ResourceQuota refuses it (403)
    ├── Denied           an admission webhook or policy refuses it (any 4xx but 409, 422 and 429)
    └── Invalid          the object breaks its schema (422); `causes` says where
"""

import re
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import orjson

from crds.text import one_line

MESSAGE_LIMIT = 1024
MAX_RETRY_AFTER = 60.0
"""The limit for Retry-After: a load balancer may name an hour and be back in a minute."""
NAMESPACE_TERMINATING = "NamespaceTerminating"
"""The cause that an API server gives when it refuses to create an object in a namespace that is being deleted."""
_MAX_CAUSES = 16
_NOT_READY = "not yet ready to handle request"
_SUBJECT = r'[a-z0-9./-]+ (?:"[^"]*" )?is forbidden: '
"""How the API server begins its own 403 messages: with the resource and, if there is one, the object's name."""
_DENIED = re.compile(rf"admission webhook \"[^\"]*\" denied the request|{_SUBJECT}ValidatingAdmissionPolicy '")
_QUOTA = re.compile(rf"{_SUBJECT}exceeded quota: ")
_PHRASES = {status.value: status.phrase for status in HTTPStatus}


@dataclass(frozen=True, slots=True)
class StatusCause:
    """One entry of a Status's `details.causes`."""

    reason: str
    message: str
    field: str


class KubeError(Exception):
    """A request failed; `reason` and `causes` come from the API server."""

    def __init__(
        self,
        message: str,
        *,
        status: int = 0,
        reason: str = "",
        causes: tuple[StatusCause, ...] = (),
        retry_after: float | None = None,
    ) -> None:
        super().__init__(bounded(message))
        self.status = status
        self.reason = reason
        self.causes = causes
        self.retry_after = retry_after

    @property
    def message(self) -> str:
        """One line, bounded, fit for a status or an event."""
        return str(self.args[0])

    @property
    def namespace_terminating(self) -> bool:
        """Whether the object cannot be created because its namespace is being deleted."""
        return any(cause.reason == NAMESPACE_TERMINATING for cause in self.causes)


class Unavailable(KubeError):
    """Try later. A write that ended so may have been applied."""


class Disconnected(Unavailable):
    """No answer: the server or a proxy closed the connection, most often because it was idle."""


class Untrusted(Unavailable):
    """The certificate of the server is not signed by the given CA."""


class TooLarge(Unavailable):
    """The answer has more bytes or values than allowed."""


class Unreadable(Unavailable):
    """An object lacks a field that every object has, or the field is malformed."""


class TooManyRequests(Unavailable):
    """The server limits requests; try after `retry_after` seconds if it gives them."""


class Blocked(Unavailable):
    """A PodDisruptionBudget does not allow this eviction now."""


class Conflict(KubeError):
    """The object differs from the version that the request names: read it again."""


class AlreadyExists(KubeError):
    """An object of that name exists: read it."""


class NotFound(KubeError):
    """No such object, or no such kind."""

    missing_kind = False


class Expired(KubeError):
    """The resourceVersion is older than the history of the server."""


class Unauthorized(KubeError):
    """The server does not accept our credentials."""


class Rejected(KubeError):
    """The same request fails again until a user changes something."""


class Forbidden(Rejected):
    """Not permitted: RBAC, a quota or a terminating namespace."""


class QuotaExceeded(Forbidden):
    """A ResourceQuota is exhausted."""


class Denied(Rejected):
    """An admission webhook or a ValidatingAdmissionPolicy refused the object; the message quotes it."""


class Invalid(Rejected):
    """The object does not fit its schema."""


def bounded(text: str, limit: int = MESSAGE_LIMIT) -> str:
    """`text` on one line, without control characters, at most `limit` characters long."""
    return one_line(text, limit)


def from_response(status: int, body: bytes, *, retry_after: str | None, what: str) -> KubeError:
    """The error for an answer that is not 2xx; `what` names the request, such as `get machines a/b`."""
    return from_status(_parse(status, body), retry_after=_seconds(retry_after), what=what)


def from_status(answer: dict[str, Any], *, what: str, retry_after: float | None = None) -> KubeError:
    """The error that a `Status` object describes, from an answer or from inside a watch.

    It may come from a workload cluster and contain anything; the result is always a `KubeError`.
    """
    details = _mapping(answer.get("details"))
    code = _effective_code(_whole(answer.get("code")), answer)
    reason = str(answer.get("reason") or "")
    causes = tuple(_cause(_mapping(raw)) for raw in _listed(details.get("causes"))[:_MAX_CAUSES])
    kind = _refusal(code, str(answer.get("message"))) or _class_for(code, reason, causes)
    error = kind(
        _sentence(what, code, answer, causes),
        status=code,
        reason=reason,
        causes=causes,
        retry_after=_seconds(details.get("retryAfterSeconds")) if retry_after is None else retry_after,
    )
    if isinstance(error, NotFound):
        error.missing_kind = not details.get("name")
    return error


def _effective_code(code: int, answer: dict[str, Any]) -> int:
    """503 instead of the 403 that a starting API server sends while it has not read its admission configuration."""
    starting = code == 403 and _NOT_READY in str(answer.get("message"))
    return 503 if starting else code


def _refusal(code: int, message: str) -> type[KubeError] | None:
    """Finds out from the message what refused a request: RBAC, quotas, webhooks and policies may all answer 403."""
    if code == 403 and _QUOTA.match(message):
        return QuotaExceeded
    if 400 <= code < 500 and code not in _NOT_A_REFUSAL and _DENIED.match(message):
        return Denied
    return None


_NOT_A_REFUSAL = frozenset({409, 422, 429})
"""These codes mean: read again, correct the object, try later, whatever component sent them."""


def _class_for(code: int, reason: str, causes: tuple[StatusCause, ...]) -> type[KubeError]:
    if code == 429:
        return Blocked if any(cause.reason == "DisruptionBudget" for cause in causes) else TooManyRequests
    if code == 409:
        return AlreadyExists if reason == "AlreadyExists" else Conflict
    if code == 422 and any(cause.field == "metadata.uid" for cause in causes):
        return Conflict  # the patch names the uid of another object of that name
    if code >= 500 or code < 400:
        return Unavailable
    return _BY_CODE.get(code, Rejected)


_BY_CODE: dict[int, type[KubeError]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    408: Unavailable,
    410: Expired,
    422: Invalid,
}


def _sentence(what: str, code: int, answer: dict[str, Any], causes: tuple[StatusCause, ...]) -> str:
    message = str(answer.get("message") or answer.get("reason") or "no explanation")
    # The message for a blocked eviction is generic; its cause names the budget.
    extra = [cause.message for cause in causes if cause.message and cause.message not in message]
    return f"{what}: {'; '.join([message, *extra])} ({code})"


def _cause(raw: dict[str, Any]) -> StatusCause:
    return StatusCause(
        reason=bounded(str(raw.get("reason") or ""), 64),
        message=bounded(str(raw.get("message") or ""), 512),
        field=bounded(str(raw.get("field") or ""), 256),
    )


def _parse(status: int, body: bytes) -> dict[str, Any]:
    try:
        answer = orjson.loads(body)
    except orjson.JSONDecodeError:
        answer = None
    if isinstance(answer, dict) and answer.get("kind") == "Status":
        return answer | {"code": status}
    # Not a Status: from a proxy, or for a path that the server does not know. The body is not quoted, as a kubeconfig
    # may point to any server, and the readers of our messages may not be allowed to read its answers.
    return {"code": status, "message": _PHRASES.get(status, "not an answer of an API server")}


def _seconds(value: Any) -> float | None:
    try:
        asked = float(value or 0)
    except (TypeError, ValueError):
        return None  # an HTTP date: API servers send seconds
    return min(asked, MAX_RETRY_AFTER) if asked > 0 else None


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _whole(value: Any) -> int:
    return value if isinstance(value, int) else 0

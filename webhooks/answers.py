"""What a webhook answers, and what it amounts to; shared by the gates of all kinds."""

from enum import StrEnum
from typing import Final, NamedTuple

import orjson

from crds.changes import merely_being_deleted
from crds.violations import JSONScalar, Violation, ViolationReason
from webhooks.review import Cause, Review, allow, reject

JUDGED: Final = frozenset({"CREATE", "UPDATE"})


class AdmissionOutcome(StrEnum):
    """How a request ended, for the metrics."""

    ALLOWED = "allowed"
    WARNED = "allowed_with_warning"
    DEFAULTED = "defaulted"
    NOT_JUDGED = "not_judged"
    INVALID = "invalid"
    FORBIDDEN = "forbidden"
    MALFORMED = "malformed"
    TOO_LARGE = "too_large"
    BUSY = "busy"
    FAILED = "internal_error"


class Answer(NamedTuple):
    """The body to send and what it amounts to."""

    body: bytes
    outcome: AdmissionOutcome
    fields: tuple[str, ...] = ()


def not_ours_to_judge(review: Review) -> bool:
    """Whether a request is none that the rulebook has a say in, such as a deletion."""
    if review.operation not in JUDGED or review.subresource:
        return True
    return review.operation == "UPDATE" and merely_being_deleted(review.object or {}, review.old or {})


def allowed(review: Review, warnings: tuple[str, ...] = ()) -> Answer:
    """The answer that lets an object in, with what is suspicious about it."""
    return Answer(allow(review.uid, warnings), AdmissionOutcome.WARNED if warnings else AdmissionOutcome.ALLOWED)


def rejection(review: Review, violations: tuple[Violation, ...]) -> Answer:
    """The answer that lists all that is wrong."""
    causes = [_cause(violation) for violation in violations]
    return Answer(reject(review, causes), AdmissionOutcome.INVALID, tuple(cause.field for cause in causes))


def _cause(violation: Violation) -> Cause:
    message = violation.message
    if violation.reason is not ViolationReason.REQUIRED:
        message = f"Invalid value: {_written(violation.value)}: {message}"
    return Cause(reason=violation.reason.value, field=violation.field, message=message)


def _written(value: JSONScalar) -> str:
    # Text comes escaped already; encoding it as JSON would do that twice.
    return f'"{value}"' if isinstance(value, str) else orjson.dumps(value).decode()

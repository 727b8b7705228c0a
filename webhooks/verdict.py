"""May it be stored: turns a review into the answer by the rulebook in `crds.rules`; pure but for lookups.

Deletion is never blocked; an edit of the spec of an object that is being deleted is judged like any other.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, NamedTuple

import orjson

from crds.calendarrules import check_calendar
from crds.calendars import CalendarKind
from crds.changes import merely_being_deleted
from crds.defaults import cleared
from crds.providers import DEFAULT_POLICY, ProviderPolicy
from crds.rules import Verdict, check
from crds.violations import JSONScalar, Violation, ViolationReason, printable
from webhooks import calendars
from webhooks.calendars import CalendarLookup, CalendarUsers
from webhooks.defaults import patch_for
from webhooks.review import Cause, Review, allow, reject

JUDGED: Final = frozenset({"CREATE", "UPDATE"})

ClusterLookup = Callable[[str, str], bool | None]
"""Whether a Cluster exists, by namespace and name, from memory; None if nobody knows."""


class AdmissionOutcome(StrEnum):
    """How a request ended, for the metrics."""

    ALLOWED = "allowed"
    WARNED = "allowed_with_warning"
    DEFAULTED = "defaulted"
    NOT_JUDGED = "not_judged"
    INVALID = "invalid"
    MALFORMED = "malformed"
    TOO_LARGE = "too_large"
    BUSY = "busy"
    FAILED = "internal_error"


class Answer(NamedTuple):
    """The body to send and what it amounts to."""

    body: bytes
    outcome: AdmissionOutcome
    fields: tuple[str, ...] = ()


def unknown_cluster(_namespace: str, _name: str) -> bool | None:
    """The lookup of a service that watches no Clusters."""
    return None


@dataclass(frozen=True, slots=True)
class Gate:
    """All webhooks, with what the operator allows and what it knows of the cluster."""

    policy: ProviderPolicy = DEFAULT_POLICY
    cluster_exists: ClusterLookup = unknown_cluster
    calendar_exists: CalendarLookup = calendars.existence_unknown
    calendar_users: CalendarUsers = calendars.users_unknown

    def validate(self, review: Review) -> Answer:
        """Lists everything that is wrong with the object, or lets it in with what is suspicious about it."""
        if _not_ours_to_judge(review):
            return Answer(allow(review.uid), AdmissionOutcome.NOT_JUDGED)
        verdict = self._judged(review, review.object)
        if verdict.violations:
            return _rejection(review, verdict.violations)
        warnings = (*verdict.warnings, *self._missing_cluster(review), *self._missing_calendars(review, verdict))
        return Answer(allow(review.uid, warnings), AdmissionOutcome.WARNED if warnings else AdmissionOutcome.ALLOWED)

    def validate_calendar(self, review: Review) -> Answer:
        """Lists everything that is wrong with a calendar, and warns if one goes that schedules name."""
        if review.operation == "DELETE" and not review.subresource:
            warnings = tuple(calendars.in_use(review, self.calendar_users))
            return Answer(
                allow(review.uid, warnings), AdmissionOutcome.WARNED if warnings else AdmissionOutcome.ALLOWED
            )
        if _not_ours_to_judge(review):
            return Answer(allow(review.uid), AdmissionOutcome.NOT_JUDGED)
        old = review.old if review.operation == "UPDATE" else None
        verdict = check_calendar(review.object, kind=CalendarKind(review.kind), old=old)
        if verdict.violations:
            return _rejection(review, verdict.violations)
        return Answer(allow(review.uid), AdmissionOutcome.ALLOWED)

    def default(self, review: Review) -> Answer:
        """Adds what is absent, and refuses what is wrong already.

        The CRD's schema is asked next, and would name only a part of it, in the API server's words. What is missing is
        left for later: another webhook may still add it.
        """
        if _not_ours_to_judge(review):
            return Answer(allow(review.uid), AdmissionOutcome.NOT_JUDGED)
        violations = self._judged(review, cleared(review.object, review.old)).violations
        if any(violation.reason is not ViolationReason.REQUIRED for violation in violations):
            return _rejection(review, violations)
        patch = patch_for(review)
        return Answer(allow(review.uid, patch=patch), AdmissionOutcome.DEFAULTED if patch else AdmissionOutcome.ALLOWED)

    def _judged(self, review: Review, given: dict[str, Any] | None) -> Verdict:
        return check(given, policy=self.policy, old=review.old if review.operation == "UPDATE" else None)

    def _missing_calendars(self, review: Review, verdict: Verdict) -> Iterator[str]:
        if verdict.model is not None:
            yield from calendars.missing(verdict.model, review.namespace, self.calendar_exists)

    def _missing_cluster(self, review: Review) -> Iterator[str]:
        spec = (review.object or {}).get("spec") or {}
        name = spec.get("clusterName")
        if isinstance(name, str) and self.cluster_exists(review.namespace, name) is False:
            yield (
                f"spec.clusterName: there is no Cluster {printable(name, 63)} in namespace "
                f"{printable(review.namespace, 63)} yet; no machine is created until there is one"
            )


def _not_ours_to_judge(review: Review) -> bool:
    if review.operation not in JUDGED or review.subresource:
        return True
    return review.operation == "UPDATE" and merely_being_deleted(review.object or {}, review.old or {})


def _rejection(review: Review, violations: tuple[Violation, ...]) -> Answer:
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

"""May it be stored: turns a review into the answer by the rulebook in `crds.rules`; pure but for lookups.

Deletion is never blocked; an edit of the spec of an object that is being deleted is judged like any other.
"""

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from crds.calendarrules import check_calendar
from crds.calendars import CalendarKind
from crds.classes import Tenancy
from crds.classrules import check_class
from crds.defaults import cleared
from crds.providers import DEFAULT_POLICY, ProviderPolicy
from crds.rules import Verdict, check
from crds.violations import ViolationReason, printable
from webhooks import calendars, classes
from webhooks.answers import AdmissionOutcome, Answer, allowed, not_ours_to_judge, rejection
from webhooks.calendars import CalendarLookup, CalendarUsers
from webhooks.classes import ClassLookups, NamespaceUnknownError
from webhooks.defaults import patch_for
from webhooks.overrides import OverrideGate
from webhooks.review import Review, allow, refuse

ClusterLookup = Callable[[str, str], bool | None]
"""Whether a Cluster exists, by namespace and name, from the cache; None if it is not known."""


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
    overrides: OverrideGate = OverrideGate()  # noqa: RUF009 - frozen
    classes: ClassLookups = ClassLookups()  # noqa: RUF009 - frozen

    def validate(self, review: Review) -> Answer | Awaitable[Answer]:
        """Lists everything that is wrong with the object, or lets it in with what is suspicious about it."""
        return self._with_tenancy(review, self._validated)

    def _with_tenancy(self, review: Review, judge: Callable[[Review, Tenancy], Answer]) -> Answer | Awaitable[Answer]:
        """The answer of a judge who knows what the namespace is; asks for one that is too new to be in memory."""
        if not_ours_to_judge(review):
            return Answer(allow(review.uid), AdmissionOutcome.NOT_JUDGED)
        labels = self.classes.labels(review.namespace) if review.namespace else {}
        if labels is None:
            return self._after_asking(review, judge)
        return judge(review, self.classes.tenancy(review.namespace, labels))

    async def _after_asking(self, review: Review, judge: Callable[[Review, Tenancy], Answer]) -> Answer:
        try:
            labels = await self.classes.ask(review.namespace)
        except NamespaceUnknownError as error:
            message = f"5-Spot could not find out what namespace {printable(review.namespace, 63)} allows: {error}"
            refusal = refuse(review.uid, HTTPStatus.SERVICE_UNAVAILABLE, "ServiceUnavailable", f"{message}; try again")
            return Answer(refusal, AdmissionOutcome.FAILED)
        return judge(review, self.classes.tenancy(review.namespace, labels))

    def _validated(self, review: Review, tenancy: Tenancy) -> Answer:
        verdict = self._judged(review, review.object, tenancy)
        if verdict.violations:
            return rejection(review, verdict.violations)
        warnings = (*verdict.warnings, *self._missing_cluster(review), *self._missing_calendars(review, verdict))
        return allowed(review, warnings)

    def validate_calendar(self, review: Review) -> Answer:
        """Lists everything that is wrong with a calendar, and warns if one that schedules name is deleted."""
        if review.operation == "DELETE" and not review.subresource:
            return allowed(review, tuple(calendars.in_use(review, self.calendar_users)))
        if not_ours_to_judge(review):
            return Answer(allow(review.uid), AdmissionOutcome.NOT_JUDGED)
        old = review.old if review.operation == "UPDATE" else None
        verdict = check_calendar(review.object, kind=CalendarKind(review.kind), old=old)
        if verdict.violations:
            return rejection(review, verdict.violations)
        return Answer(allow(review.uid), AdmissionOutcome.ALLOWED)

    def validate_class(self, review: Review) -> Answer:
        """Lists everything that is wrong with a class, and warns if one that ScheduledMachines name is deleted."""
        if review.operation == "DELETE" and not review.subresource:
            return allowed(review, tuple(classes.in_use(review, self.classes)))
        if not_ours_to_judge(review):
            return Answer(allow(review.uid), AdmissionOutcome.NOT_JUDGED)
        old = review.old if review.operation == "UPDATE" else None
        verdict = check_class(review.object, policy=self.policy, old=old)
        if verdict.violations:
            return rejection(review, verdict.violations)
        return allowed(review, verdict.warnings)

    def default(self, review: Review) -> Answer | Awaitable[Answer]:
        """Adds what is absent, and refuses what is wrong already.

        The CRD's schema is asked next, and would name only a part of it, in the API server's words. What is missing is
        left for later: another webhook may still add it.
        """
        return self._with_tenancy(review, self._defaulted)

    def _defaulted(self, review: Review, tenancy: Tenancy) -> Answer:
        violations = self._judged(review, cleared(review.object, review.old), tenancy).violations
        if any(violation.reason is not ViolationReason.REQUIRED for violation in violations):
            return rejection(review, violations)
        patch = patch_for(review)
        return Answer(allow(review.uid, patch=patch), AdmissionOutcome.DEFAULTED if patch else AdmissionOutcome.ALLOWED)

    def _judged(self, review: Review, given: dict[str, Any] | None, tenancy: Tenancy) -> Verdict:
        old = review.old if review.operation == "UPDATE" else None
        return check(given, policy=self.policy, tenancy=tenancy, old=old)

    def _missing_calendars(self, review: Review, verdict: Verdict) -> Iterator[str]:
        if verdict.written is not None:
            yield from calendars.missing(verdict.written.schedule, review.namespace, self.calendar_exists)

    def _missing_cluster(self, review: Review) -> Iterator[str]:
        spec = (review.object or {}).get("spec") or {}
        name = spec.get("clusterName")
        if isinstance(name, str) and self.cluster_exists(review.namespace, name) is False:
            yield (
                f"spec.clusterName: there is no Cluster {printable(name, 63)} in namespace "
                f"{printable(review.namespace, 63)} yet; no machine is created until there is one"
            )

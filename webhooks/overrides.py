"""Admission of overrides: who asks is written into them, and may do so only with the right on every machine.

The right is asked for through a function, which the service connects with the API server; an answer that cannot be had
refuses the request.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Any, Final

from crds import names
from crds.changes import same
from crds.overriderules import DEFAULT_LONGEST, OverrideVerdict, check_override, end_warnings, spec_of
from crds.scheduleoverride import OverrideSpec
from crds.violations import Violation, ViolationReason, printable
from webhooks.answers import AdmissionOutcome, Answer, allowed, not_ours_to_judge, rejection
from webhooks.review import JSONPatch, Review, allow, refuse

User = Mapping[str, Any]
"""A caller, as the API server names one in `request.userInfo`."""
Rights = Callable[[User, str, Sequence[str]], Awaitable[Sequence[str]]]
"""Those of the ScheduledMachines of a namespace that a user may not override; the name "" stands for all of them."""
MachineLookup = Callable[[str, str], bool | None]
"""Whether a ScheduledMachine exists, by namespace and name, from memory; None if that is not known."""

ALL: Final = ""
RESOURCE: Final = f"{names.PLURAL}.{names.GROUP}"


class RightsUnknownError(Exception):
    """The API server did not say what a user may do; the message says why."""


async def rights_unknown(_user: User, _namespace: str, _names: Sequence[str]) -> Sequence[str]:
    """For a service that has no API server to ask."""
    raise RightsUnknownError("there is no API server to ask")


def existence_unknown(_namespace: str, _name: str) -> bool | None:
    """The lookup of a service that watches no ScheduledMachines."""
    return None


def _real_time() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class OverrideGate:
    """Both webhooks of overrides."""

    denied: Rights = rights_unknown
    machine_exists: MachineLookup = existence_unknown
    now: Callable[[], datetime] = _real_time
    longest: timedelta = DEFAULT_LONGEST
    """How long after its acceptance an override may end."""

    def default(self, review: Review) -> Answer:
        """Writes the caller into `requestedBy`, and refuses what is wrong already."""
        if not_ours_to_judge(review):
            return Answer(allow(review.uid), AdmissionOutcome.NOT_JUDGED)
        patch = _requested_by(review)
        given = review.object or {}
        if patch:
            given = {**given, "spec": {**spec_of(given), "requestedBy": patch[0]["value"]}}
        violations = (*_judged(review, given).violations, *_forged(review, given))
        if any(violation.reason is not ViolationReason.REQUIRED for violation in violations):
            return rejection(review, violations)
        return Answer(allow(review.uid, patch=patch), AdmissionOutcome.DEFAULTED if patch else AdmissionOutcome.ALLOWED)

    def validate(self, review: Review) -> Answer | Awaitable[Answer]:
        """Lists everything that is wrong with the override, then asks whether its author may override."""
        if not_ours_to_judge(review):
            return Answer(allow(review.uid), AdmissionOutcome.NOT_JUDGED)
        given = review.object or {}
        verdict = _judged(review, given)
        violations = (*verdict.violations, *_forged(review, given))
        if violations:
            return rejection(review, violations)
        if not _asks(review):
            return Answer(allow(review.uid), AdmissionOutcome.ALLOWED)
        return self._permitted(review, verdict.spec)

    async def _permitted(self, review: Review, spec: OverrideSpec | None) -> Answer:
        wanted = _wanted(spec_of(review.object))
        try:
            denied = await self.denied(_user(review), review.namespace, wanted)
        except RightsUnknownError as error:
            message = f"5-Spot could not find out whether you may override: {error}; try again"
            return Answer(
                refuse(review.uid, HTTPStatus.SERVICE_UNAVAILABLE, "ServiceUnavailable", message),
                AdmissionOutcome.FAILED,
            )
        if denied:
            message = _refusal(_name_of(review), review.namespace, denied)
            return Answer(refuse(review.uid, HTTPStatus.FORBIDDEN, "Forbidden", message), AdmissionOutcome.FORBIDDEN)
        return allowed(review, tuple(self._warnings(review, spec)) if spec else ())

    def _warnings(self, review: Review, spec: OverrideSpec) -> Iterator[str]:
        missing = [each for each in spec.machines if self.machine_exists(review.namespace, each) is False]
        if missing:
            yield (
                f"spec.machines: there is no ScheduledMachine {', '.join(missing)} in namespace "
                f"{printable(review.namespace, 63)} yet; the override counts for it as soon as there is"
            )
        yield from end_warnings(spec, review.old, self.now(), self.longest)


def _judged(review: Review, given: Mapping[str, Any]) -> OverrideVerdict:
    return check_override(given, old=review.old if review.operation == "UPDATE" else None)


def _asks(review: Review) -> bool:
    """Whether the caller creates the override or moves its end, and so becomes the one who requested it."""
    if review.operation == "CREATE":
        return True
    return not same(spec_of(review.object).get("until"), spec_of(review.old).get("until"))


def _user(review: Review) -> User:
    return review.user or {}


def _name_of(review: Review) -> str:
    name = _user(review).get("username")
    return name if isinstance(name, str) else ""


def _requested_by(review: Review) -> JSONPatch:
    """Writes the caller where nothing is given, and over the name of an earlier one that an update carries along."""
    spec = spec_of(review.object)
    given = spec.get("requestedBy")
    before = spec_of(review.old).get("requestedBy") if review.operation == "UPDATE" else None
    right = _name_of(review) if _asks(review) else before
    if not spec or right is None or given == right or given not in (None, before):
        return []
    return [{"op": "add", "path": "/spec/requestedBy", "value": right}]


def _forged(review: Review, given: Mapping[str, Any]) -> Iterator[Violation]:
    """A name that is not the caller's."""
    name = spec_of(dict(given)).get("requestedBy")
    if _asks(review) and name != _name_of(review):
        message = f"must be {printable(_name_of(review))}, the user who creates the override or changes until"
        yield Violation.of("spec.requestedBy", name, message, ViolationReason.FORBIDDEN)


def _wanted(spec: Mapping[str, Any]) -> tuple[str, ...]:
    """The machines that the caller needs the right on."""
    machines = spec.get("machines")
    return tuple(dict.fromkeys(machines)) if machines else (ALL,)


def _refusal(user: str, namespace: str, denied: Sequence[str]) -> str:
    """What the user lacks, and the rule that grants it."""
    everything = ALL in denied
    named = "all ScheduledMachines" if everything else f"ScheduledMachine {', '.join(denied)}"
    only = "" if everything else f"resourceNames: [{', '.join(denied)}], "
    hint = "; a selector needs the verb without resourceNames" if everything else ""
    return (
        f"user {printable(user)} may not override {named} in namespace {printable(namespace, 63)}: that needs the verb "
        f"{names.OVERRIDE_VERB} on {RESOURCE}{hint}. A Role in that namespace grants it with the rule "
        f"{{apiGroups: [{names.GROUP}], resources: [{names.PLURAL}], {only}verbs: [{names.OVERRIDE_VERB}]}}"
    )

"""The failure that the status reports for a failed action: a reason, and a message that says what to do."""

from datetime import timedelta
from typing import Final

from service.decide.outcome import Failure
from service.decide.plan import Action, Create
from service.decide.reasons import Reason
from service.kube.errors import (
    AlreadyExists,
    Denied,
    Forbidden,
    Invalid,
    KubeError,
    NotFound,
    QuotaExceeded,
    Rejected,
    Unauthorized,
)
from service.workload.connection import WorkloadUnreachable


def failure_from(action: Action, error: KubeError) -> Failure:
    """The failure that an error of an action means."""
    after = error.retry_after
    return Failure(
        action=action,
        reason=_reason(action, error),
        message=_sentence(action, error),
        retry_after=timedelta(seconds=after) if after else None,
    )


_ON_CREATION: Final = {
    AlreadyExists: Reason.FOREIGN_OBJECT,
    NotFound: Reason.PROVIDER_NOT_FOUND,
    Invalid: Reason.PROVIDER_REJECTED,
    Denied: Reason.PROVIDER_REJECTED,
    QuotaExceeded: Reason.QUOTA_EXCEEDED,
}
_ALWAYS: Final = {
    WorkloadUnreachable: Reason.WORKLOAD_CLUSTER_UNREACHABLE,
    Forbidden: Reason.FORBIDDEN,
    Rejected: Reason.REJECTED,
    Unauthorized: Reason.UNAUTHORIZED,
    KubeError: Reason.API_UNAVAILABLE,
}
"""The first class that fits names the reason."""


def _reason(action: Action, error: KubeError) -> Reason:
    if error.namespace_terminating:
        return Reason.NAMESPACE_TERMINATING
    known = {**_ON_CREATION, **_ALWAYS} if isinstance(action, Create) else _ALWAYS
    return next(reason for kind, reason in known.items() if isinstance(error, kind))


def _sentence(action: Action, error: KubeError) -> str:
    text = error.message
    if not isinstance(action, Create):
        return text
    what = f"{action.manifest['kind']} {action.manifest['metadata']['name']}"
    if error.namespace_terminating:
        return f"Cannot create {what}: its namespace is being deleted."
    match error:
        case AlreadyExists():
            return f"{what} exists and belongs to another owner. Delete or rename it, or rename this ScheduledMachine."
        case NotFound():
            return f"Cannot create {what}: is the provider for {action.manifest['apiVersion']} installed? {text}"
        case _:
            return f"Cannot create {what}: {text}"

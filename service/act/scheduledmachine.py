"""Writes to the ScheduledMachine itself: finalizer, durable facts in the status, and the schedule's switch."""

from typing import Any, assert_never

from crds import names
from crds.base import rfc3339
from crds.status import Remediation
from service.act.writer import Writer
from service.decide.plan import (
    AddFinalizer,
    DisableSchedule,
    RecordReclaim,
    RecordRemediation,
    RecordShutdown,
    ReleaseFinalizer,
)
from service.objects.subject import Subject

OnItself = AddFinalizer | ReleaseFinalizer | RecordShutdown | RecordRemediation | RecordReclaim | DisableSchedule


async def perform(writer: Writer, subject: Subject, action: OnItself) -> None:
    """Carries out one of these actions; `subject` holds the stored object afterwards."""
    match action:
        case AddFinalizer():
            await _finalizers(writer, subject, [*subject.finalizers, names.FINALIZER])
        case ReleaseFinalizer():
            await _finalizers(writer, subject, [one for one in subject.finalizers if one != names.FINALIZER])
        case RecordShutdown(started_at=started):
            await writer.write_status(subject, {"shutdownStartedAt": rfc3339(started) if started else None})
        case RecordRemediation(count=count, at=at, machine_uid=uid):
            done = Remediation(count=count, at=at, machine_uid=uid)
            await writer.write_status(subject, {"remediation": done.to_json()})
        case RecordReclaim(reclaim=reclaim):
            await writer.write_status(subject, {"reclaim": reclaim.to_json()})
        case DisableSchedule():
            await writer.patch_scheduled_machine(subject, _disabling(subject, action))
        case _:
            assert_never(action)


def _disabling(subject: Subject, action: DisableSchedule) -> dict[str, Any]:
    # Without resourceVersion: an edit by the user meanwhile must not prevent this.
    metadata: dict[str, Any] = {"uid": subject.me.uid}
    if action.unacknowledged_since is not None:
        since = rfc3339(action.unacknowledged_since)
        metadata["annotations"] = {names.ANNOTATION_RECLAIM_UNACKNOWLEDGED: since}
    return {"metadata": metadata, "spec": {"schedule": {"enabled": False}}}


async def _finalizers(writer: Writer, subject: Subject, wanted: list[str]) -> None:
    body = {"metadata": {"finalizers": wanted, "resourceVersion": subject.resource_version}}
    await writer.patch_scheduled_machine(subject, body)

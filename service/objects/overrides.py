"""ScheduleOverrides as stored, parsed; nothing in them is trusted to be well-formed."""

from datetime import datetime
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from crds import names
from crds.base import Instant
from crds.overridelife import StoredOverride
from crds.overriderules import check_override
from service.kube.resource import SCHEDULE_OVERRIDES

Raw = dict[str, Any]

_INSTANT: Final = TypeAdapter[datetime](Instant)


def read_override(raw: Raw, now: datetime) -> StoredOverride:
    """An override as it is stored; without a creationTimestamp it counts as created now."""
    metadata = raw["metadata"]
    verdict = check_override(SCHEDULE_OVERRIDES.envelope() | raw, unknown="ignore")
    annotations = metadata.get("annotations")
    return StoredOverride(
        name=metadata["name"],
        created=_instant(metadata.get("creationTimestamp"), now),
        generation=metadata.get("generation") or 0,
        spec=verdict.spec,
        problem="; ".join(f"{one.field}: {one.message}" for one in verdict.violations),
        keep=isinstance(annotations, dict) and names.ANNOTATION_KEEP in annotations,
        deleting=metadata.get("deletionTimestamp") is not None,
    )


def _instant(given: Any, otherwise: datetime) -> datetime:
    try:
        return _INSTANT.validate_python(given)
    except ValidationError:
        return otherwise

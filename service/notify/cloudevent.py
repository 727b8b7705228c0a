"""A notice as a CloudEvent in structured JSON (CloudEvents 1.0)."""

from typing import Final

import orjson

from crds.base import rfc3339
from service.decide.notices import Notice

CONTENT_TYPE: Final = "application/cloudevents+json; charset=utf-8"
TYPE_PREFIX: Final = "org.finos.5spot.scheduledmachine."


def encode(notice: Notice, source: str) -> bytes:
    """The body of the request."""
    return orjson.dumps(
        {
            "specversion": "1.0",
            "id": notice.id,
            "source": source,
            "type": f"{TYPE_PREFIX}{notice.type}",
            "subject": f"{notice.namespace}/{notice.name}",
            "time": rfc3339(notice.at),
            "datacontenttype": "application/json",
            "data": notice.data,
        }
    )

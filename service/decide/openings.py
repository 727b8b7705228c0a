"""The window that a machine was created for, noted on its objects, so that a clock a little behind does not remove it.

The note is part of the manifest, so it exists as soon as the object does, even if the replica crashes.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from crds import names
from service.decide.plan import Create
from service.decide.world import Child, World


def with_window_annotation(create: Create, opens: datetime | None) -> Create:
    """The creation with an annotation for the opening of the window; a window without an opening needs none."""
    if opens is None:
        return create
    metadata: Mapping[str, Any] = create.manifest["metadata"]
    note = {names.ANNOTATION_WINDOW_OPENS: opens.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")}
    annotations = {**metadata.get("annotations", {}), **note}
    return replace(create, manifest={**create.manifest, "metadata": {**metadata, "annotations": annotations}})


def latest_window(world: World) -> datetime | None:
    """The opening of the window that our objects were created for; the latest, if they differ."""
    return max(filter(None, map(_read, world.children)), default=None)


def _read(child: Child) -> datetime | None:
    try:
        noted = datetime.fromisoformat(child.annotations.get(names.ANNOTATION_WINDOW_OPENS, ""))
    except ValueError:
        return None
    return noted if noted.tzinfo is not None else None

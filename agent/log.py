"""One JSON object per line on stderr: what every part of the agent reports with."""

import json
import sys
from datetime import UTC, datetime
from typing import Any, Literal

Level = Literal["info", "warning", "error"]


def log(level: Level, event: str, **fields: Any) -> None:
    """Write one line; `event` is a short stable name, the fields say the rest."""
    stamp = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    line = json.dumps({"time": stamp, "level": level, "event": event, **fields}, default=str)
    # In one piece: each watch has a thread of its own, and what two of them say must not end up on one line.
    sys.stderr.write(line + "\n")
    sys.stderr.flush()

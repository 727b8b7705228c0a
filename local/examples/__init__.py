"""ScheduledMachines and a calendar for the local control plane: for `5spot demo`, and to try with `5spot local up`."""

from pathlib import Path
from typing import Any, Final

import yaml

OFFICE: Final = "office-hours"
WORKSTATION: Final = "workstation"
NIGHT: Final = "night-shift"
WEEKEND: Final = "weekend"
BROKEN: Final = "broken-host"
CLASSROOM: Final = "classroom"
READING: Final = "reading-room"
ALL: Final = (OFFICE, READING, WORKSTATION, NIGHT, WEEKEND, BROKEN, CLASSROOM)
CALENDAR: Final = "school-holidays"
"""Which closes the classroom."""
CLASS: Final = "lab-host"
"""Of the machine of the weekend, and of the one in the reading room."""


def path(name: str) -> Path:
    """The file, to be given to kubectl."""
    return Path(__file__).parent / f"{name}.yaml"


def load(name: str) -> dict[str, Any]:
    """The manifest."""
    manifest: dict[str, Any] = yaml.safe_load(path(name).read_text(encoding="utf-8"))
    return manifest

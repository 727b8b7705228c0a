"""ScheduledMachines made for the local control plane: `5spot demo` plays them, `5spot local up` proposes them."""

from pathlib import Path
from typing import Any, Final

import yaml

OFFICE: Final = "office-hours"
NIGHT: Final = "night-shift"
WEEKEND: Final = "weekend"
BROKEN: Final = "broken-host"
ALL: Final = (OFFICE, NIGHT, WEEKEND, BROKEN)


def path(name: str) -> Path:
    """The file, to be given to kubectl."""
    return Path(__file__).parent / f"{name}.yaml"


def load(name: str) -> dict[str, Any]:
    """The manifest."""
    manifest: dict[str, Any] = yaml.safe_load(path(name).read_text(encoding="utf-8"))
    return manifest

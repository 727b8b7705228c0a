"""What can be wrong with an object that a server sent, and what the cache keeps of it."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

LEVELS: Final = 150
"""More than a ScheduledMachine may have (`crds.bounds`), fewer than orjson encodes (254)."""


class Defect(StrEnum):
    """What is wrong with an object that cannot be read."""

    TOO_DEEP = "TooDeep"
    """Kept, without what is nested deeper than `LEVELS`."""
    TOO_LARGE = "TooLarge"
    """Not kept."""
    MALFORMED = "Malformed"
    """Not kept."""


@dataclass(frozen=True, slots=True)
class Mark:
    """Why an object cannot be read, as of a version."""

    defect: Defect
    why: str
    version: int


def cut_off(value: Any, levels: int) -> None:
    """Replaces what is nested deeper than so many levels by None, in place."""
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in list(inner):
        if isinstance(item, dict | list):
            if levels > 1:
                cut_off(item, levels - 1)
            else:
                value[key] = None

"""What a replica announces to other releases, and whether two releases watch the same namespaces: pure."""

from dataclasses import dataclass
from typing import Final

import orjson

LONGEST_SECONDS: Final = 2400.0
"""An announcement that claims to be good for longer than the settings allow is good for this long."""


@dataclass(frozen=True, slots=True)
class Announcement:
    """A replica acts in the namespaces that it watches, all of them if it names none."""

    watches: tuple[str, ...]
    seconds: float
    """Unchanged for this long, the announcement counts no more."""
    renewal: str

    def packed(self) -> str:
        """As it is stored."""
        content = {"watches": self.watches, "seconds": self.seconds, "renewal": self.renewal}
        return orjson.dumps(content).decode()

    def overlaps(self, watches: tuple[str, ...]) -> bool:
        """Whether a release that watches these namespaces would act on the same objects."""
        return not self.watches or not watches or not set(self.watches).isdisjoint(watches)


def parsed(text: str) -> Announcement | None:
    """An announcement as stored; None if it is not one."""
    try:
        content = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    match content:
        case {"watches": list(watches), "seconds": int() | float() as seconds, "renewal": str(renewal)}:
            names = tuple(name for name in watches if isinstance(name, str))
            if len(names) == len(watches):
                return Announcement(names, min(float(seconds), LONGEST_SECONDS), renewal)
    return None


@dataclass(frozen=True, slots=True)
class Heard:
    """An announcement, and when this replica first saw it on its own clock: clocks of machines are never compared."""

    announcement: Announcement
    since: float

    def seconds_left(self, now: float) -> float:
        """For how long the replica that made it may still be acting; 0 if it is not."""
        return max(0.0, self.since + self.announcement.seconds - now)


def heard(texts: dict[str, str], before: dict[str, Heard], now: float) -> dict[str, Heard]:
    """The announcements of one release by replica; one that did not change counts from when it was first seen."""
    found: dict[str, Heard] = {}
    for replica, text in texts.items():
        announcement = parsed(text)
        known = before.get(replica)
        if known is not None and known.announcement == announcement:
            found[replica] = known
        elif announcement is not None:
            found[replica] = Heard(announcement, now)
    return found

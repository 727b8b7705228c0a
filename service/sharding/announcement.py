"""What a replica announces to other releases, and whether two releases watch the same namespaces: pure."""

from dataclasses import dataclass
from typing import Final

import orjson

LONGEST_SECONDS: Final = 2400.0
"""An announcement that claims to be valid for longer than the settings allow is valid for this long."""


@dataclass(frozen=True, slots=True)
class Announcement:
    """A replica acts in the namespaces in `watches`, or in all namespaces if it names none."""

    watches: tuple[str, ...]
    seconds: float
    """The announcement expires when it has not changed for this long."""
    renewal: str

    def to_json(self) -> str:
        """The text that is stored in an annotation."""
        content = {"watches": self.watches, "seconds": self.seconds, "renewal": self.renewal}
        return orjson.dumps(content).decode()

    def overlaps(self, watches: tuple[str, ...]) -> bool:
        """Whether a release that watches these namespaces would act on the same objects."""
        if not self.watches or not watches:
            return True
        return not set(self.watches).isdisjoint(watches)


def parse(text: str) -> Announcement | None:
    """The announcement in an annotation; None if the text is not one."""
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
class ObservedAnnouncement:
    """An announcement, and when this replica first saw it on its own clock: clocks of machines are never compared."""

    announcement: Announcement
    since: float

    def seconds_left(self, now: float) -> float:
        """For how long the replica that announced it may still act; 0 once the announcement has expired."""
        return max(0.0, self.since + self.announcement.seconds - now)


def observe(
    texts: dict[str, str], before: dict[str, ObservedAnnouncement], now: float
) -> dict[str, ObservedAnnouncement]:
    """The announcements of one release by replica; one that did not change counts from when it was first seen."""
    found: dict[str, ObservedAnnouncement] = {}
    for replica, text in texts.items():
        announcement = parse(text)
        known = before.get(replica)
        if known is not None and known.announcement == announcement:
            found[replica] = known
        elif announcement is not None:
            found[replica] = ObservedAnnouncement(announcement, now)
    return found

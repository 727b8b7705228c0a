"""Times of day to the minute, `18:30`, as users write them in `schedule.windows`."""

import re
from dataclasses import dataclass
from typing import Any, Final

from crds.invalid import InvalidValue, shown

MINUTES_A_DAY: Final = 1440
START_MESSAGE: Final = 'write hours and minutes as "HH:MM", from "00:00" to "23:59"'
END_MESSAGE: Final = 'write hours and minutes as "HH:MM", from "00:00" to "24:00"'

_TIME: Final = re.compile("([0-9]{2}):([0-5][0-9])")


@dataclass(frozen=True, slots=True, order=True)
class TimeOfDay:
    """Minutes after midnight, up to 24:00."""

    minutes: int

    @classmethod
    def parse_start(cls, text: Any) -> "TimeOfDay":
        """The time at which a window begins, `00:00` to `23:59`.

        Raises:
            InvalidValue: if it is not such a time.
        """
        return cls._parsed(text, MINUTES_A_DAY - 1, START_MESSAGE)

    @classmethod
    def parse_end(cls, text: Any) -> "TimeOfDay":
        """The time at which a window ends, `00:00` to `24:00`.

        Raises:
            InvalidValue: if it is not such a time.
        """
        return cls._parsed(text, MINUTES_A_DAY, END_MESSAGE)

    @classmethod
    def _parsed(cls, text: Any, latest: int, allowed: str) -> "TimeOfDay":
        if not isinstance(text, str):
            raise InvalidValue(f"must be a string{_quoted(text, latest)}; {allowed}")
        match = _TIME.fullmatch(text)
        time = cls(int(match[1]) * 60 + int(match[2])) if match else None
        if time is None or time.minutes > latest:
            raise InvalidValue(f"{shown(text)} is not a time of day; {allowed}")
        return time

    def __str__(self) -> str:
        return f"{self.minutes // 60:02}:{self.minutes % 60:02}"


def _quoted(given: Any, latest: int) -> str:
    """YAML reads 18:30 without quotes as the number 1110."""
    if type(given) is not int or not 0 <= given <= latest:
        return ""
    return f': put it in quotes, "{TimeOfDay(given)}"'

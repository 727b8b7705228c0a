"""The grammars of schedule values as patterns that the API server understands (RE2); the parsers are in `values`."""

from typing import Final

_NAMES: Final = {
    "month": "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec",
    "weekday": "sun|mon|tue|wed|thu|fri|sat",
}


def _listed(part: str) -> str:
    """Comma-separated parts and ranges of them; spaces at the ends and around `,` and `-`."""
    span = f" *{part}( *- *{part})? *"
    return f"^{span}(,{span})*$"


def _cron_field(value: str) -> str:
    step = "(/0{0,3}[1-9][0-9]{0,3})?"
    term = f"([*]|({value})(-({value}))?){step}"
    return f"{term}(,{term})*"


def _any_case(words: str) -> str:
    return "".join(f"[{char}{char.upper()}]" if char.isalpha() else char for char in words)


_BLANKS: Final = "[ \\t]"
_MINUTE: Final = _cron_field("0{0,2}[0-5]?[0-9]")
_HOUR: Final = _cron_field("0{0,2}([01]?[0-9]|2[0-3])")
_DAY: Final = _cron_field("0{0,2}(0?[1-9]|[12][0-9]|3[01])")
_MONTH: Final = _cron_field(f"0{{0,2}}(0?[1-9]|1[0-2])|{_any_case(_NAMES['month'])}")
_WEEKDAY: Final = _cron_field(f"0{{0,3}}[0-7]|{_any_case(_NAMES['weekday'])}")

DAYS: Final = _listed("(mon|tue|wed|thu|fri|sat|sun)")
HOURS: Final = _listed("([01]?[0-9]|2[0-3])")
_COMMON_DAY: Final = (
    "(0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8])"
)
_LEAP_YEAR: Final = "([12][0-9](0[48]|[2468][048]|[13579][26])|1200|1600|2[048]00)"
_DATE: Final = f"([12][0-9]{{3}}-({_COMMON_DAY})|{_LEAP_YEAR}-02-29)"
DATES: Final = f"^{_DATE}(/{_DATE})?$"
YEARLY: Final = f"^({_COMMON_DAY}|02-29)$"
START_TIME: Final = "^([01][0-9]|2[0-3]):[0-5][0-9]$"
END_TIME: Final = "^(([01][0-9]|2[0-3]):[0-5][0-9]|24:00)$"
_CLOCK: Final = "([01][0-9]|2[0-3]):[0-5][0-9]"
MOMENT: Final = f"^{_DATE}T{_CLOCK}:[0-5][0-9]([.]0{{1,9}})?(Z|[+-]{_CLOCK})$"
DURATION: Final = "^([0-9]{1,9}h)?([0-9]{1,9}m)?([0-9]{1,9}s)?$"
CRON: Final = f"^{_BLANKS}*" + f"{_BLANKS}+".join((_MINUTE, _HOUR, _DAY, _MONTH, _WEEKDAY)) + f"{_BLANKS}*$"
TIMEZONE: Final = "^[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*$"

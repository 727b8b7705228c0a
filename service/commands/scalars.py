"""What a plain scalar in YAML means to kubectl: text, a number, true, false or null; for the reader of manifests."""

import re
from typing import Any, Final

import yaml

_TRUE: Final = frozenset({"y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"})
_FALSE: Final = frozenset({"n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"})
_NULL: Final = frozenset({"", "~", "null", "Null", "NULL"})
_DECIMAL: Final = re.compile(r"[-+]?(?:0|[1-9][0-9_]*)")
_BASED: Final = re.compile(r"[-+]?0(?:x[0-9a-f]+|o[0-7]+|[0-7]*|b[01]+)", re.IGNORECASE)
_FLOAT: Final = re.compile(r"[-+]?(?:[0-9][0-9_]*\.?[0-9_]*|\.[0-9][0-9_]*)(?:[eE][-+]?[0-9]+)?")
_STRING_TAG: Final = "tag:yaml.org,2002:str"


def scalar(event: yaml.ScalarEvent) -> Any:
    """The value of a scalar as kubectl reads it; a quoted one, or one with the tag `!!str`, is text."""
    text = event.value
    if event.style or event.tag == _STRING_TAG:
        return text
    if text in _NULL:
        return None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    return _number(text)


def _number(text: str) -> Any:
    plain = text.replace("_", "")
    if len(text) > 400:
        return text
    if _DECIMAL.fullmatch(text):
        return int(plain)
    if text[0] != "_" and _BASED.fullmatch(plain):
        sign, digits = (-1, plain[1:]) if plain[0] == "-" else (1, plain.lstrip("+"))
        octal = digits[1:].isdigit()
        return sign * int(digits, 8 if octal else 0)
    if _FLOAT.fullmatch(text):
        number = float(plain)
        # JSON has no infinity: 1e999 stays text.
        return number if abs(number) != float("inf") else text
    return text

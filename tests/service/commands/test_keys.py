"""What a terminal sends, as keys."""

import pytest

from service.commands.keys import split
from service.fleet.board import Press


@pytest.mark.parametrize(
    ("sent", "keys"),
    [
        ("q", ["q"]),
        ("\x1b[A\x1b[B", [Press.UP, Press.DOWN]),
        ("\x1b", [Press.ESCAPE]),
        ("ab\r", ["a", "b", Press.ENTER]),
        ("é", ["é"]),
        ("\x1b[99~", []),
        ("\x01x", ["x"]),
    ],
)
def test_bytes_become_keys(sent: str, keys: list[str]) -> None:
    assert list(split(sent)) == keys

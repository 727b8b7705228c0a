"""The state of `5spot top`: what is filtered, sorted and selected, and what each key does. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from service.fleet.filters import Filter, Sort
from service.fleet.summary import Summary
from service.runtime.key import Key

PAGE: Final = 10


class Press(StrEnum):
    """Keys that are not characters."""

    UP = "up"
    DOWN = "down"
    PAGE_UP = "page up"
    PAGE_DOWN = "page down"
    HOME = "home"
    END = "end"
    ENTER = "enter"
    ESCAPE = "escape"
    BACKSPACE = "backspace"


class Wish(StrEnum):
    """What the person wants done, beyond another view."""

    QUIT = "quit"
    EXTEND = "extend"
    SKIP = "skip"
    WHY = "why"


WISHES: Final = {"q": Wish.QUIT, "e": Wish.EXTEND, "k": Wish.SKIP, "w": Wish.WHY, Press.ENTER: Wish.WHY}
_STEPS: Final = {
    Press.UP: -1,
    Press.DOWN: 1,
    Press.PAGE_UP: -PAGE,
    Press.PAGE_DOWN: PAGE,
    Press.HOME: -(10**9),
    Press.END: 10**9,
}
_SORTS: Final = tuple(Sort)


@dataclass(frozen=True, slots=True)
class Board:
    """What the screen shows."""

    filter: Filter = field(default_factory=Filter)
    selected: Key | None = None
    typing: bool = False
    """Whether keys go into the filter's text."""
    asked: Wish | None = None
    """What waits for the user's yes."""
    notes: tuple[str, ...] = ()
    """What is shown in place of the list's foot: the outcome of a wish, or an explanation."""

    def place(self, shown: Sequence[Summary]) -> int:
        """The line of the selected machine; the first if it is not shown."""
        keys = [key_of(each) for each in shown]
        return keys.index(self.selected) if self.selected in keys else 0

    def chosen(self, shown: Sequence[Summary]) -> Summary | None:
        """The selected machine."""
        return shown[self.place(shown)] if shown else None


def key_of(summary: Summary) -> Key:
    """Its namespace and name."""
    return Key(summary.namespace, summary.name)


def pressed(board: Board, key: str, shown: Sequence[Summary]) -> tuple[Board, Wish | None]:
    """The board after a key, and what to do about it."""
    if board.typing:
        return _typed(board, key), None
    if board.asked is not None:
        return replace(board, asked=None), board.asked if key == "y" else None
    if key in _STEPS:
        return _moved(board, _STEPS[Press(key)], shown), None
    wish = WISHES.get(key)
    if wish in (Wish.EXTEND, Wish.SKIP):
        return replace(board, asked=wish if shown else None, notes=()), None
    if wish is not None:
        return board, wish
    return _viewed(board, key), None


def _typed(board: Board, key: str) -> Board:
    text = board.filter.text
    match key:
        case Press.ENTER:
            return replace(board, typing=False)
        case Press.ESCAPE:
            return replace(board, typing=False, filter=replace(board.filter, text=""))
        case Press.BACKSPACE:
            return replace(board, filter=replace(board.filter, text=text[:-1]))
    return replace(board, filter=replace(board.filter, text=text + key)) if len(key) == 1 else board


def _moved(board: Board, step: int, shown: Sequence[Summary]) -> Board:
    if not shown:
        return board
    place = min(max(board.place(shown) + step, 0), len(shown) - 1)
    return replace(board, selected=key_of(shown[place]), notes=())


def _viewed(board: Board, key: str) -> Board:
    view = board.filter
    match key:
        case "/":
            return replace(board, typing=True, notes=())
        case "s":
            following = _SORTS[(_SORTS.index(view.sort) + 1) % len(_SORTS)]
            return replace(board, filter=replace(view, sort=following))
        case "a":
            return replace(board, filter=replace(view, attention=not view.attention))
        case Press.ESCAPE:
            return replace(board, notes=(), filter=replace(view, text="", attention=False))
    return board

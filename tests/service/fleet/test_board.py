"""What the keys of `5spot top` do."""

from typing import Any

from service.fleet.board import Board, Press, Wish, key_of, pressed
from service.fleet.filters import Sort
from service.fleet.summary import Summary
from tests.crds.machines import machine


def named(name: str, **status: Any) -> Summary:
    raw = machine(status=status)
    raw["metadata"]["name"] = name
    return Summary.read(raw)


SHOWN = [named(f"desk-{number}", phase="Inactive") for number in range(30)]


def after(*keys: str) -> Board:
    board = Board()
    for key in keys:
        board, _ = pressed(board, key, SHOWN)
    return board


def test_arrows_select_and_stop_at_the_ends() -> None:
    assert after(Press.DOWN, Press.DOWN).chosen(SHOWN) is SHOWN[2]
    assert after(Press.UP).chosen(SHOWN) is SHOWN[0]
    assert after(Press.END, Press.DOWN).chosen(SHOWN) is SHOWN[-1]
    assert after(Press.END, Press.PAGE_UP).chosen(SHOWN) is SHOWN[-11]


def test_the_selection_follows_its_machine_when_the_list_changes() -> None:
    board = after(Press.DOWN)
    assert board.chosen([SHOWN[5], SHOWN[1]]) is SHOWN[1]
    assert board.chosen([SHOWN[5]]) is SHOWN[5]
    assert board.chosen([]) is None
    assert board.selected == key_of(SHOWN[1])


def test_a_slash_filters_by_what_is_typed() -> None:
    board = after("/", "d", "q", Press.BACKSPACE, "e", Press.ENTER)
    assert (board.filter.text, board.typing) == ("de", False)
    assert after("/", "d", Press.ESCAPE).filter.text == ""


def test_keys_change_the_order_and_what_is_left_out() -> None:
    assert after("s").filter.sort is Sort.NAME
    assert after(*("s" * len(Sort))).filter.sort is Sort.ATTENTION
    assert after("a").filter.attention
    assert not after("a", Press.ESCAPE).filter.attention


def test_an_override_is_made_only_after_a_yes() -> None:
    asked, wish = pressed(Board(), "e", SHOWN)
    assert (asked.asked, wish) == (Wish.EXTEND, None)
    assert pressed(asked, "y", SHOWN)[1] is Wish.EXTEND
    assert pressed(asked, "q", SHOWN) == (Board(), None)
    assert pressed(Board(), "k", [])[0].asked is None


def test_q_quits_but_not_while_typing() -> None:
    assert pressed(Board(), "q", SHOWN)[1] is Wish.QUIT
    assert pressed(Board(typing=True), "q", SHOWN)[1] is None

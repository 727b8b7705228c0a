import pytest

from crds.text import one_line, one_line_of_bytes


@pytest.mark.parametrize("given", ["a\nb", "a\r\n  b", "a\x1bb", "a\u2028b", "a\u202eb", "a\x00b"])
def test_what_would_break_or_colour_a_line_becomes_a_space(given):
    assert one_line(given, 100) == "a b"


def test_what_is_too_long_ends_in_an_ellipsis():
    assert one_line("x" * 50, 10) == "x" * 9 + "…"


@pytest.mark.parametrize("char", ["x", "é", "語", "🖥"])
@pytest.mark.parametrize("length", [9, 10, 11, 500])
def test_a_limit_in_bytes_holds_for_every_alphabet(char, length):
    shown = one_line_of_bytes(char * length, 20)
    assert len(shown.encode()) <= 20
    assert shown.startswith(char)


def test_half_of_a_surrogate_pair_does_not_get_through():
    assert one_line_of_bytes("a\ud83db", 20).encode() in (b"a b", b"a?b")

import pytest

from service.runtime.key import Key
from service.runtime.own_writes import OwnWrites

KEY = Key("ns", "a")


@pytest.fixture
def woken() -> list[Key]:
    return []


@pytest.fixture
def echoes(woken: list[Key]) -> OwnWrites:
    return OwnWrites(woken.append)


def test_news_of_a_key_that_nobody_has_in_hand_wakes_it_at_once(echoes: OwnWrites, woken: list[Key]) -> None:
    echoes.heard(KEY, "7")
    assert woken == [KEY]


def test_the_echo_of_our_own_write_wakes_nobody_even_if_it_comes_before_the_answer(
    echoes: OwnWrites, woken: list[Key]
) -> None:
    echoes.begin(KEY)
    echoes.heard(KEY, "7")
    echoes.wrote(KEY, "7")
    echoes.end(KEY)
    assert woken == []


def test_what_somebody_else_wrote_meanwhile_wakes_the_key_when_it_is_let_go(
    echoes: OwnWrites, woken: list[Key]
) -> None:
    echoes.begin(KEY)
    echoes.wrote(KEY, "7")
    echoes.heard(KEY, "7")
    echoes.heard(KEY, "8")
    assert woken == []
    echoes.end(KEY)
    assert woken == [KEY]


def test_other_keys_are_not_concerned(echoes: OwnWrites, woken: list[Key]) -> None:
    other = Key("ns", "b")
    echoes.begin(KEY)
    echoes.heard(other, "7")
    assert woken == [other]

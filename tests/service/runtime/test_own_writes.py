import pytest

from service.runtime.key import Key
from service.runtime.own_writes import OwnWrites

KEY = Key("ns", "a")


@pytest.fixture
def woken() -> list[Key]:
    return []


@pytest.fixture
def own_writes(woken: list[Key]) -> OwnWrites:
    return OwnWrites(woken.append)


def test_a_change_of_a_key_without_a_running_pass_wakes_it_at_once(own_writes: OwnWrites, woken: list[Key]) -> None:
    own_writes.observed(KEY, "7")
    assert woken == [KEY]


def test_the_watch_event_of_our_own_write_wakes_no_key_even_if_it_arrives_before_the_answer(
    own_writes: OwnWrites, woken: list[Key]
) -> None:
    own_writes.begin(KEY)
    own_writes.observed(KEY, "7")
    own_writes.wrote(KEY, "7")
    own_writes.end(KEY)
    assert woken == []


def test_a_write_of_others_during_a_pass_wakes_the_key_after_it(own_writes: OwnWrites, woken: list[Key]) -> None:
    own_writes.begin(KEY)
    own_writes.wrote(KEY, "7")
    own_writes.observed(KEY, "7")
    own_writes.observed(KEY, "8")
    assert woken == []
    own_writes.end(KEY)
    assert woken == [KEY]


def test_other_keys_are_not_concerned(own_writes: OwnWrites, woken: list[Key]) -> None:
    other = Key("ns", "b")
    own_writes.begin(KEY)
    own_writes.observed(other, "7")
    assert woken == [other]

"""The machines of one Cluster that queue: who is on the way, who is next, and that there are never too many."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from service.observe.crowd import Crowd, QueuePlace
from service.runtime.key import Key

NOW = datetime(2026, 3, 2, 9, tzinfo=UTC)
LATER = NOW + timedelta(minutes=15)


def key(name: object) -> Key:
    return Key("team", str(name))


def place(rank: float, name: object) -> QueuePlace:
    return QueuePlace(rank, key(name))


def crowd(share: int, *under_way: str) -> Crowd:
    made = Crowd(limit=share, share=share)
    for name in under_way:
        made.begin(key(name), LATER)
    return made


def test_there_is_a_turn_while_there_is_room():
    assert crowd(2, "a").turn(place(1, "b"), NOW).granted
    assert not crowd(2, "a", "b").turn(place(1, "c"), NOW).granted


def test_one_that_is_on_the_way_keeps_its_turn():
    assert crowd(1, "a").turn(place(1, "a"), NOW).granted


def test_one_that_waits_before_it_goes_first_even_if_there_is_room():
    found = crowd(1)
    found.wait(place(1, "first"), 0)
    late = found.turn(place(2, "late"), NOW)
    assert (late.granted, late.ahead) == (False, 1)
    assert found.turn(place(1, "first"), NOW).granted


def test_one_with_a_better_place_overtakes():
    found = crowd(1)
    found.wait(place(2, "patient"), 0)
    assert found.turn(place(1, "urgent"), NOW).granted


def test_the_number_that_it_says_stays_as_it_was_when_the_wait_began():
    found = crowd(1, "a")
    found.wait(place(1, "b"), 0)
    found.wait(place(2, "c"), found.turn(place(2, "c"), NOW).ahead)
    found.leave(key("b"))
    assert found.turn(place(2, "c"), NOW).ahead == 1


def test_its_own_place_does_not_count_as_ahead_of_it():
    found = crowd(1)
    found.wait(place(1, "a"), 0)
    assert found.turn(place(1.5, "a"), NOW).granted, "a new place, further back, with nobody between"


def test_one_whose_time_is_up_makes_room():
    found = crowd(1, "a")
    found.wait(place(1, "b"), 0)
    assert list(found.next(LATER - timedelta(seconds=1))) == []
    assert list(found.next(LATER)) == [key("b")]
    assert found.under_way(LATER) == 0


def test_as_many_are_next_as_there_is_room_in_their_order():
    found = crowd(3, "a")
    for rank, name in ((3, "late"), (1, "early"), (2, "middle")):
        found.wait(place(rank, name), 0)
    assert list(found.next(NOW)) == [key("early"), key("middle")]


def test_a_smaller_limit_lets_no_machine_in_until_enough_are_done():
    found = crowd(3, "a", "b", "c")
    found.share = 1
    found.wait(place(1, "d"), 0)
    for done in ("a", "b"):
        found.end(key(done))
        assert list(found.next(NOW)) == []
    found.end(key("c"))
    assert list(found.next(NOW)) == [key("d")]


@given(
    st.lists(st.tuples(st.sampled_from(["ask", "done", "leave"]), st.integers(0, 9), st.integers(0, 3)), max_size=80)
)
def test_never_more_than_the_limit_and_never_idle_while_one_waits(steps):
    found, inside, waiting = Crowd(limit=3, share=3), set[str](), dict[str, int]()
    for what, number, rank in steps:
        name = str(number)
        if what == "done" and name in inside:
            inside.discard(name)
            found.end(key(name))
        elif what == "leave":
            waiting.pop(name, None)
            found.leave(key(name))
        elif what == "ask" and name not in inside:
            ask(found, inside, waiting, (name, rank))
        # A machine that is woken asks again and gets the turn, so none waits while there is room.
        for woken in list(found.next(NOW)):
            ask(found, inside, waiting, (woken.name, waiting[woken.name]))
        assert found.under_way(NOW) == len(inside) <= 3
        assert found.waiting == len(waiting)
        assert len(inside) == 3 or not waiting


def ask(found: Crowd, inside: set[str], waiting: dict[str, int], one: tuple[str, int]) -> None:
    name, rank = one
    turn = found.turn(place(rank, name), NOW)
    if turn.granted:
        waiting.pop(name, None)
        inside.add(name)
        found.begin(key(name), LATER)
    else:
        waiting[name] = rank
        found.wait(place(rank, name), turn.ahead)

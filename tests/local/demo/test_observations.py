"""The chronicle: nothing twice, and how things were at an instant."""

from local.demo.observations import Kind, Observation
from tests.local.demo.chronicles import ChronicleBuilder, at


def test_what_was_known_is_not_taken_down_again() -> None:
    builder = ChronicleBuilder()
    for hour in (9, 10, 11):
        builder.node(hour, "host")
    builder.gone(12, Kind.NODE, "host")
    builder.gone(13, Kind.NODE, "host")
    assert [seen.at for seen in builder.chronicle.observations] == [at(9), at(12)]


def test_listeners_hear_what_is_new_and_what_it_replaces() -> None:
    builder, heard = ChronicleBuilder(), list[tuple[Observation, Observation | None]]()
    builder.chronicle.listeners.append(lambda now, before: heard.append((now, before)))
    builder.node(9, "host")
    builder.node(10, "host", cordoned="yes")
    assert [(now.at, before and before.at) for now, before in heard] == [(at(9), None), (at(10), at(9))]


def test_what_is_gone_is_not_present_but_was() -> None:
    builder = ChronicleBuilder()
    builder.node(9, "b")
    builder.node(9, "a")
    builder.gone(18, Kind.NODE, "b")
    chronicle = builder.chronicle
    assert [seen.name for seen in chronicle.present(Kind.NODE)] == ["a"]
    was, is_now, before = (chronicle.at(Kind.NODE, "b", at(hour)) for hour in (12, 19, 8))
    assert was is not None
    assert not was.gone
    assert is_now is not None
    assert is_now.gone
    assert before is None

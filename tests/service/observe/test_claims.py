from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from service.observe.claims import LOOKED_AT, NEVER, Claim, ClaimQueue, Entry
from service.runtime.key import Key

NOW = datetime(2026, 3, 6, 10, tzinfo=UTC)
HOUR = timedelta(hours=1)


def entry(number):
    return (True, f"{number:03}", f"uid-{number}"), Key("team", f"sm-{number}")


@given(st.lists(st.tuples(st.integers(0, 12), st.sampled_from(["enter", "leave", "counts", "counts not", "later"]))))
def test_the_first_is_always_the_one_that_going_through_all_would_find(steps):
    line, now = ClaimQueue(), NOW
    counting: set[Entry] = set()
    closing: dict[Entry, datetime] = {}

    def judge(one, at):
        until = closing.get(one, NEVER)
        return Claim(at, until if at < until else NEVER, one in counting and at < until)

    for number, step in steps:
        one = entry(number)
        if step == "enter" and one not in line.entries:
            line.enter(one)
        elif step == "leave" and one in line.entries:
            line.leave(one)
        elif step == "later":
            now += HOUR / 2
        elif step.startswith("counts") and one in line.entries:
            (counting.add if step == "counts" else counting.discard)(one)
            closing[one] = now + HOUR
            line.touch(one)
        wanted = next((seen for seen in line.entries if judge(seen, now).counts), None)
        assert line.first(judge, now) == wanted
        assert next(line.counting(judge, now), None) == wanted


def test_of_a_crowd_behind_the_first_only_some_are_looked_at():
    line, looked = ClaimQueue(), []
    for number in range(500):
        line.enter(entry(number))

    def judge(one, at):
        looked.append(one)
        return Claim(at, NEVER, one == entry(0))

    assert list(line.counting(judge, NOW)) == [entry(0)]
    assert len(looked) <= LOOKED_AT + 1

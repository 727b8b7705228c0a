from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from service.observe.claims import MOST_EVALUATED, NEVER, Claim, ClaimQueue, Entry
from service.runtime.key import Key

NOW = datetime(2026, 3, 6, 10, tzinfo=UTC)
HOUR = timedelta(hours=1)


def entry(number):
    return (True, f"{number:03}", f"uid-{number}"), Key("team", f"sm-{number}")


@given(st.lists(st.tuples(st.integers(0, 12), st.sampled_from(["add", "remove", "valid", "invalid", "later"]))))
def test_the_first_valid_claim_is_the_one_that_evaluating_all_would_find(steps):
    queue, now = ClaimQueue(), NOW
    valid: set[Entry] = set()
    closing: dict[Entry, datetime] = {}

    def evaluate(one, at):
        until = closing.get(one, NEVER)
        return Claim(at, until if at < until else NEVER, one in valid and at < until)

    for number, step in steps:
        one = entry(number)
        if step == "add" and one not in queue.entries:
            queue.add(one)
        elif step == "remove" and one in queue.entries:
            queue.remove(one)
        elif step == "later":
            now += HOUR / 2
        elif step in ("valid", "invalid") and one in queue.entries:
            (valid.add if step == "valid" else valid.discard)(one)
            closing[one] = now + HOUR
            queue.invalidate(one)
        wanted = next((seen for seen in queue.entries if evaluate(seen, now).valid), None)
        assert queue.first(evaluate, now) == wanted
        assert next(queue.valid(evaluate, now), None) == wanted


def test_of_many_claims_behind_the_first_only_some_are_evaluated():
    queue, evaluated = ClaimQueue(), []
    for number in range(500):
        queue.add(entry(number))

    def evaluate(one, at):
        evaluated.append(one)
        return Claim(at, NEVER, one == entry(0))

    assert list(queue.valid(evaluate, NOW)) == [entry(0)]
    assert len(evaluated) <= MOST_EVALUATED + 1

"""The queue under any sequence of calls: nothing lost, nothing doubled, nothing early."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, rule

from service.clock import ManualClock
from service.runtime.backoff import Backoff, Failures
from service.runtime.key import Key
from service.runtime.queue import Queue

START = datetime(2026, 3, 2, 9, tzinfo=UTC)
KEYS = st.builds(Key, st.sampled_from(["a", "b", "c"]), st.sampled_from(["x", "y", "z"]))
SPANS = st.integers(-60, 600).map(lambda s: timedelta(seconds=s))


class QueueMachine(RuleBasedStateMachine):
    """Checks the queue against the plainest model: for each key, when it wants to be looked at."""

    taken = Bundle("taken")

    def __init__(self):
        super().__init__()
        self.real = 0.0
        self.clock = ManualClock(START)
        self.queue = Queue(
            self.clock,
            real=lambda: self.real,
            failures=Failures(Backoff(base=10, cap=60, jitter=0.0)),
            running_per_namespace=2,
        )
        self.due: dict[Key, list] = {}  # asked for and not yet taken: domain instants and real ones
        self.again: dict[Key, list] = {}  # in work: asked for meanwhile

    def _ask(self, key, when):
        (self.again if key in self.again else self.due).setdefault(key, []).append(when)

    def _is_due(self, key):
        return any(w <= (self.clock.now() if isinstance(w, datetime) else self.real) for w in self.due.get(key, ()))

    @rule(key=KEYS, span=SPANS, priority=st.none() | st.integers(0, 255))
    def add(self, key, span, priority):
        when = self.clock.now() + span
        self.queue.add(key, due=when, priority=priority)
        self._ask(key, when)

    @rule(key=KEYS)
    def retry(self, key):
        self._ask(key, self.real + self.queue.retry(key))

    @rule(key=KEYS)
    def discard(self, key):
        self.queue.discard(key)
        self.due.pop(key, None)
        if key in self.again:
            self.again[key] = []

    @rule(span=st.integers(-30, 300))
    def time_passes(self, span):
        # A clock set back does not call back what was due already: only what is taken counts.
        self.real += abs(span)
        self.clock.advance(timedelta(seconds=max(span, 0)))

    @rule(target=taken)
    def take(self):
        key = self.queue.take()
        if key is None:
            open_keys = [k for k in self.due if self._is_due(k) and self._in_work(k.namespace) < 2]
            assert not open_keys, "something was due and not given out"
            return multiple()
        assert key not in self.again, "given to two workers"
        assert self._is_due(key), "given out too early, or twice"
        assert self._in_work(key.namespace) < 2
        del self.due[key]
        self.again[key] = []
        return key

    @rule(key=consumes(taken), success=st.booleans())
    def done(self, key, success):
        if success:
            self.queue.succeeded(key)
        self.queue.done(key)
        asked = self.again.pop(key)
        if asked:
            self.due[key] = asked

    def _in_work(self, namespace):
        return sum(1 for key in self.again if key.namespace == namespace)

    @invariant()
    def every_key_is_accounted_for(self):
        assert self.queue.depth + self.queue.waiting == len(self.due)
        assert self.queue.running == len(self.again)


TestQueueMachine = QueueMachine.TestCase
TestQueueMachine.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 255)), min_size=1, max_size=40),
)
def test_due_keys_of_a_namespace_come_in_order_of_time_with_priority_worth_ten_seconds_at_most(asks):
    clock = ManualClock(START)
    queue = Queue(clock)
    urgency = {}
    for n, (seconds, priority) in enumerate(asks):
        queue.add(Key("a", f"x{n}"), due=START + timedelta(seconds=seconds), priority=priority)
        urgency[f"x{n}"] = seconds - 10 * priority / 255
    clock.advance(timedelta(minutes=1))
    order = []
    while (key := queue.take()) is not None:
        order.append(urgency[key.name])
    assert order == pytest.approx(sorted(order), abs=1e-4)

"""Whatever happens in whatever order, with a crash between any two writes: what must hold, holds."""

from hypothesis import example, given, settings
from hypothesis import strategies as st

from service.decide import plan as actions
from service.decide.world import Contract
from tests.service.decide import invariants
from tests.service.decide.changes import CHANGES, COMMON, RARE
from tests.service.decide.simulation import Crash, Simulation, running

NAMES = st.one_of(st.sampled_from(sorted(COMMON)), st.sampled_from(sorted(RARE)))
CRASHES = st.sampled_from((None, None, None, 0, 1, 2, 3))
STORIES = st.lists(st.tuples(NAMES, CRASHES), min_size=8, max_size=40)


def look(sim: Simulation, crash_after: int | None = None) -> None:
    """One pass, watched."""
    before, mark = sim.status, len(sim.log)
    invariants.check_plan(sim, sim.plan())
    try:
        last = sim.step(crash_after=crash_after)
    except Crash:
        last = None
    for seen, action in sim.log[mark:]:
        invariants.check_action(seen, action)
    if last is not None and not sim.gone:
        invariants.check_pass(sim, before, last)


def rest(sim: Simulation) -> None:
    """Left alone, everything comes to rest: no more actions, no status write, no event."""
    sim.fails = None
    sim.settle()
    if sim.gone:
        return
    before, emitted = sim.status, len(sim.events)
    last = sim.step()
    assert last.status == before
    assert all(isinstance(one, actions.Evict) for one in last.done), "asks at most for refused evictions again"
    assert len(sim.events) == emitted


def play(sim: Simulation, story: list[tuple[str, int | None]]) -> None:
    for name, crash_after in story:
        if not sim.gone:
            CHANGES[name](sim)
            look(sim, crash_after)
    if not sim.gone:
        rest(sim)


GENERATED = settings(max_examples=80, derandomize=True, deadline=None, database=None)


@GENERATED
@given(contract=st.sampled_from(list(Contract)), story=STORIES)
def test_a_new_scheduledmachine_keeps_the_invariants_in_any_sequence_of_changes(contract, story):
    play(Simulation(contract=contract), story)


@GENERATED
@given(story=STORIES)
@example(story=[("the boundary", None), ("pods go", None), ("always", None), ("pods go", None)])
def test_a_running_machine_keeps_the_invariants_in_any_sequence_of_changes(story):
    sim = running()
    CHANGES["taint batch"](sim)
    play(sim, story)

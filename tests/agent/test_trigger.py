from dataclasses import replace
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from agent.examine import Match
from agent.patterns import NO_PATTERNS, Patterns
from agent.trigger import ConfigSeen, Event, Failed, Matched, NodeGone, NodeSeen, TriggerState, needs_scan, step, stored

IDEA = Patterns(("idea",))
BOTH = Patterns(("code", "idea"))
MATCH = Match(7, 100, "idea", "why", datetime(2026, 11, 16, tzinfo=UTC))
INERT = TriggerState(refire=2.0)
WATCHING = step(INERT, ConfigSeen(IDEA), 0.0)
HOLDING = step(WATCHING, Matched(MATCH), 10.0)
FIRED = stored(HOLDING, NodeSeen("u", "20", True), 11.0)


def node(version: str = "30", *, requested: bool = False, uid: str = "u") -> NodeSeen:
    return NodeSeen(uid, version, requested)


def test_without_patterns_no_process_is_read():
    assert not INERT.watching
    assert not step(INERT, Matched(MATCH), 1.0).due(1.0)


def test_patterns_make_it_look_and_scan_what_runs_already():
    assert WATCHING.watching
    assert needs_scan(INERT, WATCHING)


def test_changed_patterns_scan_again_and_unchanged_ones_do_not():
    assert needs_scan(WATCHING, step(WATCHING, ConfigSeen(BOTH), 1.0))
    assert not needs_scan(WATCHING, step(WATCHING, ConfigSeen(Patterns(("idea",))), 1.0))


def test_removed_patterns_make_it_inert():
    assert not step(WATCHING, ConfigSeen(NO_PATTERNS), 1.0).watching


def test_a_match_is_due_at_once_and_ends_the_looking():
    assert HOLDING.due(10.0)
    assert not HOLDING.watching


def test_only_the_first_match_is_held():
    assert step(HOLDING, Matched(replace(MATCH, pid=8)), 10.5).held == MATCH


def test_a_failure_keeps_the_match_and_delays_it():
    failed = step(HOLDING, Failed(3.0), 10.0)
    assert failed.held == MATCH
    assert (failed.due(12.9), failed.due(13.0)) == (False, True)
    assert failed.attempts == 1


def test_a_stored_request_waits_for_clearing():
    assert FIRED.requested
    assert not FIRED.watching
    assert not FIRED.due(1000.0)


def test_clearing_scans_again_even_if_the_patterns_are_the_same():
    cleared = step(FIRED, node("21"), 12.0)
    assert cleared.watching
    assert needs_scan(FIRED, cleared)


def test_a_match_right_after_clearing_is_held_back_but_kept():
    again = step(step(FIRED, node("21"), 11.1), Matched(MATCH), 11.1)
    assert (again.due(12.9), again.due(13.0)) == (False, True)


def test_a_match_long_after_clearing_is_due_at_once():
    again = step(step(FIRED, node("21"), 100.0), Matched(MATCH), 100.0)
    assert again.due(100.0)


def test_a_watch_event_from_before_our_write_does_not_count_as_clearing():
    assert step(FIRED, node("19"), 12.0) == FIRED


def test_an_event_of_a_new_node_counts_whatever_its_version():
    assert step(FIRED, node("3", uid="new"), 12.0).watching


def test_versions_that_are_no_numbers_are_taken_as_they_come():
    assert step(FIRED, node("abc"), 12.0).watching


def test_the_nodes_deletion_counts_as_clearing():
    gone = step(FIRED, NodeGone(), 12.0)
    assert needs_scan(FIRED, gone)


def test_a_request_made_by_others_while_a_match_is_held_settles_it():
    settled = step(HOLDING, node(requested=True), 11.0)
    assert settled.held is None
    assert settled.requested


def test_a_request_that_stands_at_start_is_waited_for():
    waiting = step(step(INERT, node(requested=True), 0.0), ConfigSeen(IDEA), 0.0)
    assert not waiting.watching
    assert needs_scan(waiting, step(waiting, node("31"), 1.0))


def test_a_held_match_is_dropped_when_its_pattern_goes_and_kept_when_others_do():
    assert step(HOLDING, ConfigSeen(Patterns(("code",))), 11.0).watching
    assert step(HOLDING, ConfigSeen(BOTH), 11.0).held == MATCH


versions = st.integers(1, 50).map(str)
events: st.SearchStrategy[Event] = st.one_of(
    st.sampled_from([NO_PATTERNS, IDEA, BOTH]).map(ConfigSeen),
    st.builds(NodeSeen, st.sampled_from(["u", "v"]), versions, st.booleans()),
    st.just(NodeGone()),
    st.just(Matched(MATCH)),
    st.floats(0.1, 5).map(Failed),
)


@given(st.lists(events, max_size=30))
def test_a_match_is_held_only_for_patterns_in_force_and_never_beside_a_known_request(sequence: list[Event]):
    state = INERT
    for second, event in enumerate(sequence):
        state = step(state, event, float(second))
        assert not (state.held is not None and state.requested)
        assert state.held is None or state.held.pattern in state.patterns.entries
        assert not (state.watching and state.held is not None)


@given(st.lists(events, max_size=30))
def test_while_the_node_is_free_and_the_pattern_stays_a_match_is_never_lost(sequence: list[Event]):
    state = HOLDING
    for second, event in enumerate(sequence):
        settled = isinstance(event, NodeSeen) and event.requested
        unlisted = isinstance(event, ConfigSeen) and "idea" not in event.patterns.entries
        state = step(state, event, 20.0 + second)
        if settled or unlisted:
            return
        assert state.held == MATCH

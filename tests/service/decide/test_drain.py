from dataclasses import replace
from datetime import timedelta

import pytest

from service.decide.drain import drain, drain_of, must_leave
from service.decide.drainrules import DRAIN_LABEL, DrainRules, read_rules
from service.decide.world import Refusal
from tests.service.decide.builders import MORNING, SECOND, draining_world, node, pod

SKIP, WAIT = {DRAIN_LABEL: "skip"}, {DRAIN_LABEL: "wait-completed"}


def ordered(**orders: int) -> DrainRules:
    """Pods labelled `app` leave in these orders."""
    listed = [
        {
            "metadata": {"name": app},
            "spec": {
                "drain": {"behavior": "Drain", "order": order},
                "pods": [{"selector": {"matchLabels": {"app": app}}}],
            },
        }
        for app, order in orders.items()
    ]
    return read_rules(listed, {}, {})


def of(app: str, **changes):
    return pod(app, labels={"app": app}, **changes)


@pytest.mark.parametrize(
    ("kind", "stays"),
    [
        ({"controller_kind": "DaemonSet"}, True),
        ({"controller_kind": "DaemonSet", "orphaned": True}, False),
        ({"controller_kind": "DaemonSet", "orphaned": True, "mirror": True}, True),
        ({"mirror": True}, True),
        ({"finished": True}, True),
        ({"labels": SKIP}, True),
        ({"controller_kind": "ReplicaSet"}, False),
        ({"controller_kind": "StatefulSet"}, False),
        ({"controller_kind": "Job"}, False),
        ({"controller_kind": None}, False),
    ],
)
def test_daemonset_mirror_skipped_and_finished_pods_stay_and_all_others_must_leave(kind, stays):
    state = drain([pod(**kind)])
    assert state.done is stays
    assert (state.to_evict == ()) is stays


def test_in_an_emergency_no_label_keeps_a_pod():
    assert must_leave(pod(labels=SKIP))
    assert not must_leave(pod(controller_kind="DaemonSet"))


def test_a_pod_that_is_leaving_is_waited_for_but_not_asked_again():
    going, there = pod("going", deleting=True), pod("there")
    state = drain([going, there])
    assert (state.to_evict, state.going, state.remaining, state.done) == ((there,), (going,), 2, False)


def test_an_empty_node_is_drained():
    assert drain([]).done


# Order


def test_pods_of_a_lower_order_leave_first():
    first, second, plain = of("first"), of("second"), of("plain")
    state = drain([second, plain, first], ordered(first=-1, second=5))
    assert (state.to_evict, set(state.later)) == ((first,), {second, plain})
    state = drain([second, plain], ordered(first=-1, second=5))
    assert (state.to_evict, state.later) == ((plain,), (second,))
    assert drain([second], ordered(first=-1, second=5)).to_evict == (second,)


def test_a_pod_on_its_way_holds_back_those_of_a_higher_order():
    going, second = of("first", deleting=True), of("second")
    state = drain([going, second], ordered(first=-1, second=5))
    assert (state.to_evict, state.going, state.later) == ((), (going,), (second,))


def test_a_pod_of_a_higher_order_that_leaves_by_itself_is_waited_for():
    first, going = of("first"), of("second", deleting=True)
    state = drain([first, going], ordered(first=-1, second=5))
    assert (state.to_evict, state.going) == ((first,), (going,))


def test_a_pod_that_is_to_complete_counts_as_order_0_and_blocks_higher_ones():
    job, early, plain, late = pod("job", labels=WAIT), of("early"), pod("plain"), of("late")
    rules = ordered(early=-1, late=1)
    state = drain([job, early, plain, late], rules)
    assert (state.to_evict, state.awaited, set(state.later)) == ((early,), (job,), {plain, late})
    state = drain([job, plain, late], rules)
    assert (state.to_evict, state.awaited, state.later) == ((plain,), (job,), (late,))
    assert drain([job, late], rules).to_evict == ()
    assert drain([replace(job, finished=True), late], rules).to_evict == (late,)


def test_a_pod_that_is_to_complete_is_waited_for_also_while_it_terminates():
    job = pod("job", labels=WAIT, deleting=True)
    assert (drain([job]).awaited, drain([job]).going) == ((job,), ())


def test_a_completed_pod_blocks_nothing_and_is_counted_apart():
    job = pod("job", labels=WAIT, finished=True)
    state = drain([job, pod("other", finished=True)])
    assert (state.done, state.completed) == (True, (job,))


def test_a_finished_pod_does_not_hold_back_those_of_a_higher_order():
    late = of("late")
    assert drain([pod(finished=True), late], ordered(late=3)).to_evict == (late,)


# What is not known


def test_nothing_is_evicted_by_rules_that_cannot_be_read():
    going, there = pod("going", deleting=True), pod("there")
    state = drain([going, there, pod(controller_kind="DaemonSet")], DrainRules(problem="a rule is broken"))
    assert (state.to_evict, state.going, state.later, state.problem) == ((), (going,), (there,), "a rule is broken")


def test_nothing_is_evicted_while_the_labels_of_a_namespace_that_a_rule_asks_for_are_not_known():
    by_namespace = [{"namespaceSelector": {"matchLabels": {"team": "data"}}}]
    spec = {"drain": {"behavior": "Skip"}, "pods": by_namespace}
    rules = read_rules([{"metadata": {"name": "a"}, "spec": spec}], {}, {})
    state = drain([pod()], rules)
    assert (state.to_evict, state.remaining) == ((), 1)
    assert state.problem is not None
    assert "Namespaces" in state.problem
    assert drain([pod(namespace_labels={"team": "data"})], rules).done
    assert drain([pod(namespace_labels={})], rules).to_evict


# Refusals


def test_a_refused_eviction_is_posted_again_when_its_pause_is_over():
    waiting = pod("waiting", refusal=Refusal("a budget", 7 * SECOND))
    due = pod("due", refusal=Refusal("a budget", timedelta(0)))
    state = drain([waiting, due])
    assert (state.to_evict, state.refused, state.remaining) == ((due,), (waiting,), 2)
    assert state.retry_after == 7 * SECOND


# A Node whose kubelet does not report


@pytest.mark.parametrize(("ago", "stays"), [(-30, False), (0, False), (1.9, False), (2, True), (60, True)])
def test_on_an_unreachable_node_a_pod_counts_as_gone_shortly_after_its_grace_period(ago, stays):
    going = pod(deleting=True, deleted_at=MORNING - ago * SECOND)
    lost = draining_world(going, node=node(ready=False, unreachable=True))
    assert drain_of(lost, MORNING).done is stays
    assert not drain_of(draining_world(going), MORNING).done

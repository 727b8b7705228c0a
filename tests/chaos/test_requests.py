import pytest

from tests.chaos.faults import Fault, Moment
from tests.chaos.plan import EVENT_FAULTS, Selection, spread, strikes
from tests.chaos.requests import Target, read_write
from tests.chaos.scenarios import BY_NAME


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("/api/v1/nodes/a?x=y", Target("nodes", "", "a")),
        ("/api/v1/namespaces/n", Target("namespaces", "", "n")),
        ("/api/v1/namespaces/n/pods/p/eviction", Target("pods", "n", "p", "eviction")),
        ("/apis/cluster.x-k8s.io/v1beta2/namespaces/n/machines", Target("machines", "n")),
    ],
)
def test_a_path_says_what_a_request_is_about(path, target):
    assert Target.of(path) == target


def test_a_write_is_called_the_same_in_every_namespace():
    first = read_write("PATCH", "/api/v1/nodes/host-worker-chaos1?x", b"{}", "chaos1")
    second = read_write("PATCH", "/api/v1/nodes/host-worker-chaos2?x", b"{}", "chaos2")
    assert first.label == second.label == "PATCH nodes host-worker-NAMESPACE"


def test_a_creation_is_named_by_its_body_and_an_event_by_its_reason():
    made = read_write("POST", "/api/v1/namespaces/n/pods", b'{"metadata":{"name":"p"}}', "n")
    event = read_write("POST", "/apis/events.k8s.io/v1/namespaces/n/events", b'{"reason":"Why","metadata":{}}', "n")
    assert (made.label, event.label) == ("POST pods p", "POST events Why")


def test_every_fault_meets_every_write_and_some_meet_events():
    moments = [Moment("POST machines m", 1), Moment("POST events Why", 1)]
    planned = list(strikes(BY_NAME["activation"], moments))
    assert {one.fault for one in planned if one.moment == moments[0]} == set(Fault)
    assert {one.fault for one in planned if one.moment == moments[1]} == EVENT_FAULTS


def test_a_selection_takes_a_scenario_a_fault_or_both():
    moments = [Moment("POST machines m", 1)]
    for text, count in (("activation", len(Fault)), ("/409", 1), ("activation/500", 1), ("taints", 0)):
        assert len(list(strikes(BY_NAME["activation"], moments, [Selection.read(text)]))) == count


def test_what_is_killed_is_spread_over_the_scenario():
    moments = [Moment("a", nth) for nth in range(1, 13)]
    assert [one.nth for one in spread(moments, 4)] == [1, 4, 7, 10]

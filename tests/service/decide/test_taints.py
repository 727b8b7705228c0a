import pytest

from crds import names
from crds.status import NodeReference
from service.decide.taints import noted_taints, owned_taints, plan_taints, to_json, write_note
from service.decide.world import Taint
from tests.service.decide.builders import UID, node, running_status, status, taint

OURS = taint("workload", "batch")
EDITED = taint("workload", "ml")
ADMIN = taint("maintenance", "soon")
APPLIED = {"key": "workload", "value": "batch", "effect": "NoSchedule"}


def plan(wanted=(), owned=(), there=()):
    return plan_taints(wanted, owned, node(taints=there))


# wanted, owned, on the Node -> on the Node afterwards, owned afterwards, conflicts
CASES = {
    "add": ((OURS,), (), (), (OURS,), (OURS,), ()),
    "add beside an admin's": ((OURS,), (), (ADMIN,), (ADMIN, OURS), (OURS,), ()),
    "nothing to do": ((OURS,), (OURS,), (OURS,), (OURS,), (OURS,), ()),
    "change the value": ((EDITED,), (OURS,), (OURS, ADMIN), (EDITED, ADMIN), (EDITED,), ()),
    "remove": ((), (OURS,), (OURS, ADMIN), (ADMIN,), (), ()),
    "drift: ours was removed": ((OURS,), (OURS,), (ADMIN,), (ADMIN, OURS), (OURS,), ()),
    "removed by both": ((), (OURS,), (), (), (), ()),
    "an admin's is untouched": ((), (), (ADMIN,), (ADMIN,), (), ()),
    "same key, other effect": (
        (OURS,),
        (),
        (taint("workload", "batch", "NoExecute"),),
        (taint("workload", "batch", "NoExecute"), OURS),
        (OURS,),
        (),
    ),
    "conflict: an admin has it": ((OURS,), (), (EDITED,), (EDITED,), (), (EDITED,)),
    "conflict even with the same value": ((OURS,), (), (OURS,), (OURS,), (), (OURS,)),
    "conflict: an admin changed ours": ((OURS,), (OURS,), (EDITED,), (EDITED,), (OURS,), (EDITED,)),
    "an admin changed ours to what is wanted now": ((EDITED,), (OURS,), (EDITED,), (EDITED,), (EDITED,), ()),
    "no longer wanted, but an admin changed it": ((), (OURS,), (EDITED,), (EDITED,), (OURS,), (EDITED,)),
    "changed back, so it is ours again": ((), (OURS,), (OURS,), (), (), ()),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_only_taints_of_ours_are_touched(case):
    wanted, owned, there, after, owned_after, conflicts = case
    result = plan(wanted, owned, there)
    assert set(result.taints) == set(after)
    assert result.owned == owned_after
    assert result.conflicts == conflicts
    assert result.changed is (set(after) != set(there))


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_a_second_pass_writes_nothing(case):
    first = plan(*case[:3])
    second = plan(case[0], first.owned, first.taints)
    assert not second.changed
    assert (second.owned, second.conflicts) == (first.owned, first.conflicts)


def test_when_an_admins_taint_was_added_is_carried_along():
    dated = Taint("maintenance", "NoExecute", "", "2026-03-02T10:00:00Z")
    assert dated in plan((OURS,), (), (dated,)).taints


def test_a_date_on_our_own_taint_is_no_reason_to_write():
    dated = Taint(OURS.key, OURS.effect, OURS.value, "2026-03-02T10:00:00Z")
    assert not plan((OURS,), (OURS,), (dated,)).changed


# Ownership across a restart


def noted(*taints: Taint, **changes):
    return node(annotations={names.ANNOTATION_APPLIED_TAINTS: write_note(UID, taints, node())}, **changes)


def test_ownership_is_known_from_the_status():
    assert owned_taints(running_status(applied_node_taints=(APPLIED,)), node()) == (OURS,)


def test_ownership_is_known_from_the_node_after_a_crash_before_the_status_was_written():
    assert owned_taints(status(), noted(OURS)) == (OURS,)


def test_the_node_knows_the_newer_value():
    assert owned_taints(running_status(applied_node_taints=(APPLIED,)), noted(EDITED)) == (EDITED,)


def test_a_node_that_registered_again_has_nothing_of_ours():
    before = running_status(applied_node_taints=(APPLIED,), node_ref=NodeReference(name="node-7", uid="old"))
    assert owned_taints(before, node()) == ()


@pytest.mark.parametrize(
    "text",
    [
        *(None, "", "{", "5", "[5]", '[{"key": "a"}]', '{"a": 1}', "[" * 5000),
        '[{"key": "a", "effect": "Sometimes"}]',
        '[{"key": "%s", "effect": "NoSchedule"}]' % ("a" * 400),
        '[{"key": "a", "value": 5, "effect": "NoSchedule"}]',
    ],
)
def test_a_mangled_note_says_nothing(text):
    assert noted_taints(node(annotations={names.ANNOTATION_APPLIED_TAINTS: text})) == ()


@pytest.mark.parametrize("key", ["node.kubernetes.io/unreachable", "node-role.kubernetes.io/control-plane"])
def test_a_note_never_makes_ours_what_no_spec_may_ask_for(key):
    kubernetes_own = taint(key, "")
    seen = noted(taint(key), taints=(kubernetes_own, OURS))
    assert plan_taints((OURS,), owned_taints(status(), seen), seen).taints == (kubernetes_own, OURS)
    assert owned_taints(status(), noted(kubernetes_own, OURS)) == (OURS,)


def test_the_note_is_stable_and_read_back():
    valueless = Taint("a", "NoExecute")
    assert write_note(UID, [OURS, valueless], node()) == write_note(UID, [valueless, OURS], node())
    assert set(noted_taints(noted(OURS, valueless))) == {OURS, valueless}


def test_the_list_that_earlier_versions_noted_is_ours():
    text = '[{"key":"workload","value":"batch","effect":"NoSchedule"}]'
    assert noted_taints(node(annotations={names.ANNOTATION_APPLIED_TAINTS: text})) == (OURS,)


# Two ScheduledMachines on one Node


def test_what_a_neighbour_applied_is_its_own_and_stays_noted():
    theirs = Taint("theirs", "NoExecute")
    seen = noted(theirs, taints=(theirs,))
    assert owned_taints(status(), seen, {UID}) == ()
    both = node(annotations={names.ANNOTATION_APPLIED_TAINTS: write_note("mine", [OURS], seen, {UID})})
    assert noted_taints(both, {UID}) == (OURS,)
    assert noted_taints(both, {"mine"}) == (theirs,)


def test_taints_of_an_owner_that_is_gone_are_removed():
    seen = noted(OURS, taints=(OURS,))
    assert owned_taints(status(), seen) == (OURS,)
    assert write_note("mine", (), seen) == '{"mine":[]}'


def test_a_taint_is_written_as_the_api_has_it():
    assert to_json(OURS) == {"key": "workload", "effect": "NoSchedule", "value": "batch"}
    assert to_json(Taint("a", "NoExecute")) == {"key": "a", "effect": "NoExecute"}
    added = {"key": "a", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"}
    assert to_json(Taint("a", "NoExecute", added="2026-01-01T00:00:00Z")) == added

from service.observe.nodes import NodeIndex
from service.runtime.key import Key

PROD, TEST = Key("team", "prod"), Key("team", "test")
DESK, LAMP = Key("team", "desk"), Key("team", "lamp")


def test_a_node_leads_to_who_runs_on_it_in_its_own_cluster_only():
    index = NodeIndex()
    index.put(DESK, PROD, "node-7")
    assert index.users(PROD, "node-7") == {DESK}
    assert index.users(TEST, "node-7") == frozenset()


def test_two_may_claim_one_node_and_both_hear_of_it():
    index = NodeIndex()
    for user in (DESK, LAMP):
        index.put(user, PROD, "node-7")
    assert index.users(PROD, "node-7") == {DESK, LAMP}


def test_who_moves_to_another_node_hears_of_that_one_only():
    index = NodeIndex()
    index.put(DESK, PROD, "node-7")
    index.put(DESK, PROD, "node-8")
    assert index.users(PROD, "node-7") == frozenset()
    assert index.users(PROD, "node-8") == {DESK}


def test_who_is_forgotten_leaves_nothing_behind():
    index = NodeIndex()
    index.put(DESK, PROD, "node-7")
    index.forget(DESK)
    index.forget(DESK)
    assert index.users(PROD, "node-7") == frozenset()
    assert not index._users

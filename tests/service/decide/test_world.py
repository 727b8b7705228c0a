import pytest

from service.decide.world import Role
from tests.service.decide.builders import child, cluster, identity, machine, running_status, running_world, taint, world


@pytest.mark.parametrize(
    ("seen", "paused"),
    [
        (world(), False),
        (world(me=identity(paused=True)), True),
        (world(cluster=cluster(paused=True)), True),
        (world(cluster=None), False),
    ],
)
def test_either_the_scheduledmachine_or_its_cluster_may_be_paused(seen, paused):
    assert seen.paused is paused


def test_children_are_ours_alone_and_the_machine_comes_first():
    seen = running_world(bootstrap=child(Role.BOOTSTRAP, ours=False))
    assert [one.role for one in seen.children] == [Role.MACHINE, Role.INFRASTRUCTURE]
    assert [one.role for one in seen.foreign] == [Role.BOOTSTRAP]


def test_a_machine_with_another_owner_is_not_our_machine():
    assert world(machine=machine(of={"ours": False})).our_machine is None


@pytest.mark.parametrize(
    ("seen", "unseen"),
    [
        (world(contract=None, status=running_status()), True),
        (world(contract=None), False),
        (world(status=running_status()), False),
    ],
)
def test_a_machine_is_unseen_only_if_there_was_one_and_its_kind_is_not_served(seen, unseen):
    assert seen.machine_unknown is unseen


def test_a_taint_is_the_same_taint_whatever_its_value():
    assert taint(value="a").identity == taint(value="b").identity
    assert taint(effect="NoExecute").identity != taint().identity

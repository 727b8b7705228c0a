"""Every pair of consecutive situations: whatever holds now, anything may happen next, with a crash after any write."""

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import replace

import pytest

from crds.status import Phase
from service.decide import plan as actions
from service.decide.phases import machine_failure
from service.decide.situation import Situation
from service.decide.world import Role
from tests.service.decide.builders import CLOSES, EVENING, GRACE, MINUTE, MORNING, OPENS, pod
from tests.service.decide.changes import CHANGES
from tests.service.decide.invariants import condition
from tests.service.decide.simulation import Crash, Simulation, running
from tests.service.decide.test_invariants import look, rest


def new() -> Simulation:
    return Simulation()


def half_made() -> Simulation:
    sim = Simulation()
    with pytest.raises(Crash):
        sim.step(crash_after=3)
    return sim


def provisioning() -> Simulation:
    return settled(Simulation())


def running_with_taints() -> Simulation:
    sim = running(pods=[pod()])
    CHANGES["taint batch"](sim)
    return settled(sim)


def draining() -> Simulation:
    sim = running_with_taints()
    sim.now = CLOSES
    return settled(sim)


def leaving() -> Simulation:
    sim = draining()
    sim.let_pods_go()
    return settled(sim)


def left_over() -> Simulation:
    sim = leaving()
    del sim.objects[Role.MACHINE]
    sim.node = None
    return sim


def inactive() -> Simulation:
    return settled(Simulation(now=EVENING))


def reopened_while_leaving() -> Simulation:
    sim = leaving()
    CHANGES["always"](sim)
    return settled(sim)


def after(base: Callable[[], Simulation], name: str) -> Callable[[], Simulation]:
    def made() -> Simulation:
        sim = base()
        CHANGES[name](sim)
        return settled(sim)

    made.__name__ = f"{base.__name__}, {name}"
    return made


def settled(sim: Simulation) -> Simulation:
    sim.settle()
    return sim


BASES = (
    new,
    half_made,
    provisioning,
    running_with_taints,
    draining,
    leaving,
    left_over,
    inactive,
    reopened_while_leaving,
    after(running_with_taints, "disable"),
    after(draining, "disable"),
    after(leaving, "disable"),
    after(running_with_taints, "kill"),
    after(running_with_taints, "pause"),
    after(draining, "pause"),
    after(running_with_taints, "delete"),
    after(leaving, "delete"),
    after(running_with_taints, "Cluster gone"),
    after(draining, "unreadable"),
    after(running_with_taints, "Machine fails"),
    after(running_with_taints, "infrastructure vanishes"),
    after(inactive, "foreign Machine"),
    after(draining, "unreachable"),
    after(running_with_taints, "the owner is back"),
    after(draining, "the owner is back"),
    after(after(running_with_taints, "the owner is back"), "deletions finish"),
)


def expected_phase(sim: Simulation, before: Phase | None) -> Phase:
    """The table of phases, written down a second time."""
    world, intent = sim.world(), sim.intent
    present = bool(world.children) or world.machine_unknown
    housed = world.contract is None or (world.cluster is not None and not world.cluster.deleting)
    for applies, phase in (
        (world.paused, before or Phase.PENDING),
        (sim.deleting_since is not None, Phase.SHUTTING_DOWN),
        (intent.kill_switch, Phase.TERMINATED),
        (sim.status.reclaim is not None, Phase.EMERGENCY_REMOVE),
        (not intent.enabled, Phase.DISABLED),
        (not housed, Phase.SHUTTING_DOWN if present else Phase.INACTIVE),
        (intent.schedule is None, Phase.ERROR),
        (Situation.at(intent, world, sim.now).open, expected_inside(sim)),
        (present, Phase.SHUTTING_DOWN),
        (intent.spec is None, Phase.ERROR),
    ):
        if applies:
            return phase
    return Phase.INACTIVE


def expected_inside(sim: Simulation) -> Phase:
    world = sim.world()
    if sim.intent.spec is None:
        return Phase.ERROR
    if world.contract is None or any(child.deleting for child in world.children):
        return Phase.PENDING
    if world.foreign or machine_failure(world):
        return Phase.ERROR
    return Phase.ACTIVE


def copied(sim: Simulation) -> Simulation:
    """Everything else in it is frozen."""
    return replace(sim, objects=deepcopy(sim.objects), pods=list(sim.pods), events=[], log=[])


def next_situations(base: Callable[[], Simulation]) -> Iterator[tuple[str, Simulation]]:
    made = base()
    for name, change in CHANGES.items():
        if not name.endswith("fail"):
            sim = copied(made)
            change(sim)
            yield name, sim


@pytest.mark.parametrize("base", BASES, ids=lambda base: base.__name__)
def test_after_every_change_the_phase_is_the_one_in_the_table(base):
    for name, sim in next_situations(base):
        before = sim.status.phase
        look(sim)
        if not sim.gone:
            rest(sim)
            assert sim.gone or sim.status.phase is expected_phase(sim, before), name


@pytest.mark.parametrize("base", BASES, ids=lambda base: base.__name__)
def test_after_a_crash_behind_any_write_the_next_pass_completes_the_work(base):
    for name, sim in next_situations(base):
        planned = len(sim.plan().actions)
        undisturbed = copied(sim)
        if planned > 1:
            undisturbed.settle()
        for writes in range(1, planned):
            crashed = copied(sim)
            with pytest.raises(Crash):
                crashed.step(crash_after=writes)
            look(crashed)
            crashed.settle()
            assert crashed.gone == undisturbed.gone, name
            if not crashed.gone:
                assert crashed.status == undisturbed.status, (name, writes)
                assert crashed.objects == undisturbed.objects
                assert crashed.node is None or _lasting(crashed) == _lasting(undisturbed)


def _lasting(sim: Simulation) -> tuple[object, ...]:
    assert sim.node is not None
    return sim.node.taints, sim.node.unschedulable, sim.node.annotations, tuple(sim.pods)


# Some chains of more than two, in full


def test_a_machine_that_a_user_deletes_inside_the_window_is_created_again():
    sim = running()
    first = sim.status.machine_ref
    sim.ask_deletion_of(Role.MACHINE)
    assert sim.settle().plan.reason == "WaitingForPreviousMachine"
    sim.finish_deletion()
    sim.settle()
    assert sim.status.phase is Phase.ACTIVE
    assert sim.status.machine_ref != first


@pytest.mark.parametrize("edit", ["other bootstrap kind", "other host"])
def test_an_edit_between_the_first_objects_and_the_machine_counts_for_that_machine(edit):
    sim = half_made()
    CHANGES[edit](sim)
    assert sim.settle().plan.reason == "WaitingForPreviousMachine"
    sim.finish_deletion()
    sim.settle()
    assert sim.status.phase is Phase.ACTIVE
    assert next(one.status for one in sim.status.conditions if one.type == "UpToDate") == "True"
    assert sim.objects[Role.BOOTSTRAP]["kind"] == sim.spec["bootstrapSpec"]["kind"]
    assert sim.objects[Role.INFRASTRUCTURE]["spec"] == sim.spec["infrastructureSpec"]["spec"]


def test_a_creation_that_fails_after_a_replacement_does_not_undo_what_was_made():
    sim = running()
    sim.objects.clear()
    sim.node = None
    sim.step()
    sim.fails = actions.Create
    sim.step()
    sim.fails = None
    sim.step(crash_after=None)
    assert set(sim.objects) == set(Role)
    assert not [one for _, one in sim.log if isinstance(one, actions.Delete)]


def test_a_window_that_reopens_while_the_old_machine_leaves_gets_a_new_one_when_all_three_are_gone():
    sim = reopened_while_leaving()
    old = sim.status.machine_ref
    assert old is not None
    for role in (Role.INFRASTRUCTURE, Role.BOOTSTRAP, Role.MACHINE):
        assert sim.status.phase is Phase.PENDING
        del sim.objects[role]
        sim.step()
    sim.node = None
    sim.settle()
    assert sim.status.phase is Phase.ACTIVE
    assert sim.status.machine_ref is not None
    assert sim.status.machine_ref.uid != old.uid
    assert sim.status.shutdown_started_at is None


def test_no_eviction_after_a_cancellation_even_if_the_clock_crosses_the_old_deadline():
    sim = draining()
    CHANGES["always"](sim)
    mark = len(sim.log)
    for _ in range(3):
        sim.settle()
        sim.after(GRACE)
    assert not [one for _, one in sim.log[mark:] if isinstance(one, actions.Evict | actions.Delete | actions.Cordon)]


@pytest.mark.parametrize("failing", [actions.Delete, actions.RecordShutdown])
def test_a_replacement_that_stumbles_is_made_as_soon_as_it_can_be_and_counted_once(failing):
    sim = running()
    CHANGES["health check"](sim)
    sim.fails = failing
    sim.step()
    sim.fails = None
    sim.settle()
    sim.finish_deletion()
    sim.settle()
    assert sim.status.remediation is not None
    assert (sim.status.phase, sim.status.remediation.count) == (Phase.ACTIVE, 1)
    assert sim.event_reasons().count("Remediated") == 1


def test_taints_that_are_refused_keep_neither_our_cordon_on_the_node_nor_the_agent_away():
    sim = draining()
    sim.fails = actions.ApplyTaints
    for name in ("taint ml", "commands", "always"):
        CHANGES[name](sim)
    last = sim.step()
    assert sim.node is not None
    assert (sim.node.unschedulable, sim.agent_config) == (False, ("idea",))
    assert condition(last.status, "NodeTainted").reason == "PatchFailed"
    assert last.outcome.failure is not None, "so that it is tried again, ever more rarely"


def test_a_cancelled_shutdown_leaves_the_whole_grace_to_the_next():
    sim = draining()
    sim.fails = actions.Uncordon
    CHANGES["always"](sim)
    sim.step()
    sim.fails = None
    sim.after(2 * GRACE)
    CHANGES["office hours"](sim)
    assert sim.settle().plan.reason == "Draining"


def test_disable_and_enable_again_inside_the_window_changes_nothing():
    sim = running()
    mark = len(sim.log)
    for name in ("disable", "enable"):
        CHANGES[name](sim)
        sim.settle()
    done = [action for _, action in sim.log[mark:]]
    assert all(isinstance(action, actions.AnnotateClose) for action in done), (
        "the Node says whether its window is known to end"
    )
    assert sim.status.phase is Phase.ACTIVE


def test_deletion_of_a_running_machine_from_beginning_to_end():
    sim = running_with_taints()
    sim.delete()
    assert sim.settle().plan.reason == "Draining"
    sim.let_pods_go()
    assert sim.settle().plan.reason == "DeletingMachine"
    sim.finish_deletion()
    sim.settle()
    assert sim.gone


def test_a_pause_in_the_middle_of_a_shutdown_gives_the_pods_their_full_time_afterwards():
    sim = draining()
    sim.paused = True
    sim.settle()
    sim.after(4 * GRACE)
    sim.paused = False
    assert sim.settle().plan.reason == "Draining"
    assert sim.status.shutdown_started_at == sim.now


def test_a_repeated_kill_and_return_inside_a_window():
    sim = running()
    for _ in range(3):
        CHANGES["kill"](sim)
        assert sim.settle().plan.reason == "Terminating"
        sim.finish_deletion()
        assert sim.settle().plan.reason == "KillSwitch"
        CHANGES["revive"](sim)
        sim.settle()
        assert sim.status.phase is Phase.ACTIVE


def test_a_kill_switch_that_is_called_off_in_time_leaves_no_trace():
    sim = running()
    before = deepcopy(sim.objects)
    CHANGES["kill"](sim)
    sim.fails = actions.Delete
    sim.step()
    assert sim.objects != before
    sim.fails = None
    CHANGES["revive"](sim)
    sim.settle()
    assert (sim.status.phase, sim.objects) == (Phase.ACTIVE, before)


def test_the_bases_are_what_they_claim():
    phases = [base().status.phase for base in (provisioning, running_with_taints, draining, leaving, inactive)]
    assert phases == [Phase.ACTIVE, Phase.ACTIVE, Phase.SHUTTING_DOWN, Phase.SHUTTING_DOWN, Phase.INACTIVE]
    assert draining().plan().reason == "Draining"
    assert leaving().now - CLOSES < MINUTE
    assert OPENS < MORNING < CLOSES

"""The spine with its parts modelled: what is told when the status cannot be stored, who is looked at again when."""

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from crds import names
from crds.providers import DEFAULT_POLICY
from crds.status import Phase
from service.clock import ManualClock
from service.decide.intent import read_intent
from service.decide.outcome import Outcome
from service.decide.plan import Plan
from service.decide.world import Role
from service.kube.errors import Conflict, KubeError, Unavailable
from service.observe.subject import Subject
from service.reconciler import Reconciler, TroubleError
from service.runtime.key import Key
from service.runtime.queue import Queue
from tests.service.decide import builders
from tests.service.decide.builders import CLOSES, EVENING, MORNING

KEY = Key("team", "desk")


class Scene:
    """A reconciler that sees and does all it wants, but whose status writes end as listed, one after the other."""

    def __init__(self, *ends: KubeError | None) -> None:
        self.ends, self.told = list(ends), list[str]()
        self.world, self.edited = builders.world(), False
        self.clock = ManualClock(MORNING)
        self.priority = 50
        observer: Any = SimpleNamespace(
            subject=self.subject, observe=self.observe, write_subject=self.write, catch_up=self.write_nothing
        )
        observer.is_superseded = lambda _subject: self.edited
        events: Any = SimpleNamespace(record=lambda _me, notice: self.told.append(notice.reason))
        performer: Any = SimpleNamespace(perform=self.perform)
        self.queue = Queue(self.clock)
        self.reconcile = Reconciler(self.queue, observer, performer, events, self.clock)

    def subject(self, key: Key) -> Subject:
        raw = builders.stored(builders.raw_spec(priority=self.priority))
        raw["metadata"] |= {"resourceVersion": "1", "finalizers": [names.FINALIZER]}
        return Subject.read(key, raw, read_intent(raw, DEFAULT_POLICY), self.clock)

    async def observe(self, _subject: Any) -> Any:
        if isinstance(self.world, KubeError):
            raise self.world
        return self.world

    async def perform(self, _subject: Any, world: Any, plan: Any) -> Any:
        return world, Outcome(done=plan.actions)

    async def write(self, *_: Any, **__: Any) -> None:
        end = self.ends.pop(0)
        if end is not None:
            raise end

    async def write_nothing(self, _subject: Any) -> None:
        pass


async def test_what_was_done_is_told_although_the_status_cannot_be_stored():
    scene = Scene(Unavailable("no answer"))
    with pytest.raises(TroubleError, match="no answer"):
        await scene.reconcile(KEY)
    assert scene.told == ["MachineCreated"]


async def test_what_the_status_tells_is_told_when_that_is_stored():
    scene = Scene(Conflict("edited meanwhile"), None)
    scene.world = builders.world(cluster=None)
    await scene.reconcile(KEY)
    assert (scene.told, scene.queue.depth + scene.queue.waiting) == ([], 1)
    await scene.reconcile(KEY)
    assert scene.told == ["ScheduleActivated", "ClusterNotFound"]


async def test_a_removal_that_began_is_told_although_the_status_cannot_be_stored():
    scene = Scene(Unavailable("no answer"))
    scene.world = builders.running_world(machine=builders.machine(node_name=None), node=None)
    scene.clock.at = EVENING
    with pytest.raises(TroubleError):
        await scene.reconcile(KEY)
    assert scene.told == ["ShutdownStarted", "MachineDeleted"]


async def test_what_was_edited_while_we_looked_is_looked_at_again_before_anything_is_done():
    scene = Scene()
    scene.edited = True
    await scene.reconcile(KEY)
    assert (scene.told, scene.queue.take()) == ([], KEY)


@pytest.mark.parametrize("fails", ["the look", "the report"])
async def test_whatever_goes_wrong_the_next_boundary_is_not_slept_over(fails):
    scene = Scene(Unavailable("no answer"))
    if fails == "the look":
        scene.world = Unavailable("no answer")
    with pytest.raises((TroubleError, Unavailable)):
        await scene.reconcile(KEY)
    assert scene.queue.take() is None
    scene.clock.at = CLOSES
    assert scene.queue.take() == KEY


@pytest.mark.parametrize(
    ("now", "there", "first"), [(MORNING, True, "low"), (MORNING, False, "high"), (EVENING, False, "high")]
)
async def test_higher_priorities_go_first_while_machines_come_and_lower_ones_while_they_go(now, there, first):
    """Also inside a window in which nothing could be created yet: what they wait for is their machines."""
    scene = Scene(None, None, None)
    scene.clock.at = now
    scene.world = builders.running_world() if there else builders.world(cluster=None)
    for name, scene.priority in (("usual", 50), ("high", 200), ("low", 0)):
        await scene.reconcile(Key("team", name))
    scene.clock.advance(timedelta(days=1))
    assert scene.queue.take() == Key("team", first)


async def test_what_stands_in_the_way_is_looked_for_again_though_nobody_tells_when_it_goes():
    scene = Scene(None)
    scene.world = builders.world(bootstrap=builders.child(Role.BOOTSTRAP, ours=False))
    with pytest.raises(TroubleError, match="belongs to somebody else"):
        await scene.reconcile(KEY)
    assert scene.told == ["ScheduleActivated", "ForeignObject"]


async def test_a_pass_over_an_object_that_is_gone_lets_go_of_what_an_earlier_one_took_hold_of() -> None:
    # Such as its workload cluster, by a pass that was under way when the object went.
    forgotten: list[Key] = []
    observer: Any = SimpleNamespace(subject=lambda _key: None, forget=forgotten.append)
    nobody: Any = None
    clock = ManualClock(MORNING)
    queue, key = Queue(clock), Key("team", "desk")
    reconcile = Reconciler(queue, observer, nobody, nobody, clock)
    queue.add(key)
    await reconcile(key)
    assert forgotten == [key]
    assert queue.depth + queue.waiting == 0


@pytest.mark.parametrize(
    ("phase", "first"), [(Phase.EMERGENCY_REMOVE, KEY), (Phase.SHUTTING_DOWN, Key("team", "of-the-crowd"))]
)
def test_somebody_who_waits_for_his_machine_does_not_wait_for_a_crowd(phase: Phase, first: Key):
    nobody: Any = SimpleNamespace()
    clock = ManualClock(MORNING)
    queue = Queue(clock)
    queue.add(Key("team", "of-the-crowd"), due=MORNING)
    clock.advance(timedelta(minutes=1))
    reconciler = Reconciler(queue, nobody, nobody, nobody, clock)
    reconciler._look_again(KEY, Plan(phase, "Reason", "message", look_again_in=timedelta(0)), Outcome())
    assert queue.take() == first

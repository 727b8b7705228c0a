"""A pass with its parts modelled: which Events it emits if the status is not stored, and when a key is requeued."""

from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from crds import names
from crds.providers import DEFAULT_POLICY
from crds.status import Phase
from service.clock import ManualClock
from service.controller.reconciler import Actors, Reconciler
from service.controller.requeue import CONFLICT_PAUSES, Requeuer
from service.decide.intent import read_intent
from service.decide.lifecycle import decide
from service.decide.outcome import Blocker, Failure, Outcome
from service.decide.plan import ReleaseFinalizer
from service.decide.reasons import Reason, read_reason
from service.decide.requeue import BackoffKind, Requeue
from service.decide.world import Role
from service.kube.errors import Conflict, Forbidden, KubeError, NotFound, Unavailable
from service.notify.notifier import Notifier
from service.objects.subject import Subject
from service.observe.crowds import Crowds
from service.runtime.backoff import Failures
from service.runtime.key import Key
from service.runtime.own_writes import OwnWrites
from service.runtime.queue import Queue
from service.runtime.slots import Slots
from tests.service.decide import builders
from tests.service.decide.builders import CLOSES, EVENING, MORNING

KEY = Key("team", "desk")


class Scene:
    """A reconciler that sees and does all it wants, but whose status writes end as listed, one after the other."""

    def __init__(self, *ends: KubeError | None) -> None:
        self.ends, self.emitted = list(ends), list[str]()
        self.world: Any = builders.world()
        self.edited = False
        self.clock = ManualClock(MORNING)
        self.priority = 50
        self.spec, self.status = dict[str, Any](), dict[str, Any]()
        self.outcome = dict[str, Any]()
        self.away: KubeError | None = None
        self.others = list[str]()
        """Finalizers that are not ours."""
        self.written = list[dict[str, Any]]()
        observer: Any = SimpleNamespace(subject=self.subject, observe=self.observe)
        writer: Any = SimpleNamespace(write_status=self.write, refresh=self.refresh)
        writer.is_superseded = lambda _subject: self.edited
        events: Any = SimpleNamespace(record=lambda _me, event: self.emitted.append(event.reason))
        performer: Any = SimpleNamespace(perform=self.perform)
        self.real = 0.0
        self.queue = Queue(self.clock, real=lambda: self.real)
        watches: Any = SimpleNamespace()
        crowds = Crowds(watches, self.subject, self.clock, self.queue.add)
        actors = Actors(
            performer, writer, events, OwnWrites(self.queue.add), Slots(16, self.queue.add), crowds, Notifier()
        )
        self._reconciler = Reconciler(observer, actors, self.clock, lambda _key: None)
        self.conflicts = Failures(CONFLICT_PAUSES, chance=lambda: 0.0)
        self._requeue = Requeuer(self.queue, self.conflicts)

    async def reconcile(self, key: Key) -> Requeue:
        """One pass and what follows it."""
        requeue = await self._reconciler(key)
        assert requeue is not None
        self._requeue(key, requeue)
        return requeue

    def subject(self, key: Key) -> Subject:
        raw = builders.stored(builders.raw_spec(priority=self.priority) | self.spec) | {"status": self.status}
        raw["metadata"] |= {"resourceVersion": "1", "finalizers": [names.FINALIZER, *self.others]}
        return Subject.read(key, raw, read_intent(raw, DEFAULT_POLICY), self.clock)

    async def observe(self, _subject: Any) -> Any:
        if isinstance(self.world, KubeError):
            raise self.world
        return self.world

    async def perform(self, subject: Any, world: Any, plan: Any) -> Any:
        if ReleaseFinalizer() in plan.actions:
            subject.raw["metadata"]["finalizers"] = self.others
        return world, Outcome(**{"done": plan.actions, **self.outcome})

    async def write(self, _subject: Any, changes: dict[str, Any]) -> None:
        self.written.append(changes)
        end = self.ends.pop(0)
        if end is not None:
            raise end

    def taken_after(self, seconds: float) -> Key | None:
        """The key that a worker gets so many seconds of real time later."""
        self.real += seconds
        return self.queue.take()

    async def refresh(self, _subject: Any) -> None:
        if self.away is not None:
            raise self.away


async def test_no_status_is_written_when_nothing_changed():
    scene = Scene(None)
    scene.world = builders.running_world()
    await scene.reconcile(KEY)
    scene.status = scene.written[0]
    scene.world = replace(scene.world, status=scene.subject(KEY).status)
    scene.clock.advance(timedelta(minutes=1))
    await scene.reconcile(KEY)
    assert len(scene.written) == 1


async def test_nothing_is_written_to_an_object_that_was_just_let_go():
    scene = Scene()
    scene.world = builders.world(me=builders.identity(deleting_since=MORNING))
    await scene.reconcile(KEY)
    assert scene.written == []


async def test_an_object_that_other_finalizers_hold_does_not_repeat_its_events():
    """Such as the garbage collector in a deletion in the foreground: the next pass must know what was emitted."""
    scene = Scene(None)
    scene.others = ["foregroundDeletion"]
    scene.status = builders.running_status().to_json()
    known = scene.subject(KEY).status
    scene.world = builders.world(me=builders.identity(deleting_since=MORNING), status=known)
    await scene.reconcile(KEY)
    assert "MachineRemoved" in scene.emitted
    (changes,) = scene.written
    assert changes["machineRef"] is None


async def test_the_last_events_of_an_object_are_emitted_although_it_vanishes_before_the_status_is_stored():
    scene = Scene(NotFound("there is no such object"))
    scene.others, scene.status = ["foregroundDeletion"], builders.running_status().to_json()
    known = scene.subject(KEY).status
    scene.world = builders.world(me=builders.identity(deleting_since=MORNING), status=known)
    await scene.reconcile(KEY)
    assert "MachineRemoved" in scene.emitted


async def test_a_start_takes_nothing_back_before_the_workload_cluster_has_answered():
    scene = Scene()
    known = builders.running_status(phase=Phase.ACTIVE)
    scene.world = builders.running_world(status=known, workload=None, node=None)
    await scene.reconcile(KEY)
    assert scene.written == []


async def test_what_keeps_us_from_looking_is_in_the_status_with_one_warning():
    scene = Scene(None)
    scene.world = Forbidden("the operator may not list machines")
    for _ in range(2):
        assert (await scene.reconcile(KEY)).failure == "the operator may not list machines"
        scene.status = scene.written[0]
    (changes,) = scene.written
    assert (changes["phase"], changes["message"]) == ("Error", "the operator may not list machines")
    assert scene.emitted == ["Forbidden"]


async def test_events_of_actions_are_emitted_although_the_status_cannot_be_stored():
    scene = Scene(Unavailable("no answer"))
    assert (await scene.reconcile(KEY)).failure == "no answer"
    assert scene.emitted == ["MachineCreated"]


async def test_events_of_actions_are_emitted_although_the_status_is_refused():
    scene = Scene(Forbidden("a policy says no"))
    assert (await scene.reconcile(KEY)).failure == "a policy says no"
    assert scene.emitted == ["MachineCreated"]


async def test_events_of_actions_are_emitted_although_the_edited_object_cannot_be_read():
    scene = Scene(Conflict("edited meanwhile"))
    scene.away = Unavailable("no answer")
    assert (await scene.reconcile(KEY)).failure == "no answer"
    assert scene.emitted == ["MachineCreated"]


async def test_events_about_the_status_are_emitted_once_it_is_stored():
    scene = Scene(Conflict("edited meanwhile"), None)
    scene.world = builders.world(cluster=None)
    await scene.reconcile(KEY)
    assert (scene.emitted, scene.queue.depth + scene.queue.waiting) == ([], 1)
    await scene.reconcile(KEY)
    assert scene.emitted == ["ScheduleActivated", "ClusterNotFound"]


async def test_the_events_of_a_shutdown_are_emitted_although_the_status_cannot_be_stored():
    scene = Scene(Unavailable("no answer"))
    scene.world = builders.running_world(machine=builders.machine(node_name=None), node=None)
    scene.clock.at = EVENING
    await scene.reconcile(KEY)
    assert scene.emitted == ["ShutdownStarted", "MachineDeleted"]


async def test_an_object_edited_while_it_is_observed_is_observed_again_before_any_action():
    scene = Scene()
    scene.edited = True
    await scene.reconcile(KEY)
    assert (scene.emitted, scene.queue.take()) == ([], KEY)


@pytest.mark.parametrize("fails", ["the look", "the report", "everything, by a bug"])
async def test_no_failure_delays_the_next_boundary(fails):
    scene = Scene(Unavailable("no answer"))
    if fails == "the look":
        scene.world = Unavailable("no answer")
    if fails == "everything, by a bug":
        scene.world = None
    assert (await scene.reconcile(KEY)).failure
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


async def test_an_obstacle_without_a_watch_is_requeued():
    scene = Scene(None)
    scene.world = builders.world(bootstrap=builders.child(Role.BOOTSTRAP, ours=False))
    requeue = await scene.reconcile(KEY)
    assert requeue.backoff is BackoffKind.FAILURE
    assert "is not owned by this ScheduledMachine" in (requeue.failure or "")
    assert scene.emitted == ["ScheduleActivated", "ForeignObject"]


@pytest.mark.parametrize("reason", ["Forbidden", "ProviderNotFound", "ProviderRejected", "APIUnavailable"])
async def test_a_creation_that_fails_is_retried_for_every_reason(reason):
    scene = Scene(None)
    failure = Failure(decide(builders.intent(), scene.world, MORNING).actions[0], read_reason(reason), "it failed")
    scene.outcome = {"done": (), "failure": failure}
    requeue = await scene.reconcile(KEY)
    assert (requeue.failure, requeue.after, requeue.backoff) == ("it failed", None, BackoffKind.FAILURE)
    assert scene.written[0]["phase"] == "Error"


async def test_how_long_the_server_asks_to_wait_is_respected():
    scene = Scene(None)
    first = decide(builders.intent(), scene.world, MORNING).actions[0]
    scene.outcome = {"done": (), "failure": Failure(first, Reason.API_UNAVAILABLE, "busy", timedelta(seconds=7))}
    assert (await scene.reconcile(KEY)).after == timedelta(seconds=7)
    scene = Scene(Unavailable("busy", retry_after=9.0))
    assert (await scene.reconcile(KEY)).after == timedelta(seconds=9)


@pytest.mark.parametrize("now", [MORNING, EVENING])
async def test_an_invalid_spec_is_not_tried_again_until_it_is_edited(now):
    scene = Scene(None)
    scene.clock.at, scene.spec = now, {"priority": "high"}
    await scene.reconcile(KEY)
    assert scene.written[0]["phase"] == "Error"
    assert scene.taken_after(24 * 3600) is None
    assert scene.emitted[-1] == "InvalidSpec"


@pytest.mark.parametrize(
    ("world", "blockers", "seconds"),
    [
        ({"pods_requeue_after": timedelta(seconds=7)}, (), 7),
        ({}, (Blocker(builders.pod(), "a budget", timedelta(seconds=20)),), 20),
        (
            {"pods_requeue_after": timedelta(seconds=7)},
            (Blocker(builders.pod(), "a budget", timedelta(seconds=20)),),
            7,
        ),
    ],
    ids=["pods that are not watched", "refused by a budget", "both"],
)
async def test_a_drain_is_requeued_for_the_end_of_a_pause(world, blockers, seconds):
    scene = Scene(None)
    scene.clock.at = CLOSES + timedelta(minutes=1)
    scene.world = builders.draining_world(builders.pod(), **world)
    scene.outcome = {"blockers": blockers}
    await scene.reconcile(KEY)
    assert [scene.taken_after(pause) for pause in (0.9 * seconds, 0.2 * seconds)] == [None, KEY]


async def test_a_drain_whose_pods_are_watched_is_left_alone_until_something_changes():
    scene = Scene(None)
    scene.clock.at = CLOSES + timedelta(minutes=1)
    scene.world = builders.draining_world(builders.pod(deleting=True))
    await scene.reconcile(KEY)
    assert scene.taken_after(600) is None


async def test_a_conflict_is_requeued_at_once_and_then_with_backoff():
    scene = Scene(None, None, None)
    scene.outcome = {"done": (), "interrupted": True}
    for pause in (0.1, 0.2, 0.4):
        await scene.reconcile(KEY)
        assert [scene.taken_after(part * pause) for part in (0.9, 0.2)] == [None, KEY]
        scene.queue.done(KEY)


async def test_a_pass_over_an_object_that_is_gone_asks_for_no_other() -> None:
    scene = Scene()
    observer: Any = SimpleNamespace(subject=lambda _key: None)
    scene._reconciler._observer = observer
    assert await scene._reconciler(KEY) is None


async def test_an_emergency_is_due_ahead_of_a_crowd() -> None:
    scene = Scene()
    crowd = Key("team", "of-the-crowd")
    scene.queue.add(crowd, due=MORNING)
    scene.clock.advance(timedelta(minutes=1))
    scene._requeue(KEY, Requeue(at=scene.clock.now(), urgent=True))
    assert scene.queue.take() == KEY
    scene._requeue(KEY, Requeue(at=scene.clock.now()))
    assert scene.queue.take() == crowd


async def test_failures_are_forgotten_by_a_pass_in_which_nothing_failed_though_it_asks_for_another() -> None:
    scene = Scene()
    for _ in range(3):
        scene._requeue(KEY, Requeue(backoff=BackoffKind.FAILURE, failure="no answer"))
    scene._requeue(KEY, Requeue(after=timedelta(seconds=5), failure="busy"))
    assert KEY in scene.queue._failures.failing()
    scene._requeue(KEY, Requeue(after=timedelta(seconds=5)))
    assert KEY not in scene.queue._failures.failing()

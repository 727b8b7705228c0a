"""What the spine does where there is nothing to reconcile; everything else is shown on real servers."""

from types import SimpleNamespace
from typing import Any

from service.clock import ManualClock
from service.reconciler import Reconciler
from service.runtime.key import Key
from service.runtime.queue import Queue
from tests.service.decide.builders import MORNING


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

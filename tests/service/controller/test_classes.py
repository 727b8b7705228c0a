"""An edit of a class wakes its users at a bounded rate, in turns with other classes, and costs no memory that stays."""

import asyncio
import gc
import tracemalloc
from collections import Counter
from types import SimpleNamespace
from typing import Any

import orjson
import pytest

from crds.classes import MachineClass
from crds.classrules import read_class
from crds.rules import check
from service.controller.classes import WOKEN_AT_ONCE, WOKEN_PER_SECOND, ClassController
from service.observe.indexes import CLASS, INDEXES
from service.runtime.cache import Cache
from service.runtime.key import Key
from tests.corpus import machine_class
from tests.crds.classes import tenancy, user
from tests.waiting import until

FLEET = 50_000
USERS = 500


class Users:
    """Which ScheduledMachines name a class, as the cache of them says."""

    def __init__(self, **classes: int) -> None:
        self.keys = {
            name: [Key("team", f"{name}-{number}") for number in range(many)] for name, many in classes.items()
        }

    def keys_by(self, index: str, value: str) -> frozenset[Key]:
        return frozenset(self.keys[value]) if index == CLASS else frozenset()

    def count_by(self, index: str, value: str) -> int:
        return 0

    def __iter__(self) -> Any:
        return iter(())


class Scene:
    """A controller whose time passes only in its own pauses."""

    def __init__(self, **classes: int) -> None:
        self.seconds = 0.0
        self.woken: list[tuple[float, Key]] = []
        scheduled: Any = Users(**classes)
        owns = lambda key: key.name != "desk-7"  # noqa: E731
        self.controller = ClassController(self._store(), scheduled, owns, sleep=self._sleep)
        self.controller.subscribe(lambda key: self.woken.append((self.seconds, key)), lambda _key: None)

    def _store(self) -> Any:
        return SimpleNamespace(pending=False, run=self._forever, listed=self._at_once, subscribe=self._subscribe)

    def _subscribe(self, class_changed: Any, namespace_changed: Any) -> None:
        self.class_changed, self.namespace_changed = class_changed, namespace_changed

    async def _forever(self) -> None:
        await asyncio.Event().wait()

    async def _at_once(self) -> None:
        return

    async def _sleep(self, seconds: float) -> None:
        self.seconds += seconds
        await asyncio.sleep(0)

    async def settle(self) -> None:
        task = asyncio.create_task(self.controller.run())
        await until(lambda: not self.controller.waiting)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_fifty_thousand_users_are_woken_at_a_bounded_rate_each_once():
    scene = Scene(desk=FLEET)
    await scene.controller.listed()
    scene.class_changed("desk")
    await scene.settle()
    assert len({key for _, key in scene.woken}) == len(scene.woken) == FLEET - 1, "the one of another shard is left out"
    per_second = Counter(int(at) for at, _ in scene.woken)
    assert max(per_second.values()) <= WOKEN_PER_SECOND + WOKEN_AT_ONCE
    assert scene.seconds == pytest.approx(FLEET / WOKEN_PER_SECOND, rel=0.01)


async def test_a_class_with_few_users_does_not_wait_for_one_with_many():
    scene = Scene(desk=FLEET, pool=20)
    await scene.controller.listed()
    scene.class_changed("desk")
    scene.class_changed("pool")
    await scene.settle()
    last = max(at for at, key in scene.woken if key.name.startswith("pool"))
    assert last <= 5 * WOKEN_AT_ONCE / WOKEN_PER_SECOND


async def test_an_edit_meanwhile_begins_again_and_at_no_higher_rate():
    scene = Scene(desk=1000)
    await scene.controller.listed()
    scene.class_changed("desk")
    for _ in range(10):
        scene.class_changed("desk")
    await scene.settle()
    assert len(scene.woken) == 999


async def test_a_class_that_is_edited_all_the_time_starves_none_of_its_users():
    scene = Scene(desk=1000)
    await scene.controller.listed()
    edits = iter(range(20))

    def wake_and_edit(key: Key) -> None:
        scene.woken.append((scene.seconds, key))
        if len(scene.woken) % 60 == 0 and next(edits, None) is not None:
            scene.class_changed("desk")

    scene.controller.subscribe(wake_and_edit, lambda _key: None)
    scene.class_changed("desk")
    await scene.settle()
    assert {key for _, key in scene.woken[:1100]} == set(scene.controller.users("desk")) - {Key("team", "desk-7")}


async def test_before_the_first_pass_no_machine_is_woken_as_all_are_due_anyway():
    scene = Scene(desk=10)
    scene.class_changed("desk")
    assert scene.controller.waiting == 0


def test_a_user_of_a_class_costs_its_parameters_and_not_what_the_class_makes_of_them():
    """The class fills several KiB; the cache holds users as they were written, and a pass keeps nothing."""
    large = machine_class()
    large["spec"]["bootstrapSpec"]["spec"] = {f"field{number}": "x" * 100 for number in range(100)}
    found = read_class(large)
    assert isinstance(found, MachineClass)
    seen = tenancy(large)
    cache = Cache(indexes=INDEXES)

    written = user({"address": "10.0.0.7"})

    def stored(number: int) -> dict[str, Any]:
        about = {"name": f"desk-{number}", "uid": f"u{number}", "resourceVersion": str(number + 1)}
        spec = {**written["spec"], "parameters": {"address": f"10.{number >> 8}.{number & 255}.7"}}
        return {**written, "metadata": {**written["metadata"], **about}, "spec": spec}

    tracemalloc.start()
    for number in range(USERS):
        cache.upsert(stored(number))
    gc.collect()
    before = tracemalloc.get_traced_memory()[0]
    for number in range(USERS):
        model = check(stored(number), tenancy=seen).model
        assert model is not None
        assert len(model.spec.bootstrap_spec.spec) == 100
    del model
    gc.collect()
    after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert before / USERS < len(orjson.dumps(large["spec"])) / 2, "bytes for each user in the cache"
    assert (after - before) / USERS < 64, "bytes that a pass leaves behind"

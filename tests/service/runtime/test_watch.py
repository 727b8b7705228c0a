"""List and watch against a server that follows a script."""

import asyncio
import time
from collections import deque

import pytest

from service.kube.client import Page
from service.kube.decode import WatchEvent
from service.kube.errors import Expired, Forbidden, NotFound, StatusCause, Unavailable
from service.runtime import watch
from service.runtime.backoff import Backoff
from service.runtime.cache import Cache
from service.runtime.key import Key
from service.runtime.watch import Reflector
from tests.waiting import running, until

QUICK = Backoff(base=0.001, cap=0.01, jitter=0.0)


def thing(name, version, uid=None):
    return {"metadata": {"namespace": "a", "name": name, "uid": uid or name, "resourceVersion": str(version)}}


def bookmark(version):
    return WatchEvent("BOOKMARK", {"metadata": {"resourceVersion": str(version)}})


def added(name, version):
    return WatchEvent("ADDED", thing(name, version))


class Script:
    """Answers lists and watches in the order given; after the last watch it stays silent."""

    def __init__(self, *, lists, watches=()):
        self.lists = deque(lists)
        self.watches = deque(watches)
        self.listed = 0
        self.watched = []

    async def list_page(self, more):
        self.listed += 1
        answer = self.lists.popleft()
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def watch(self, version, on_open):
        self.watched.append(version)
        if not self.watches:
            on_open()
            await asyncio.Event().wait()
        steps = self.watches.popleft()
        if steps == ["refused"]:
            raise Unavailable("refused")
        on_open()
        for step in steps:
            if isinstance(step, Exception):
                raise step
            yield step


def page(version, *names, more=None):
    return Page([thing(name, version) for name in names], str(version), more)


def names(cache):
    return sorted(key.name for key in cache)


def reflect(script, cache=None):
    cache = cache if cache is not None else Cache()
    return Reflector(script, cache, backoff=QUICK), cache


async def test_a_list_fills_the_cache_and_the_watch_goes_on_from_there():
    script = Script(lists=[page(5, "x", "y")], watches=[[added("z", 6), WatchEvent("DELETED", thing("x", 7))]])
    reflector, cache = reflect(script)
    async with running(reflector.run()):
        await until(lambda: names(cache) == ["y", "z"])
    assert script.watched[0] == "5"


async def test_synced_is_set_only_when_the_whole_list_is_there():
    arrived = asyncio.Event()

    class Slow(Script):
        async def list_page(self, more):
            if more:
                await arrived.wait()
            return await super().list_page(more)

    script = Slow(lists=[page(5, "x", more="next"), page(5, "y")])
    reflector, cache = reflect(script)
    async with running(reflector.run()):
        await until(lambda: names(cache) == ["x"])
        assert not reflector.synced.is_set()
        arrived.set()
        await asyncio.wait_for(reflector.synced.wait(), 30)
    assert names(cache) == ["x", "y"]


async def test_a_lost_connection_is_resumed_without_a_new_list():
    script = Script(lists=[page(5, "x")], watches=[[added("y", 8), Unavailable("cut")], [added("z", 9)]])
    reflector, cache = reflect(script)
    async with running(reflector.run()):
        await until(lambda: names(cache) == ["x", "y", "z"])
    assert script.watched[:2] == ["5", "8"]
    assert script.listed == 1


async def test_bookmarks_move_the_point_to_resume_from():
    script = Script(lists=[page(5)], watches=[[bookmark(50), Unavailable("cut")]])
    reflector, _ = reflect(script)
    assert reflector.position == 0
    async with running(reflector.run()):
        await until(lambda: len(script.watched) == 2)
    assert script.watched == ["5", "50"]
    assert reflector.position == 50


@pytest.mark.parametrize(
    "loss",
    [
        Expired("too old"),
        Unavailable("too large", causes=(StatusCause("ResourceVersionTooLarge", "", ""),)),
        NotFound("no such kind"),
    ],
)
async def test_a_point_the_server_does_not_know_means_a_new_list_and_no_deletion_is_lost(loss):
    script = Script(lists=[page(5, "x", "y"), page(20, "y", "z")], watches=[[loss]])
    reflector, cache = reflect(script)
    deleted = []
    cache.listen(lambda change: deleted.append((change.type, change.key.name)))
    async with running(reflector.run()):
        await until(lambda: names(cache) == ["y", "z"])
    assert ("DELETED", "x") in deleted
    assert script.watched[-1] == "20"


async def test_a_deletion_and_recreation_during_an_outage_shows_as_both():
    second = Page([thing("x", 19, uid="another")], "20", None)
    script = Script(lists=[page(5, "x"), second], watches=[[Expired("too old")]])
    reflector, cache = reflect(script)
    heard = []
    cache.listen(lambda change: heard.append(str(change.type)))
    async with running(reflector.run()):
        await until(lambda: (cache.get(Key("a", "x")) or thing("x", 0))["metadata"]["uid"] == "another")
    assert heard == ["ADDED", "DELETED", "ADDED"]


async def test_a_list_that_breaks_off_in_the_middle_deletes_nothing():
    script = Script(
        lists=[page(5, "x", "y"), page(20, "x", more="next"), Unavailable("cut"), page(21, "x", "y")],
        watches=[[Expired("too old")]],
    )
    reflector, cache = reflect(script)
    heard = []
    async with running(reflector.run()):
        await until(reflector.synced.is_set)
        cache.listen(lambda change: heard.append(str(change.type)))
        await until(lambda: script.watched == ["5", "21"])
    assert "DELETED" not in heard
    assert names(cache) == ["x", "y"]


async def test_a_list_older_than_what_we_know_is_not_believed():
    stale, fresh = page(5, "x"), page(31, "x", "ours")
    script = Script(lists=[stale, fresh])
    reflector, cache = reflect(script)
    cache.absorb(thing("ours", 30))
    async with running(reflector.run()):
        await until(lambda: script.watched == ["31"])
    assert names(cache) == ["ours", "x"]


async def test_a_server_restored_from_a_backup_is_believed_in_the_end():
    script = Script(lists=[page(1000, "x", "lost"), *[page(10, "x")] * 4], watches=[[bookmark(9)]])
    reflector, cache = reflect(script)
    async with running(reflector.run()):
        await until(lambda: script.watched[-1:] == ["10"])
    assert names(cache) == ["x"]


async def test_failures_are_reported_and_reset_when_the_server_answers_again():
    script = Script(lists=[Unavailable("down"), Unavailable("down"), page(5)])
    reflector, _ = reflect(script)
    reasons: list[str] = []
    connected: list[int] = []
    reflector.on_restart = reasons.append
    reflector.on_connected = lambda: connected.append(1)
    async with running(reflector.run()):
        await asyncio.wait_for(reflector.synced.wait(), 30)
    assert reasons == ["Unavailable", "Unavailable"]
    assert reflector.error is None
    assert connected == [1]


async def test_a_resumed_watch_counts_as_connected_before_its_first_event():
    script = Script(lists=[page(5)], watches=[[Unavailable("cut")], ["refused"]])
    reflector, _ = reflect(script)
    async with running(reflector.run()):
        await until(lambda: len(script.watched) == 3)
        await until(lambda: reflector.error is None)


async def test_failures_in_a_row_are_answered_with_longer_pauses():
    reflector = Reflector(Script(lists=[]), Cache(), backoff=Backoff(base=1, cap=30, jitter=0.0))
    assert [reflector.failed(Unavailable("down")) for _ in range(6)] == [1, 2, 4, 8, 16, 30]


async def test_a_version_that_expired_during_an_outage_is_relisted_without_another_pause():
    reflector = Reflector(Script(lists=[]), Cache(), backoff=Backoff(base=1, cap=30, jitter=0.0))
    down, forgotten = Unavailable("down"), Expired("too old")
    assert [reflector.failed(error) for error in (down, down, forgotten)] == [1, 2, 0]
    assert reflector.failed(forgotten) == 8, "a server that forgets every time is left alone for ever longer"


async def test_the_server_may_ask_for_a_longer_pause():
    reflector = Reflector(Script(lists=[]), Cache(), backoff=QUICK)
    assert reflector.failed(Unavailable("busy", retry_after=12)) == 12


async def test_a_watch_that_ends_at_once_every_time_is_a_failure():
    script = Script(lists=[page(5)], watches=[[], [], []])
    reflector, _ = reflect(script)
    async with running(reflector.run()):
        await until(lambda: len(script.watched) == 4)
    assert reflector.failures == 3


async def test_a_server_that_refuses_every_watch_was_no_steady_watch(monkeypatch):
    monkeypatch.setattr(watch, "_STEADY_SECONDS", 0.0)
    script = Script(lists=[page(5)], watches=[["refused"], ["refused"], ["refused"]])
    reflector, _ = reflect(script)
    async with running(reflector.run()):
        await until(lambda: len(script.watched) == 4)
    assert reflector.failures == 3


async def test_reflectors_that_share_a_lock_list_one_after_the_other():
    gate, at_once, most = asyncio.Lock(), 0, 0

    class Counting(Script):
        async def list_page(self, more):
            nonlocal at_once, most
            at_once += 1
            most = max(most, at_once)
            await asyncio.sleep(0.001)
            at_once -= 1
            return await super().list_page(more)

    reflectors = [Reflector(Counting(lists=[page(5)]), Cache(), relisting=gate) for _ in range(5)]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(reflector.run()) for reflector in reflectors]
        await until(lambda: all(reflector.synced.is_set() for reflector in reflectors))
        for task in tasks:
            task.cancel()
    assert most == 1


async def test_nonsense_from_a_server_is_waited_out():
    script = Script(lists=[page(5)], watches=[[WatchEvent("ADDED", {"kind": "Nonsense"})], [added("x", 6)]])
    reflector, cache = reflect(script)
    async with running(reflector.run()):
        await until(lambda: names(cache) == ["x"])


async def test_a_relist_and_believes_lower_versions():
    script = Script(lists=[page(1000, "x"), page(7, "y")], watches=[[Unavailable("moved")]])
    reflector, cache = reflect(script)
    with pytest.raises(Unavailable):
        await reflector.list_and_watch()
    reflector.relist()
    async with running(reflector.run()):
        await until(lambda: names(cache) == ["y"])


async def test_what_was_still_under_way_at_a_relist_is_not_believed():
    class Moving(Script):
        async def watch(self, version, on_open):
            async for event in super().watch(version, on_open):
                if len(self.watched) == 1:
                    reflector.relist()
                yield event

    script = Moving(lists=[page(1000, "x"), page(7, "y")], watches=[[added("z", 1001), added("z", 1002)]])
    reflector, cache = reflect(script)
    async with running(reflector.run()):
        await until(lambda: len(script.watched) == 2)
    assert (script.watched, names(cache)) == (["1000", "7"], ["y"])


async def test_an_object_that_cannot_be_read_costs_the_watch_nothing_and_is_reported_once():
    no_uid = {"metadata": {"namespace": "a", "name": "bad", "resourceVersion": "6"}}
    events = [WatchEvent("ADDED", no_uid), WatchEvent("MODIFIED", no_uid), WatchEvent("MODIFIED", {"metadata": 7})]
    script = Script(lists=[page(5, "x")], watches=[[*events, added("y", 9), WatchEvent("ADDED", no_uid)]])
    reflector, cache = reflect(script)
    reported: list[str] = []
    reflector.on_defect = reported.append
    async with running(reflector.run()):
        await until(lambda: len(script.watched) == 2)
    assert names(cache) == ["x", "y"]
    assert reported == ["Malformed", "Malformed"], "one for the object without uid, one for the nameless"
    assert script.watched == ["5", "6"]


async def test_a_watch_goes_on_beyond_an_object_that_is_too_large_and_does_not_act_on_what_it_was():
    large = WatchEvent("MODIFIED", thing("x", 8), "it is long")
    script = Script(lists=[page(5, "x", "y")], watches=[[large, Unavailable("cut")]])
    reflector, cache = reflect(script)
    async with running(reflector.run()):
        await until(lambda: len(script.watched) == 2)
    assert script.watched == ["5", "8"]
    assert (cache.get(Key("a", "x")), cache.unreadable(Key("a", "x"))) == (None, "it is long")
    assert names(cache) == ["x", "y"]


async def test_a_list_with_an_unreadable_item_yields_the_others_and_deletes_nothing():
    bad = {"metadata": {"namespace": "a", "name": "x", "resourceVersion": "19", "uid": 7}}
    second = Page([bad, thing("y", 19)], "20", "next")
    third = Page([thing("z", 19)], "20", None, 1, "it is long")
    script = Script(lists=[page(5, "x", "y", "z"), second, third], watches=[[Expired("too old")]])
    reflector, cache = reflect(script)
    heard = []
    cache.listen(lambda change: heard.append(str(change.type)))
    async with running(reflector.run()):
        await until(lambda: script.watched == ["5", "20"])
    assert "DELETED" not in heard
    assert [bool(cache.unreadable(Key("a", name))) for name in "xyz"] == [True, False, True]


async def test_a_deletion_that_cannot_be_read_is_found_by_what_is_missing():
    gone = WatchEvent("DELETED", {"metadata": {"namespace": "a"}})
    script = Script(lists=[page(5, "x", "y"), page(20, "y")], watches=[[gone]])
    reflector, cache = reflect(script)
    async with running(reflector.run()):
        await until(lambda: names(cache) == ["y"])


async def test_a_watch_that_never_lasts_is_down_although_it_opens_each_time(monkeypatch):
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    reflector = Reflector(Script(lists=[]), Cache())
    for _ in range(10):
        reflector._opened()
        now += 3.0
        reflector.failed(Unavailable("cut"))
        now += 10.0
    assert reflector.down_seconds() == 130.0
    reflector._opened()
    now += 6.0
    assert reflector.down_seconds() == 0.0
    reflector.failed(Unavailable("cut"))
    now += 7.0
    assert reflector.down_seconds() == 7.0


@pytest.mark.parametrize(("error", "longest"), [(Unavailable("away"), 10.0), (Forbidden("no role"), 60.0)])
def test_a_server_that_refuses_is_asked_less_often_than_one_that_is_away(error, longest):
    reflector = Reflector(Script(lists=[]), Cache())
    pauses = [reflector.failed(error) for _ in range(20)]
    assert longest / 2 <= max(pauses) <= longest

"""Watches of providers' kinds: which of them fail for good, and when they end."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from service.kube.client import Client
from service.kube.errors import Forbidden, Unavailable
from service.kube.resource import Resource
from service.observe import provider_watches as module
from service.observe.informers import WatchListener
from service.observe.provider_watches import NotListedError, ProviderWatches
from service.observe.watches import Watches
from service.runtime.cache import Change, EventType
from service.runtime.key import Key

GADGETS = Resource("example.com", "v1", "gadgets", "Gadget")


class Unlisted:
    """An informer that has listed nothing yet."""

    is_synced = False

    def __init__(self, error, failures):
        self.error, self.failures = error, failures

    async def listed(self, pause):
        await asyncio.sleep(pause)
        raise Unavailable("cannot be listed")


@pytest.mark.parametrize(
    ("error", "failures", "raised"),
    [
        (Unavailable("the webhook is dead", status=500), 3, NotListedError),
        (Unavailable("the webhook is dead", status=429), 3, NotListedError),
        (Unavailable("the webhook is dead", status=500), 2, Unavailable),
        (Unavailable("no connection"), 30, Unavailable),
        (Forbidden("may not", status=403), 1, Forbidden),
        (None, 0, Unavailable),
    ],
)
async def test_a_kind_that_the_api_server_never_lists_is_broken_and_not_just_slow(monkeypatch, error, failures, raised):
    monkeypatch.setattr(module, "SYNC_SECONDS", 0.01)
    discovery: Any = SimpleNamespace(resolve=lambda *_: asyncio.sleep(0, GADGETS))
    nothing: Any = None
    providers: Any = ProviderWatches(nothing, discovery, nothing)
    providers.informers[GADGETS] = Unlisted(error, failures)
    with pytest.raises(raised) as caught:
        await providers.kind(GADGETS.api_version, GADGETS.kind)
    assert type(caught.value) is raised


class Kind:
    """The watch of a provider's kind, and the keys that its cache holds."""

    def __init__(self, resource, *keys, failures=0):
        self.resource, self.keys, self.failures = resource, keys, failures

    def __iter__(self):
        return iter(self.keys)

    def __len__(self):
        return len(self.keys)

    def get(self, key):
        return {"metadata": {"name": key.name}}


class Ending:
    """One kind that is watched, and what the watches report about it."""

    def __init__(self, *keys, failures=0):
        self.woken: list[Key] = []
        self.ended: list[Any] = []
        self.forgotten: list[str] = []
        discovery: Any = SimpleNamespace(forget=self.forgotten.append, crd_changed=lambda _name: None)
        client = Client.from_inline("https://127.0.0.1:1", token="t")
        self.watches: Any = Watches(client, discovery)
        self.watches.subscribe(
            WatchListener(child=lambda change: self.woken.append(change.key), ended=self.ended.append)
        )
        self.informer = Kind(GADGETS, *keys, failures=failures)
        self.task = asyncio.get_running_loop().create_task(asyncio.Event().wait())
        providers: Any = self.watches.providers
        providers.informers[GADGETS] = self.informer
        providers._tasks[GADGETS] = self.task

    def names(self, kind):
        metadata = {"namespace": "team", "name": "desk", "uid": "u", "resourceVersion": "1"}
        raw = {"metadata": metadata, "spec": {"bootstrapSpec": {"apiVersion": "example.com/v2", "kind": kind}}}
        self.watches.scheduled.absorb(raw)

    async def is_over(self):
        await asyncio.sleep(0)
        return self.ended == [GADGETS] and not self.watches.providers.informers and self.task.cancelled()


async def test_a_kind_that_no_object_names_is_not_watched_after_two_sweeps():
    ending = Ending()
    ending.watches.providers.sweep()
    assert not await ending.is_over()
    ending.watches.providers.sweep()
    assert await ending.is_over()


async def test_a_kind_that_an_object_names_in_any_version_stays_watched():
    ending = Ending()
    ending.watches.providers.sweep()
    ending.names("Gadget")
    ending.watches.providers.sweep()
    ending.watches.providers.sweep()
    assert len(ending.watches.providers.informers) == 1
    ending.task.cancel()


async def test_a_kind_of_which_an_object_of_ours_is_left_stays_watched():
    ending = Ending(Key("team", "desk-infra"))
    ending.watches.providers.sweep()
    ending.watches.providers.sweep()
    assert len(ending.watches.providers.informers) == 1
    ending.task.cancel()


async def test_a_kind_whose_definition_is_deleted_is_not_watched_and_its_objects_are_woken():
    ending = Ending(Key("team", "desk-infra"))
    gone = Change(EventType.DELETED, Key("", GADGETS.label), {}, 1)
    ending.watches._definition_changed(gone)
    assert await ending.is_over()
    assert ending.woken == [Key("team", "desk-infra")]


@pytest.mark.parametrize(
    ("reason", "failures", "over"), [("NotFound", 3, True), ("NotFound", 2, False), ("Forbidden", 9, False)]
)
async def test_a_kind_that_is_not_served_any_more_is_not_listed_for_ever(reason, failures, over):
    ending = Ending(failures=failures)
    ending.watches.providers._failed(ending.informer, reason)
    assert await ending.is_over() is over
    assert ending.forgotten == ([GADGETS.group] if over else [])
    ending.task.cancel()

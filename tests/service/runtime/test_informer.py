"""One face for one cache or several."""

import asyncio
from typing import Any

import pytest
import structlog

from service.kube.client import Page
from service.kube.errors import KubeError, Unavailable
from service.kube.resource import CONFIG_MAPS, NODES
from service.runtime.informer import Informer
from service.runtime.key import Key
from tests.waiting import running, until

NOWHERE: Any = None


def raw(namespace, name="one"):
    return {"metadata": {"namespace": namespace, "name": name, "uid": "u", "resourceVersion": "7"}}


@pytest.mark.parametrize("namespaces", [(), ("a", "b")], ids=["all namespaces", "a few"])
def test_the_first_object_that_we_write_is_known_at_once(namespaces):
    informer = Informer(NOWHERE, CONFIG_MAPS, namespaces=namespaces)
    informer.absorb(raw("a"))
    assert Key("a", "one") in informer


def test_an_object_that_we_saw_go_does_not_come_back_though_it_was_the_only_one():
    informer = Informer(NOWHERE, CONFIG_MAPS)
    informer.absorb_deletion(Key("a", "one"), "u")
    informer.absorb(raw("a"))
    assert len(informer) == 0


def test_what_is_in_a_namespace_that_is_not_watched_is_not_kept():
    informer = Informer(NOWHERE, CONFIG_MAPS, namespaces=("a",))
    informer.absorb(raw("c"))
    assert len(informer) == 0


def test_a_kind_without_namespaces_has_one_cache_whatever_is_watched():
    informer = Informer(NOWHERE, NODES, namespaces=("a", "b"))
    informer.absorb({"metadata": {"name": "one", "uid": "u", "resourceVersion": "7"}})
    assert informer.get(Key("", "one"))


async def test_what_a_watch_logs_is_not_said_of_the_object_that_needed_it_first():
    class Server:
        async def list_page(self, *_args, **_options):
            bound.append(structlog.contextvars.get_contextvars())
            await asyncio.Event().wait()

    bound: list[dict[str, Any]] = []
    server: Any = Server()
    with structlog.contextvars.bound_contextvars(object="a/desk"):
        async with running(Informer(server, NODES).run()):
            await until(lambda: bound)
    assert bound == [{}]


@pytest.mark.parametrize(
    ("pages", "error", "complete"), [(3, None, True), (0, None, False), (3, Unavailable("expired"), False)]
)
async def test_a_long_list_is_waited_for_as_long_as_its_pages_come(pages: int, error: KubeError | None, complete: bool):
    informer = Informer(NOWHERE, NODES)
    (reflector,) = informer._reflectors.values()
    left = pages

    async def synced(within: float | None = None) -> None:
        nonlocal left
        if left == 0 and pages:
            return
        left -= 1
        reflector.pages += 1 if pages else 0
        reflector.error = error
        raise Unavailable(f"no complete list within {within} s")

    informer.synced = synced  # type: ignore[method-assign]
    if complete:
        await informer.listed(pause=15.0)
        return
    with pytest.raises(Unavailable):
        await informer.listed(pause=15.0)


async def test_the_pages_of_a_list_are_counted():
    class Server:
        async def list_page(self, *_args: Any, **_options: Any) -> Page:
            left.pop()
            return Page([raw("", str(len(left)))], "7", "more" if left else None)

        async def watch(self, *_args: Any, **_options: Any) -> Any:
            await asyncio.Event().wait()
            yield

    left = [1, 2, 3]
    server: Any = Server()
    informer = Informer(server, NODES)
    async with running(informer.run()):
        await informer.listed(pause=15.0)
    assert informer._pages == 3
    assert len(informer) == 3

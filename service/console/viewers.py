"""Who looks at the console of a cluster: users by their tokens, and for each user one set of watches.

Every request of a user goes out with the token that the user gave. Watches are shared by the sessions of one user, so
that an API server sees at most four for each: all of them show the namespace that the user chose last. Users are told
apart by all that the API server says of them, groups included.
"""

import asyncio
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import orjson

from service.clock import Clock
from service.console.viewer import Viewer, ViewPlace
from service.kube.client import Client
from service.kube.credentials import Endpoint, Token
from service.kube.errors import Unauthorized
from service.kube.resource import SELF_SUBJECT_REVIEWS

ANONYMOUS: Final = "system:anonymous"
USERS_MAX: Final = 16
"""Users with watches at a time: each costs memory for the whole fleet."""
VERIFIED_SECONDS: Final = 60.0
"""A token that was verified this recently is not verified again."""
OF_THE_TOKEN: Final = "authentication.kubernetes.io/credential-id"  # noqa: S105 - the name of a field
"""Tells tokens of one user apart, not users."""


class WatchKey(NamedTuple):
    """Which watches a session needs: those of a user, in a namespace or everywhere."""

    user: bytes
    namespace: str | None


@dataclass(slots=True)
class SharedViewer:
    """The watches of one user, with the token that was verified last."""

    viewer: Viewer
    token: Token
    starting: "asyncio.Task[None]"
    callers: "set[Caller]" = field(default_factory=set)


@dataclass(slots=True, eq=False)
class Caller:
    """One session: its own client, and what it shares with other sessions of the same user."""

    key: WatchKey
    text: str
    viewer: Viewer
    verified: float


@dataclass(slots=True)
class Viewers:
    """Starts watches for the first session of a user, and ends them with the last."""

    endpoint: Endpoint
    clock: Clock
    operator_namespace: str
    monotonic: Callable[[], float] = time.monotonic
    shared: dict[WatchKey, SharedViewer] = field(default_factory=dict)
    _joining: "weakref.WeakValueDictionary[bytes, asyncio.Lock]" = field(default_factory=weakref.WeakValueDictionary)
    """Sessions of one user begin one after the other."""
    _ending: set["asyncio.Task[None]"] = field(default_factory=set)

    async def join(self, text: str, namespace: str | None, make_room: Callable[[], bool]) -> Caller:
        """A session for a token; `Unauthorized` if the API server does not accept it.

        `make_room` ends another session, and says whether there was one: watches are for so many users at a time.
        """
        own = Client(self.endpoint, Token(text))
        try:
            key = WatchKey(await identity(own), namespace)
            async with self._joining.setdefault(key.user, asyncio.Lock()):
                shared = await self._started(key, text, make_room)
                caller = Caller(key, text, shared.viewer.seen_by(own), self.monotonic())
                shared.callers.add(caller)
                self._gather(key, shared)
        except BaseException:
            await own.close()
            raise
        shared.token.token = text
        return caller

    async def verify(self, caller: Caller) -> None:
        """`Unauthorized` if the API server no longer accepts the token, or takes its owner for another user."""
        if self.monotonic() - caller.verified < VERIFIED_SECONDS:
            return
        if await identity(caller.viewer.client) != caller.key.user:
            raise Unauthorized("The API server now takes the owner of this token for another user.")
        caller.verified = self.monotonic()
        if caller.key in self.shared:
            self.shared[caller.key].token.token = caller.text

    def leave(self, caller: Caller) -> None:
        """Ends a session, and the watches if it was the user's last."""
        caller.viewer.wake()
        self._later(caller.viewer.client.close())
        shared = self.shared.get(caller.key)
        if shared is not None:
            shared.callers.discard(caller)
            if not shared.callers:
                self._end(caller.key)

    async def stop(self) -> None:
        """Ends all watches."""
        for key in tuple(self.shared):
            self._end(key)
        await asyncio.gather(*self._ending, return_exceptions=True)

    async def _started(self, key: WatchKey, text: str, make_room: Callable[[], bool]) -> SharedViewer:
        shared = self.shared.get(key) or self._start(key, text, make_room)
        try:
            await asyncio.shield(shared.starting)
        except BaseException:
            if self.shared.get(key) is shared and not shared.callers:
                self._end(key)
            raise
        return shared

    def _start(self, key: WatchKey, text: str, make_room: Callable[[], bool]) -> SharedViewer:
        while len(self.shared) >= USERS_MAX and make_room():
            pass
        token = Token(text)
        viewer = Viewer(ViewPlace(Client(self.endpoint, token), self.clock, key.namespace, self.operator_namespace))
        made = SharedViewer(viewer, token, asyncio.create_task(viewer.start()))
        self.shared[key] = made
        return made

    def _gather(self, key: WatchKey, shared: SharedViewer) -> None:
        """The user's other sessions show this namespace from now on; their pages connect and read again."""
        for other in [each for each in self.shared if each.user == key.user and each != key]:
            for caller in self.shared[other].callers:
                seen = shared.viewer.seen_by(caller.viewer.client)
                seen.still = caller.viewer.still
                caller.key, caller.viewer = key, seen
                shared.callers.add(caller)
            self._end(other)

    def _end(self, key: WatchKey) -> None:
        self._later(_stopped(self.shared.pop(key)))

    def _later(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)


async def _stopped(shared: SharedViewer) -> None:
    shared.starting.cancel()
    with suppress(Exception, asyncio.CancelledError):
        await shared.starting
    shared.viewer.end()
    await shared.viewer.stop()


async def identity(client: Client) -> bytes:
    """All that the API server says of a token's owner; `Unauthorized` if it takes them for nobody."""
    answer = await client.create(SELF_SUBJECT_REVIEWS, SELF_SUBJECT_REVIEWS.envelope())
    user = dict((answer.get("status") or {}).get("userInfo") or {})
    if user.get("username", ANONYMOUS) == ANONYMOUS:
        raise Unauthorized("The API server does not know whose token this is.")
    user["groups"] = sorted(user.get("groups") or ())
    user["extra"] = {name: found for name, found in (user.get("extra") or {}).items() if name != OF_THE_TOKEN}
    return orjson.dumps(user, option=orjson.OPT_SORT_KEYS)

"""Who may use the console: a token that is exchanged once for a cookie, and the sessions behind cookies."""

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

Seen = TypeVar("Seen")
COOKIE_BYTES: Final = 32
TOKEN_BYTES: Final = 16
"""Short, so that the address fits a line of a terminal; an attacker cannot guess it in the time that it is good for."""
SESSIONS_MAX: Final = 256
OWNER_MAX: Final = 16
"""Sessions of one user: who logs in again and again ends only sessions of their own."""


@dataclass(slots=True)
class ConsoleSession(Generic[Seen]):
    """A browser that was let in, and what it sees."""

    seen: Seen
    begun: float
    last_used: float
    owner: bytes | None = None


@dataclass(slots=True)
class Sessions(Generic[Seen]):
    """Sessions by the hash of their cookie, in memory only; the oldest makes room for a new one."""

    lasts: float = float("inf")
    idle: float = float("inf")
    monotonic: Callable[[], float] = time.monotonic
    on_end: Callable[[Seen], None] = lambda _seen: None
    _known: dict[bytes, ConsoleSession[Seen]] = field(default_factory=dict)

    def open(self, seen: Seen, owner: bytes | None = None) -> str:
        """A cookie for a new session."""
        cookie = secrets.token_urlsafe(COOKIE_BYTES)
        self.add(cookie, seen, owner)
        return cookie

    def add(self, cookie: str, seen: Seen, owner: bytes | None = None) -> None:
        """A session for those who know the cookie, or a secret of their own; `owner` tells users apart."""
        now = self.monotonic()
        self.close(cookie)
        theirs = [key for key, session in self._known.items() if owner is not None and session.owner == owner]
        if len(theirs) >= OWNER_MAX:
            self._end(self._oldest(theirs))
        while len(self._known) >= SESSIONS_MAX:
            self.drop_oldest()
        self._known[_hashed(cookie)] = ConsoleSession(seen, now, now, owner)

    def find(self, cookie: str | None) -> Seen | None:
        """What the browser with this cookie sees; None if it was not let in, or no longer is."""
        key = _hashed(cookie or "")
        session = self._known.get(key)
        if session is None:
            return None
        now = self.monotonic()
        if self._over(session, now):
            self._end(key)
            return None
        session.last_used = now
        return session.seen

    def close(self, cookie: str | None) -> None:
        """Ends a session."""
        self._end(_hashed(cookie or ""))

    def drop_oldest(self) -> bool:
        """Ends the session that was used least recently; whether there was one."""
        if not self._known:
            return False
        self._end(self._oldest(self._known))
        return True

    def sweep(self) -> None:
        """Ends the sessions whose time is over, and those that are not used."""
        now = self.monotonic()
        for key in [key for key, session in self._known.items() if self._over(session, now)]:
            self._end(key)

    def _oldest(self, keys: Iterable[bytes]) -> bytes:
        return min(keys, key=lambda each: self._known[each].last_used)

    def _over(self, session: ConsoleSession[Seen], now: float) -> bool:
        return now - session.begun > self.lasts or now - session.last_used > self.idle

    def _end(self, key: bytes) -> None:
        ended = self._known.pop(key, None)
        if ended is not None:
            self.on_end(ended.seen)


class PageKeys:
    """A second secret for each cookie, which only pages of the console know.

    Browsers send a cookie to every port of a host, so also to a server of another user of this machine. What a page
    stores, they keep apart by port.
    """

    def __init__(self) -> None:
        self._secret = secrets.token_bytes(COOKIE_BYTES)

    def of(self, cookie: str) -> str:
        """The key that belongs to a cookie; it does not follow from the cookie."""
        return hmac.digest(self._secret, cookie.encode(), hashlib.sha256).hex()

    def match(self, cookie: str, given: str) -> bool:
        """Whether it is the key of the cookie."""
        return hmac.compare_digest(self.of(cookie).encode(), given.encode())


class OneTimeToken:
    """Can be exchanged once."""

    def __init__(self) -> None:
        self.text = secrets.token_urlsafe(TOKEN_BYTES)
        self._used = False

    def redeem(self, given: str) -> bool:
        """Whether it is the token, and was not used before."""
        right = hmac.compare_digest(given.encode(), self.text.encode())
        if self._used or not right:
            return False
        self._used = True
        return True


def _hashed(cookie: str) -> bytes:
    return hashlib.sha256(cookie.encode()).digest()

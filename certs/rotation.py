"""Renews the serving certificate and has the webhook configurations trust it, in every replica at once.

The store decides races: every write names the version it was based on, and a replica that loses looks again.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Protocol, TypeVar

import structlog

from certs.bundle import Bundle, BundleState, Policy, RotationRequest, advance, first_bundle, requeue_at
from certs.tls import ServingContext
from certs.trust import Authorities, Trust, authorities, joined

FIRST_RETRY: Final = 0.2
LONGEST_RETRY: Final = 30.0
# A host that was suspended must notice how much time has passed.
LONGEST_SLEEP: Final = 3600.0

log = structlog.get_logger(__name__)
T = TypeVar("T")


class StoreUnavailableError(Exception):
    """The store cannot be read or written now; try again later."""


class LostRaceError(Exception):
    """Another replica wrote first: read again."""


@dataclass(frozen=True, slots=True)
class Published:
    """What one webhook configuration trusts at present."""

    name: str
    version: str
    trusted: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class StoreSnapshot:
    """The store at one moment; `configurations` were read *before* the bundle.

    In that order a stale reader cannot put back an older trust: if the bundle moved on in between, so did the version
    of the configurations that the writer then touched.
    """

    bundle: Bundle | None
    version: str | None
    configurations: tuple[Published, ...] = ()
    requested: RotationRequest | None = None

    @property
    def entries(self) -> tuple[bytes, ...]:
        """The caBundle of every webhook."""
        return entries(self.configurations)


def entries(configurations: tuple[Published, ...]) -> tuple[bytes, ...]:
    """The caBundle of every webhook of these configurations."""
    return tuple(entry for published in configurations for entry in published.trusted)


def carried(wanted: Authorities, found: tuple[bytes, ...]) -> bool:
    """Whether each caBundle holds these authorities and no others."""
    return all(authorities(entry) == wanted for entry in found)


class Publisher(Protocol):
    """Where the webhook configurations live."""

    async def publish(self, trusted: bytes, configurations: tuple[Published, ...]) -> None:
        """Puts the caBundle into these configurations, each over the version given."""
        ...

    async def changed(self) -> None:
        """Returns once a configuration, or the bundle, may differ from what was read last."""
        ...


class Store(Publisher, Protocol):
    """Where the bundle lives too."""

    async def read(self) -> StoreSnapshot:
        """The configurations, then the bundle."""
        ...

    async def save(self, bundle: Bundle, version: str | None) -> None:
        """Writes the bundle over `version` (None: creates it) and clears a request; `LostRaceError` if it moved."""
        ...


@dataclass(slots=True)
class Rotation:
    """The loop of one replica."""

    store: Store
    serving: ServingContext
    names: tuple[str, ...]
    now: Callable[[], datetime]
    policy: Policy = field(default_factory=Policy)
    loaded: asyncio.Event = field(default_factory=asyncio.Event)
    trust: Trust = field(init=False)
    _current: Bundle | None = None

    def __post_init__(self) -> None:
        """An authority of another source stays as long as one of our own that was replaced."""
        self.trust = Trust(self.policy.retire)

    async def run(self) -> None:
        """Never returns; retries while the store is unavailable."""
        while True:
            bundle = await until_answered(self.settle)
            await self._wait(min(requeue_at(bundle, self.policy), self.trust.requeue_at()))

    async def settle(self) -> Bundle:
        """Takes step after step until nothing is due."""
        attempts = 0
        while True:
            try:
                settled = await self._step()
            except LostRaceError:
                attempts += 1
                await asyncio.sleep(random.uniform(0, 0.05 * min(attempts, 20)))  # noqa: S311 - spreads replicas
                continue
            if settled is not None:
                return settled

    async def _step(self) -> Bundle | None:
        snapshot = await self.store.read()
        bundle = self._following(snapshot)
        self._retire(snapshot.bundle, bundle)
        if bundle != snapshot.bundle:
            await self.store.save(bundle, snapshot.version)
            log.info("certificates: stored", **_described(bundle))
        self._serve(bundle)
        return await self._publish(bundle, snapshot)

    async def _publish(self, bundle: Bundle, snapshot: StoreSnapshot) -> Bundle | None:
        wanted = self.trust.wanted(authorities(bundle.trusted), snapshot.entries, self.now())
        if carried(wanted, snapshot.entries):
            self.trust.published(self.now())
            return None if _awaits_publication(bundle) else bundle
        await self.store.publish(joined(wanted), snapshot.configurations)
        log.info("certificates: wrote the caBundle of the webhook configurations", authorities=len(wanted))
        return None

    def _retire(self, stored: Bundle | None, following: Bundle) -> None:
        """What was in use here and no longer is does not count as another source's."""
        known = [authorities(bundle.trusted) for bundle in (stored, self._current) if bundle]
        self.trust.retire(frozenset().union(*known) - authorities(following.trusted))

    def _following(self, snapshot: StoreSnapshot) -> Bundle:
        now = self.now()
        # A Secret that was deleted comes back as it was: API servers trust what we are serving.
        bundle = snapshot.bundle or self._current or first_bundle(self.names, now, self.policy)
        needed = authorities(bundle.trusted)
        published = all(needed <= authorities(entry) for entry in snapshot.entries)
        situation = BundleState(now, self.names, published, snapshot.requested)
        return advance(bundle, situation, self.policy)

    def _serve(self, bundle: Bundle) -> None:
        self._current = bundle
        if self.serving.load(bundle.leaf):
            log.info("certificates: serving", expires=str(self.serving.expires))
        self.loaded.set()

    async def _wait(self, until: datetime) -> None:
        left = min(max((until - self.now()).total_seconds(), 0.0), LONGEST_SLEEP)
        try:
            async with asyncio.timeout(left):
                await self.store.changed()
        except TimeoutError:
            return


def _awaits_publication(bundle: Bundle) -> bool:
    return bundle.coming is not None and bundle.published_at is None


def _described(bundle: Bundle) -> dict[str, str]:
    return {
        "leaf_expires": str(bundle.leaf.parsed.not_valid_after_utc),
        "authority": bundle.authority.parsed.subject.rfc4514_string(),
        "coming": bundle.coming.parsed.subject.rfc4514_string() if bundle.coming else "none",
    }


async def until_answered(settle: Callable[[], Awaitable[T]]) -> T:
    """What `settle` returns; tried again, after a longer and longer pause, while the API server does not answer."""
    failures = 0
    while True:
        try:
            return await settle()
        except StoreUnavailableError as error:
            failures += 1
            log.warning("certificates: the API server does not answer, will retry", error=str(error))
            await asyncio.sleep(pause(failures))


def pause(failures: int) -> float:
    """How long to wait after a number of failures in a row."""
    longest = min(FIRST_RETRY * 2.0 ** min(failures, 16), LONGEST_RETRY)
    return random.uniform(longest / 2, longest)  # noqa: S311 - jitter, not a secret

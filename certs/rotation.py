"""Renews the serving certificate and has the webhook configurations trust it, in every replica at once.

The store decides races: every write names the version it was based on, and a replica that loses looks again.
"""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Final, Protocol

import structlog

from certs.bundle import Bundle, BundleState, Policy, RotationRequest, advance, first_bundle, requeue_at
from certs.tls import ServingContext, UnusableCertificateError

FIRST_RETRY: Final = 0.2
LONGEST_RETRY: Final = 30.0
# A renewed certificate is there for days before the old one expires, so looking every few seconds is soon enough.
FILE_LOOK_EVERY: Final = 10.0
# A host that was suspended must notice how much time has passed.
LONGEST_SLEEP: Final = 3600.0

log = structlog.get_logger(__name__)


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
class Snapshot:
    """The store at one moment; `configurations` were read *before* the bundle.

    In that order a stale reader cannot put back an older trust: if the bundle moved on in between, so did the version
    of the configurations that the writer then touched.
    """

    bundle: Bundle | None
    version: str | None
    configurations: tuple[Published, ...] = ()
    requested: RotationRequest | None = None

    def carries(self, trusted: bytes) -> bool:
        """Whether every configuration has exactly this caBundle in every webhook."""
        return all(entry == trusted for published in self.configurations for entry in published.trusted)


class Store(Protocol):
    """Where the bundle and the webhook configurations live."""

    async def read(self) -> Snapshot:
        """The configurations, then the bundle."""
        ...

    async def save(self, bundle: Bundle, version: str | None) -> None:
        """Writes the bundle over `version` (None: creates it) and clears a request; `LostRaceError` if it moved."""
        ...

    async def publish(self, trusted: bytes, configurations: tuple[Published, ...]) -> None:
        """Puts the caBundle into these configurations, each over the version given."""
        ...

    async def changed(self) -> None:
        """Returns once the bundle or a configuration may differ from what was read last."""
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
    _current: Bundle | None = None

    async def run(self) -> None:
        """Never returns; retries while the store is unavailable."""
        failures = 0
        while True:
            try:
                bundle = await self.settle()
            except StoreUnavailableError as error:
                failures += 1
                log.warning("certificates: the API server does not answer, will retry", error=str(error))
                await asyncio.sleep(_pause(failures))
                continue
            failures = 0
            await self._wait(requeue_at(bundle, self.policy))

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
        if bundle != snapshot.bundle:
            await self.store.save(bundle, snapshot.version)
            log.info("certificates: stored", **_described(bundle))
            snapshot = replace(snapshot, bundle=bundle)
        self._serve(bundle)
        if snapshot.carries(bundle.trusted):
            return None if _awaits_publication(bundle) else bundle
        await self.store.publish(bundle.trusted, snapshot.configurations)
        log.info("certificates: wrote the caBundle of the webhook configurations")
        return None

    def _following(self, snapshot: Snapshot) -> Bundle:
        now = self.now()
        # A Secret that was deleted comes back as it was: API servers trust what we are serving.
        bundle = snapshot.bundle or self._current or first_bundle(self.names, now, self.policy)
        situation = BundleState(now, self.names, snapshot.carries(bundle.trusted), snapshot.requested)
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


class Renewed(Protocol):
    """Files that another program renews, such as cert-manager or an administrator."""

    @property
    def path(self) -> Path:
        """The file that the log names."""
        ...

    def signature(self) -> object:
        """Changes whenever a file does."""
        ...

    def load_into(self, serving: ServingContext) -> None:
        """Puts the files in force; what is in force stays where they cannot be used."""
        ...


@dataclass(slots=True)
class FileWatch:
    """Loads files that another program renews, at the start and whenever they change."""

    files: Renewed
    serving: ServingContext
    loaded: asyncio.Event = field(default_factory=asyncio.Event)
    every: float = FILE_LOOK_EVERY
    _seen: object = None

    async def run(self) -> None:
        """Never returns; files that cannot be used leave what is in force as it is."""
        while True:
            self.look()
            await asyncio.sleep(self.every)

    def look(self) -> None:
        """Loads the files if they changed since the last look."""
        try:
            signature = self.files.signature()
            if signature == self._seen:
                return
            self.files.load_into(self.serving)
        except (OSError, UnusableCertificateError) as error:
            # Read between the writing of one file and the other, or not mounted yet: the next look tries again.
            log.warning("certificates: a file cannot be used now", file=str(self.files.path), error=str(error))
            return
        self._seen = signature
        self.loaded.set()
        log.info("certificates: loaded", file=str(self.files.path), serving_until=str(self.serving.expires))


def _awaits_publication(bundle: Bundle) -> bool:
    return bundle.coming is not None and bundle.published_at is None


def _described(bundle: Bundle) -> dict[str, str]:
    return {
        "leaf_expires": str(bundle.leaf.parsed.not_valid_after_utc),
        "authority": bundle.authority.parsed.subject.rfc4514_string(),
        "coming": bundle.coming.parsed.subject.rfc4514_string() if bundle.coming else "none",
    }


def _pause(failures: int) -> float:
    longest = min(FIRST_RETRY * 2.0 ** min(failures, 16), LONGEST_RETRY)
    return random.uniform(longest / 2, longest)  # noqa: S311 - jitter, not a secret

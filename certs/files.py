"""Serves certificates from files that another program renews, such as cert-manager or an administrator.

With the file of their authority, the webhook configurations are made to trust it before it is needed.
"""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final, Protocol

import structlog

from certs.bundle import Policy
from certs.issue import CertificatePair
from certs.rotation import LostRaceError, Published, Publisher, carried, entries, until_answered
from certs.tls import CertificateFiles, ServingContext, UnusableCertificateError
from certs.trust import Authorities, Trust, authorities, joined

# A renewed certificate is there for days before the old one expires, so looking every few seconds is soon enough.
FILE_LOOK_EVERY: Final = 10.0

log = structlog.get_logger(__name__)


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


class Configurations(Publisher, Protocol):
    """The webhook configurations without a bundle of ours."""

    async def configurations(self) -> tuple[Published, ...]:
        """What each trusts at present."""
        ...


@dataclass(frozen=True, slots=True)
class Mounted:
    """A pair, and the authorities that API servers must trust to accept it."""

    pair: CertificatePair
    authorities: Authorities


@dataclass(frozen=True, slots=True)
class MountedFiles:
    """The files of a mounted Secret as cert-manager fills it."""

    files: CertificateFiles
    authority: Path

    def read(self) -> Mounted:
        """All three as of one moment; raises `UnusableCertificateError` where they changed meanwhile."""
        before = self._signature()
        pair = CertificatePair(self.files.certificate.read_bytes(), self.files.key.read_bytes())
        found = authorities(self.authority.read_bytes())
        if self._signature() != before:
            raise UnusableCertificateError("the files are being replaced")
        if not found:
            raise UnusableCertificateError(f"{self.authority} holds no certificate of an authority")
        return Mounted(pair, found)

    def _signature(self) -> object:
        return self.files.signature(), self.authority.stat().st_ino


@dataclass(slots=True)
class FileRotation:
    """The loop of one replica whose certificates come from files with their authority."""

    files: MountedFiles
    configurations: Configurations
    serving: ServingContext
    now: Callable[[], datetime]
    policy: Policy = field(default_factory=Policy)
    loaded: asyncio.Event = field(default_factory=asyncio.Event)
    trust: Trust = field(init=False)
    _served: Mounted | None = None
    _announced: tuple[Authorities, datetime] | None = None

    def __post_init__(self) -> None:
        """An authority that the files no longer name stays as long as a self-managed one that was replaced."""
        self.trust = Trust(self.policy.retire)

    async def run(self) -> None:
        """Never returns; files that cannot be used, and an API server that is away, leave what is in force."""
        while True:
            await until_answered(self.settle)
            await self._wait()

    async def settle(self) -> None:
        """Looks at the files once and publishes until the configurations hold what is needed."""
        mounted = self._read() or self._served
        if mounted is None:
            return
        if self._served is None:
            self._serve(mounted)
        while not await self._published(mounted):
            pass
        if self._may_serve(mounted):
            self._serve(mounted)

    def _read(self) -> Mounted | None:
        try:
            return self.files.read()
        except (OSError, UnusableCertificateError) as error:
            self._refuse(error)
            return None

    async def _published(self, mounted: Mounted) -> bool:
        """Whether the configurations hold what is needed; if not, writes it."""
        found = await self.configurations.configurations()
        needed = mounted.authorities | (self._served.authorities if self._served else frozenset())
        wanted = self.trust.wanted(needed, entries(found), self.now())
        if carried(wanted, entries(found)):
            self.trust.published(self.now())
            return True
        try:
            await self.configurations.publish(joined(wanted), found)
        except LostRaceError:
            await asyncio.sleep(random.uniform(0, 0.05))  # noqa: S311 - spreads replicas
            return False
        log.info("certificates: wrote the caBundle of the webhook configurations", authorities=len(wanted))
        return False

    def _may_serve(self, mounted: Mounted) -> bool:
        """A pair of another authority waits until every API server knows that authority."""
        if self._served is None or mounted.authorities <= self._served.authorities:
            return True
        if self._announced is None or self._announced[0] != mounted.authorities:
            self._announced = mounted.authorities, self.now()
        return self.now() >= self._announced[1] + self.policy.settle

    def _serve(self, mounted: Mounted) -> None:
        if mounted == self._served:
            return
        try:
            self.serving.load(mounted.pair)
        except UnusableCertificateError as error:
            self._refuse(error)
            return
        self._served = mounted
        self.loaded.set()
        log.info("certificates: loaded", file=str(self.files.files.path), serving_until=str(self.serving.expires))

    def _refuse(self, error: Exception) -> None:
        # Read between the writing of one file and the other, or not mounted yet: the next look tries again.
        log.warning("certificates: a file cannot be used now", file=str(self.files.files.path), error=str(error))

    async def _wait(self) -> None:
        try:
            async with asyncio.timeout(FILE_LOOK_EVERY):
                await self.configurations.changed()
        except TimeoutError:
            return

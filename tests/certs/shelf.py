"""A store in memory, and time that a test moves, for the loops that keep certificates right."""

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime

from certs.bundle import Bundle, RotationRequest
from certs.rotation import LostRaceError, Published, Rotation, StoreSnapshot, StoreUnavailableError
from certs.tls import ServingContext

START = datetime(2026, 1, 1, tzinfo=UTC)
NAMES = ("localhost",)


@dataclass
class Shelf:
    """A store in memory that keeps versions as an API server does, shared by several replicas."""

    bundle: Bundle | None = None
    version: int = 0
    trust: dict[str, list[bytes]] = field(default_factory=lambda: {"validating": [b""], "mutating": [b""]})
    trust_version: int = 0
    requested: RotationRequest | None = None
    saved: list[Bundle] = field(default_factory=list)
    outages: int = 0
    bell: asyncio.Event = field(default_factory=asyncio.Event)

    async def configurations(self) -> tuple[Published, ...]:
        self.bell.clear()
        if self.outages:
            self.outages -= 1
            raise StoreUnavailableError("connection refused")
        return tuple(Published(n, str(self.trust_version), tuple(t)) for n, t in self.trust.items())

    async def read(self) -> StoreSnapshot:
        published = await self.configurations()
        await asyncio.sleep(0)
        version = str(self.version) if self.bundle else None
        return StoreSnapshot(self.bundle, version, published, self.requested)

    async def save(self, bundle: Bundle, version: str | None) -> None:
        await asyncio.sleep(0)
        if version != (str(self.version) if self.bundle else None):
            raise LostRaceError
        self.bundle, self.version, self.requested = bundle, self.version + 1, None
        self.saved.append(bundle)
        self.bell.set()

    async def publish(self, trusted: bytes, configurations: tuple[Published, ...]) -> None:
        await asyncio.sleep(0)
        if any(published.version != str(self.trust_version) for published in configurations):
            raise LostRaceError
        self.trust = {published.name: [trusted] * len(published.trusted) for published in configurations}
        self.trust_version += 1
        self.bell.set()

    async def changed(self) -> None:
        await self.bell.wait()


@dataclass
class Time:
    at: datetime = START

    def __call__(self) -> datetime:
        return self.at


def replica(shelf: Shelf, time: Time) -> Rotation:
    return Rotation(store=shelf, serving=ServingContext(), names=NAMES, now=time)

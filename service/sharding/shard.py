"""Which shard an object belongs to: pure, so that all replicas compute the same."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Final

_LEASE: Final = re.compile(r"5spot-shard-(0|[1-9][0-9]{0,3})-of-([1-9][0-9]{0,3})")
_CACHE_SIZE: Final = 1 << 17
SHARD: Final = "shard"
"""The name of the index by which a cache finds and counts the objects of a shard."""


@dataclass(frozen=True, slots=True)
class Shard:
    """One part of all ScheduledMachines: `number` counts from 0 up to, not including, `count`."""

    number: int
    count: int

    def __str__(self) -> str:
        return f"{self.number}-of-{self.count}"

    @property
    def lease_name(self) -> str:
        """The Lease that the replica which acts for this shard holds."""
        return f"5spot-shard-{self}"

    @classmethod
    def of_lease(cls, name: str) -> "Shard | None":
        """The shard of a Lease by its name; None if it is not a shard's Lease."""
        found = _LEASE.fullmatch(name)
        return cls(int(found[1]), int(found[2])) if found else None


def shard_number(namespace: str, name: str, count: int) -> int:
    """The shard of an object by rendezvous hashing: the one that scores highest for its name.

    An additional shard takes over only the objects for which it scores highest: about one in `count + 1`.
    """
    return _highest(namespace, name, count) if count > 1 else 0


@lru_cache(_CACHE_SIZE)
def _highest(namespace: str, name: str, count: int) -> int:
    key = f"{namespace}/{name}".encode()
    return max(range(count), key=lambda number: _score(number, key))


def _score(number: int, key: bytes) -> bytes:
    return blake2b(key, digest_size=8, salt=number.to_bytes(4)).digest()


def shard_index(count: int) -> Callable[[dict[str, Any]], Iterable[str]]:
    """An index by shard number, so that neither a metrics scrape nor a takeover walks over all objects."""

    def terms(raw: dict[str, Any]) -> Iterable[str]:
        metadata = raw["metadata"]
        yield str(shard_number(metadata["namespace"], metadata["name"], count))

    return terms

"""Who has a host: two ScheduledMachines that name the same one must not both get it.

However many name the same host, as when somebody stores ten thousand copies of one manifest, an answer is cheap.
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from service.decide.intent import Intent
from service.decide.manifests import host_hash
from service.runtime.key import Key

Raw = dict[str, Any]
Rank = tuple[bool, str, str]
"""Who has a Machine comes first, then who was there first."""
_NEVER: Final = datetime.max.replace(tzinfo=UTC)


def host_terms(raw: Raw) -> Iterable[str]:
    """What a host is known by: what the infrastructure spec says or said of it, and the ID of one that runs."""
    spec, status = raw.get("spec"), raw.get("status")
    infrastructure = spec.get("infrastructureSpec") if isinstance(spec, dict) else None
    if isinstance(infrastructure, dict):
        yield host_hash(
            str(infrastructure.get("apiVersion")), str(infrastructure.get("kind")), infrastructure.get("spec")
        )
    for known in ("hostHash", "providerID"):
        term = status.get(known) if isinstance(status, dict) else None
        if isinstance(term, str):
            yield term


def rank_of(raw: Raw) -> Rank:
    """Where an object stands among those that name the same host."""
    metadata, status = raw["metadata"], raw.get("status")
    has_machine = isinstance(status, dict) and bool(status.get("machineRef"))
    return not has_machine, metadata.get("creationTimestamp", ""), metadata["uid"]


def wants_machines(raw: Raw, intent: Intent) -> bool:
    """Whether an object is to have a machine while its window is open."""
    governed = intent.spec is not None and intent.enabled and not intent.kill_switch
    return governed and "deletionTimestamp" not in raw["metadata"]


@dataclass(frozen=True, slots=True)
class _Standing:
    """What decides about an object's claim; `edition` changes with everything else that it depends on."""

    terms: tuple[str, ...]
    rank: Rank
    edition: tuple[object, ...]


@dataclass(frozen=True, slots=True)
class _Wish:
    """Whether an object wants a machine, and the span of time for which that is known."""

    since: datetime
    until: datetime
    holds: bool


class Hosts:
    """Who stands in line for which host. `get` and `read` give an object and its intent, where a line is looked at."""

    def __init__(self, get: Callable[[Key], Raw | None], read: Callable[[Raw], Intent]) -> None:
        self._get = get
        self._read = read
        self._standings: dict[Key, _Standing] = {}
        self._lines: dict[str, list[tuple[Rank, Key]]] = {}
        self._wishes: dict[Key, _Wish] = {}

    def saw(self, key: Key, raw: Raw | None) -> tuple[str, ...]:
        """Takes in an object as it is now, None if it is gone; the hosts whose lines it changed."""
        standing = _standing(raw) if raw is not None else None
        known = self._standings.get(key)
        if standing == known:
            return ()
        self._wishes.pop(key, None)
        if known is not None:
            self._leave(key, known)
        if standing is not None:
            self._standings[key] = standing
            for term in standing.terms:
                insort(self._lines.setdefault(term, []), (standing.rank, key))
        return tuple({*(known.terms if known else ()), *(standing.terms if standing else ())})

    def better(self, key: Key, mine: Rank, terms: Iterable[str], now: datetime) -> Key | None:
        """The one whose claim to one of these hosts goes before ours."""
        for term in terms:
            for rank, other in self._lines.get(term, ()):
                if rank >= mine:
                    break
                if other != key and self._claims(rank, other, now):
                    return other
        return None

    def claimants(self, term: str, now: datetime, but: Key) -> Iterator[Key]:
        """Others who want the host, best claim first."""
        for rank, other in self._lines.get(term, ()):
            if other != but and self._claims(rank, other, now):
                yield other

    def _leave(self, key: Key, known: _Standing) -> None:
        del self._standings[key]
        for term in known.terms:
            line = self._lines[term]
            del line[bisect_left(line, (known.rank, key))]
            if not line:
                del self._lines[term]

    def _claims(self, rank: Rank, key: Key, now: datetime) -> bool:
        without_machine = rank[0]
        return not without_machine or self._wants(key, now)

    def _wants(self, key: Key, now: datetime) -> bool:
        wish = self._wishes.get(key)
        if wish is None or not wish.since <= now < wish.until:
            wish = self._wishes[key] = self._wish(key, now)
        return wish.holds

    def _wish(self, key: Key, now: datetime) -> _Wish:
        raw = self._get(key)
        if raw is None:
            return _Wish(now, _NEVER, holds=False)
        intent = self._read(raw)
        if not wants_machines(raw, intent):
            return _Wish(now, _NEVER, holds=False)
        return _Wish(now, intent.next_boundary(now) or _NEVER, intent.covers(now))


def _standing(raw: Raw) -> _Standing:
    metadata = raw["metadata"]
    status = raw.get("status")
    scheduled = status.get("inSchedule") if isinstance(status, dict) else None
    edition = (metadata.get("generation"), "deletionTimestamp" in metadata, scheduled)
    return _Standing(tuple(dict.fromkeys(host_terms(raw))), rank_of(raw), edition)

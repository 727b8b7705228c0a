"""Who has a host: two ScheduledMachines that name the same one must not both get it.

However many name the same host, as when somebody stores ten thousand copies of one manifest, an answer is cheap.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import takewhile
from typing import Any

from service.decide.hosts import HostIdentities, recorded
from service.decide.intent import Intent
from service.observe.claims import NEVER, Claim, ClaimQueue, Entry, Rank
from service.runtime.key import Key

Raw = dict[str, Any]


def named_host(identities: HostIdentities, raw: Raw) -> str | None:
    """What the host is known by that an object's infrastructure spec names."""
    infrastructure = _mapping(_mapping(raw, "spec"), "infrastructureSpec")
    api_version, kind = str(infrastructure.get("apiVersion")), str(infrastructure.get("kind"))
    return identities.of(api_version, kind, infrastructure.get("spec"))


def provider_term(cluster: Key, provider_id: str) -> str:
    """What a host that runs is known by besides: an ID that its provider gave, unique in one Cluster only."""
    return f"{cluster.namespace}/{cluster.name}/{provider_id}"


def host_terms(identities: HostIdentities, raw: Raw) -> Iterable[str]:
    """What an object's host is known by: where it has a Machine, the host of that, whatever its spec says by now."""
    status, cluster = _mapping(raw, "status"), cluster_of(raw)
    has_machine = bool(status.get("machineRef"))
    known = recorded(_text(status.get("hostHash"))) if has_machine else None
    host = known or named_host(identities, raw)
    if host is not None:
        yield host
    provider_id = _text(status.get("providerID"))
    if has_machine and provider_id and cluster is not None:
        yield provider_term(cluster, provider_id)


def cluster_of(raw: Raw) -> Key | None:
    """The Cluster that an object names."""
    name = _text(_mapping(raw, "spec").get("clusterName"))
    return Key(raw["metadata"].get("namespace", ""), name) if name else None


def rank_of(raw: Raw) -> Rank:
    """Where an object stands among those that name the same host."""
    metadata = raw["metadata"]
    has_machine = bool(_mapping(raw, "status").get("machineRef"))
    return not has_machine, metadata.get("creationTimestamp", ""), metadata["uid"]


def wants_machines(raw: Raw, intent: Intent) -> bool:
    """Whether an object is to have a machine while its window is open."""
    governed = intent.spec is not None and intent.enabled and not intent.kill_switch
    return governed and "deletionTimestamp" not in raw["metadata"]


def _mapping(raw: Raw, name: str) -> Raw:
    found = raw.get(name)
    return found if isinstance(found, dict) else {}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


@dataclass(frozen=True, slots=True)
class _Standing:
    """What decides about an object's claim; `edition` changes with everything else that it depends on."""

    terms: tuple[str, ...]
    rank: Rank
    edition: tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Sources:
    """Where claims are looked up: an object, its intent, and whether a Cluster takes Machines."""

    get: Callable[[Key], Raw | None]
    read: Callable[[Raw], Intent]
    takes_machines: Callable[[Key], bool]


class Hosts:
    """Who stands in line for which host. Only those count that have a Machine or could create one now."""

    def __init__(self, identities: HostIdentities, sources: Sources) -> None:
        self._identities = identities
        self._sources = sources
        self._standings: dict[Key, _Standing] = {}
        self._lines: dict[str, ClaimQueue] = {}
        self._claims: dict[Key, Claim] = {}

    def saw(self, key: Key, raw: Raw | None) -> tuple[str, ...]:
        """Takes in an object as it is now, None if it is gone; the hosts whose lines it changed."""
        standing = self._standing(raw) if raw is not None else None
        known = self._standings.get(key)
        if standing == known:
            return ()
        self._claims.pop(key, None)
        if known is not None:
            self._leave(key, known)
        if standing is not None:
            self._standings[key] = standing
            for term in standing.terms:
                self._lines.setdefault(term, ClaimQueue()).enter((standing.rank, key))
        return tuple({*(known.terms if known else ()), *(standing.terms if standing else ())})

    def reconsider(self, keys: Iterable[Key]) -> set[str]:
        """The Cluster of these objects changed, and with it perhaps who could create a Machine; the hosts they name."""
        touched: set[str] = set()
        for key in keys:
            standing = self._standings.get(key)
            if standing is None:
                continue
            self._claims.pop(key, None)
            for term in standing.terms:
                self._lines[term].touch((standing.rank, key))
            touched.update(standing.terms)
        return touched

    def better(self, key: Key, mine: Rank, terms: Iterable[str], now: datetime) -> Key | None:
        """The one whose claim to one of these hosts goes before ours."""
        for term in terms:
            line = self._lines.get(term)
            first = line.first(self._judge, now) if line is not None else None
            if first is not None and first[0] < mine and first[1] != key:
                return first[1]
        return None

    def sharing(self, key: Key, term: str) -> frozenset[str]:
        """Uids of the others that have a Machine on a host."""
        line = self._lines.get(term)
        held = takewhile(lambda entry: not entry[0][0], line.entries) if line is not None else ()
        return frozenset(uid for (_, _, uid), other in held if other != key)

    def claimants(self, term: str, now: datetime, but: Key | None = None) -> Iterator[Key]:
        """Others who want the host, best claim first; of a crowd only some, but always the best."""
        line = self._lines.get(term)
        found = line.counting(self._judge, now) if line is not None else ()
        return (key for _rank, key in found if key != but)

    def _leave(self, key: Key, known: _Standing) -> None:
        del self._standings[key]
        for term in known.terms:
            line = self._lines[term]
            line.leave((known.rank, key))
            if not line.entries:
                del self._lines[term]

    def _judge(self, entry: Entry, now: datetime) -> Claim:
        (without_machine, *_), key = entry
        if not without_machine:
            return Claim(now, NEVER, counts=True)
        claim = self._claims.get(key)
        if claim is None or not claim.since <= now < claim.until:
            claim = self._claims[key] = self._claim(key, now)
        return claim

    def _claim(self, key: Key, now: datetime) -> Claim:
        raw = self._sources.get(key)
        cluster = cluster_of(raw) if raw is not None else None
        if raw is None or cluster is None or not self._sources.takes_machines(cluster):
            return Claim(now, NEVER, counts=False)
        intent = self._sources.read(raw)
        if not wants_machines(raw, intent):
            return Claim(now, NEVER, counts=False)
        return Claim(now, intent.next_boundary(now) or NEVER, intent.covers(now))

    def _standing(self, raw: Raw) -> _Standing:
        metadata = raw["metadata"]
        edition = (
            metadata.get("generation"), "deletionTimestamp" in metadata, _mapping(raw, "status").get("inSchedule")
        )  # fmt: skip
        return _Standing(tuple(dict.fromkeys(host_terms(self._identities, raw))), rank_of(raw), edition)

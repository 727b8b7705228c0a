"""Which ScheduledMachine gets a host: two that name the same one must not both get it.

An answer is cheap however many name the same host, such as ten thousand copies of one manifest.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, takewhile
from typing import Any

from crds.classes import class_of
from service.decide.hosts import HostIdentities, recorded
from service.decide.intent import Intent
from service.observe.claims import NEVER, Claim, ClaimQueue, Entry, Rank
from service.runtime.key import Key

Raw = dict[str, Any]


def named_host(identities: HostIdentities, raw: Raw) -> str | None:
    """The term for the host that an object's infrastructure spec names."""
    infrastructure = _mapping(_mapping(raw, "spec"), "infrastructureSpec")
    api_version = str(infrastructure.get("apiVersion"))
    kind = str(infrastructure.get("kind"))
    return identities.of(api_version, kind, infrastructure.get("spec"))


def provider_term(cluster: Key, provider_id: str) -> str:
    """The term for a running host by its providerID, which is unique within one Cluster only."""
    return f"{cluster.namespace}/{cluster.name}/{provider_id}"


def host_terms(raw: Raw, named: Callable[[Raw], str | None]) -> Iterable[str]:
    """The terms for an object's host: that of its Machine if it has one, whatever its spec names by now."""
    status = _mapping(raw, "status")
    cluster = cluster_of(raw)
    has_machine = bool(status.get("machineRef"))
    known = recorded(_text(status.get("hostHash"))) if has_machine else None
    host = known or named(raw)
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
    """The rank of an object among those that name the same host."""
    metadata = raw["metadata"]
    has_machine = bool(_mapping(raw, "status").get("machineRef"))
    return not has_machine, metadata.get("creationTimestamp", ""), metadata["uid"]


def wants_machines(raw: Raw, intent: Intent) -> bool:
    """Whether an object is to have a machine while its schedule or an override says so."""
    governed = intent.spec is not None and intent.enabled and not intent.kill_switch
    return governed and "deletionTimestamp" not in raw["metadata"]


def _mapping(raw: Raw, name: str) -> Raw:
    found = raw.get(name)
    return found if isinstance(found, dict) else {}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


@dataclass(frozen=True, slots=True)
class _ClaimState:
    """What decides about an object's claim; `version` changes with everything else that it depends on."""

    terms: tuple[str, ...]
    rank: Rank
    version: tuple[object, ...]


@dataclass(frozen=True, slots=True)
class ClaimLookups:
    """How claims are evaluated: the object, its intent, whether its Cluster accepts Machines, and whether it acts."""

    get: Callable[[Key], Raw | None]
    read_intent: Callable[[Raw], Intent]
    accepts_machines: Callable[[Key], bool]
    is_dry_run: Callable[[Raw], bool] = lambda _raw: False


class Hosts:
    """The claims to each host. A claim is valid if the object has a Machine or could create one now."""

    def __init__(self, identities: HostIdentities, lookups: ClaimLookups) -> None:
        self._identities = identities
        self._lookups = lookups
        self._states: dict[Key, _ClaimState] = {}
        self._queues: dict[str, ClaimQueue] = {}
        self._claims: dict[Key, Claim] = {}

    def update(self, key: Key, raw: Raw | None) -> tuple[str, ...]:
        """Takes in an object as it is now, None if it is gone; returns the hosts whose claims it changed."""
        state = self._state(raw) if raw is not None else None
        known = self._states.get(key)
        if state == known:
            return ()
        self._claims.pop(key, None)
        if known is not None:
            self._remove(key, known)
        if state is not None:
            self._add(key, state)
        changed = [one.terms for one in (known, state) if one is not None]
        return tuple(set(chain.from_iterable(changed)))

    def invalidate(self, keys: Iterable[Key]) -> set[str]:
        """Evaluates the claims of these objects again, as their Cluster changed; returns the hosts that they name."""
        touched: set[str] = set()
        for key in keys:
            state = self._states.get(key)
            if state is None:
                continue
            self._claims.pop(key, None)
            for term in state.terms:
                self._queues[term].invalidate((state.rank, key))
            touched.update(state.terms)
        return touched

    def outranked_by(self, key: Key, rank: Rank, terms: Iterable[str], now: datetime) -> Key | None:
        """The other object whose valid claim to one of these hosts ranks before `rank`, the rank of `key`."""
        for term in terms:
            queue = self._contended(term, key)
            first = queue.first(self._evaluate, now) if queue is not None else None
            if first is not None and first[0] < rank and first[1] != key:
                return first[1]
        return None

    def others_on_host(self, key: Key, term: str) -> frozenset[str]:
        """Uids of the other objects that have a Machine on a host."""
        queue = self._queues.get(term)
        held = takewhile(lambda entry: not entry[0][0], queue.entries) if queue is not None else ()
        return frozenset(uid for (_, _, uid), other in held if other != key)

    def candidates(self, term: str, now: datetime, exclude: Key | None = None) -> Iterator[Key]:
        """Objects with a valid claim to the host, in order; of very many only some, but always the first."""
        queue = self._contended(term, exclude)
        found = queue.valid(self._evaluate, now) if queue is not None else ()
        return (key for _rank, key in found if key != exclude)

    def _contended(self, term: str, key: Key | None) -> ClaimQueue | None:
        """The claims to a host; None if only `key` claims it, as is usual: no claim is evaluated then."""
        queue = self._queues.get(term)
        if queue is None or (len(queue.entries) == 1 and queue.entries[0][1] == key):
            return None
        return queue

    def _add(self, key: Key, state: _ClaimState) -> None:
        self._states[key] = state
        for term in state.terms:
            self._queues.setdefault(term, ClaimQueue()).add((state.rank, key))

    def _remove(self, key: Key, known: _ClaimState) -> None:
        del self._states[key]
        for term in known.terms:
            queue = self._queues[term]
            queue.remove((known.rank, key))
            if not queue.entries:
                del self._queues[term]

    def _evaluate(self, entry: Entry, now: datetime) -> Claim:
        (without_machine, *_), key = entry
        if not without_machine:
            return Claim(now, NEVER, valid=True)
        claim = self._claims.get(key)
        if claim is None or not claim.since <= now < claim.until:
            claim = self._claims[key] = self._claim(key, now)
        return claim

    def _claim(self, key: Key, now: datetime) -> Claim:
        raw = self._lookups.get(key)
        cluster = cluster_of(raw) if raw is not None else None
        if raw is None or cluster is None or not self._lookups.accepts_machines(cluster):
            return Claim(now, NEVER, valid=False)
        intent = self._lookups.read_intent(raw)
        if not wants_machines(raw, intent) or self._lookups.is_dry_run(raw):
            return Claim(now, NEVER, valid=False)
        effective = intent.effective
        return Claim(now, effective.next_change(now) or NEVER, effective.wanted(now))

    def _state(self, raw: Raw) -> _ClaimState:
        metadata = raw["metadata"]
        status = _mapping(raw, "status")
        # The last two change when a machine begins or ceases to be wanted: at a boundary, or at its lead before it.
        wanted = status.get("inSchedule"), status.get("nextCleanup")
        dry_run = self._lookups.is_dry_run(raw)
        version = (metadata.get("generation"), "deletionTimestamp" in metadata, dry_run, *wanted)
        return _ClaimState(tuple(dict.fromkeys(host_terms(raw, self.named))), rank_of(raw), version)

    def named(self, raw: Raw) -> str | None:
        """The term for the host that an object names, in its own spec or by the parameters of its class."""
        if class_of(raw) is None:
            return named_host(self._identities, raw)
        spec = self._lookups.read_intent(raw).spec
        if spec is None:
            return None
        provider = spec.infrastructure_spec
        return self._identities.of(provider.api_version, provider.kind, provider.spec)

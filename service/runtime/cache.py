"""What we know of the objects of one kind: filled by a watch, and by the answers to our own writes.

Whatever order news arrives in, the newest wins: an object never goes back to an older version, and a deleted one
does not come back. So nobody ever acts on something older than their own last write. An object that became unreadable
is neither there nor gone: it has a name, and no contents until it can be read again.
"""

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import orjson

from service.kube.errors import Unavailable, Unreadable
from service.runtime.defects import LEVELS, Defect, Mark, cut_off
from service.runtime.identity import identity, name_of, version_or_zero, well_formed
from service.runtime.key import Key

Object = dict[str, Any]
# How long late news of a deleted object is recognised; far longer than any request or event is under way.
REMEMBER_SECONDS = 600.0
_MOST_GRAVES = 100_000
FOR_GOOD = sys.maxsize
"""Later than any version: nothing of such an object is believed any more."""
UNTOLD = 0
"""The version in which an object went that was found missing; no write has it, so that none is taken for its cause."""
_MARK_BYTES = 512
_NOISE = "kubectl.kubernetes.io/last-applied-configuration"


class EventType(StrEnum):
    """What became of an object."""

    ADDED = "ADDED"
    CHANGED = "CHANGED"
    DELETED = "DELETED"


@dataclass(frozen=True, slots=True)
class Change:
    """News of one object: as it is now, or as it was last seen if it is gone."""

    type: EventType
    key: Key
    object: Object
    version: int
    """The version that was heard of; the object is newer than that if an answer to a write of ours was quicker."""


@dataclass(frozen=True, slots=True)
class _Record:
    """An object as compact JSON: a tenth of what the same dicts would take, and nobody can change it by mistake."""

    uid: str
    version: int
    packed: bytes
    terms: tuple[tuple[str, str], ...]

    def unpack(self) -> Object:
        return orjson.loads(self.packed)  # type: ignore[no-any-return]


Index = Callable[[Object], Iterable[str]]


def slim(raw: Object) -> Object:
    """Without what nobody here reads: field managers and kubectl's own copy of the manifest."""
    metadata = raw["metadata"]
    metadata.pop("managedFields", None)
    annotations = metadata.get("annotations")
    if annotations:
        annotations.pop(_NOISE, None)
    return raw


class Cache:
    """Objects by key, with indexes. `slim` cuts an object down to what is worth keeping, before it is indexed.

    With a `budget`, a server that sends more bytes than that is not listened to further.
    """

    def __init__(
        self,
        *,
        slim: Callable[[Object], Object] = slim,
        indexes: Mapping[str, Index] | None = None,
        budget: int | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.newest = 0
        """The highest resourceVersion seen: a list that is older than this is stale."""
        self._slim = slim
        self._indexes = dict(indexes or {})
        self._monotonic = monotonic
        self._budget = budget
        self._bytes = 0
        self._records: dict[Key, _Record] = {}
        self._terms: dict[tuple[str, str], set[Key]] = {}
        self._gone: dict[str, tuple[float, int]] = {}
        self._ahead: dict[Key, set[int]] = {}
        """Versions that came as answers to our own requests and that the watch has yet to tell of."""
        self._listeners: list[Callable[[Change], None]] = []
        self._marks: dict[Key, Mark] = {}
        self.on_defect: Callable[[Key, Mark], None] = lambda _key, _mark: None
        """Told of an object that cannot be read, or not all of it: once, until it can be read again."""

    def __len__(self) -> int:
        return len(self._records)

    def __contains__(self, key: Key) -> bool:
        return key in self._records

    def __iter__(self) -> Iterator[Key]:
        return iter(tuple(self._records))

    def get(self, key: Key) -> Object | None:
        """A copy of the object, the caller's to keep; None if there is none, or none that can be read."""
        record = self._records.get(key)
        return None if record is None or self.unreadable(key) else record.unpack()

    def unreadable(self, key: Key) -> str | None:
        """Why nobody can tell what the object of that name is like now; None if it can be told."""
        mark = self._marks.get(key)
        return None if mark is None or mark.defect is Defect.TOO_DEEP else mark.why

    def uid(self, key: Key) -> str | None:
        """The uid of the object of that name."""
        record = self._records.get(key)
        return None if record is None else record.uid

    def version(self, key: Key) -> int | None:
        """The version of the object of that name; None if there is none, or none that can be read."""
        record = self._records.get(key)
        return None if record is None or self.unreadable(key) else record.version

    def keys_by(self, index: str, value: str) -> frozenset[Key]:
        """Keys of the objects that have `value` in an index."""
        if index not in self._indexes:
            raise KeyError(f"no index {index!r}; there are {sorted(self._indexes)}")
        return frozenset(self._terms.get((index, value), ()))

    def count_by(self, index: str, value: str) -> int:
        """How many objects have `value` in an index."""
        return len(self._terms.get((index, value), ()))

    def listen(self, listener: Callable[[Change], None]) -> None:
        """From now on `listener` hears of every change that did not come from ourselves."""
        self._listeners.append(listener)

    def absorb(self, raw: Object, *, notify: bool = False) -> bool:
        """Takes in the answer to a write of ours, which is cut down in place; whether it was news.

        Listeners are not told of what we did ourselves, unless asked for; the watch's echo is no news either. But an
        answer may hold what others wrote just before: they are told of that when the watch comes to it.
        """
        return self._store(raw, notify=notify)

    def absorb_deletion(self, key: Key, uid: str, answer: Object | None = None) -> None:
        """Takes in that an object is gone; or, if the answer to our DELETE says so, still held by finalizers."""
        if answer is not None and answer.get("kind") != "Status":
            self._store(answer, notify=False)
            return
        self._bury(uid, FOR_GOOD)
        record = self._records.get(key)
        if record is not None and record.uid == uid:
            self._drop(key, record)

    def upsert(self, raw: Object) -> bool:
        """Takes in an object from a list or a watch; whether it was news."""
        return self._store(raw, notify=True)

    def skip(self, raw: Object, defect: Defect, why: str) -> Key:
        """Takes in an object that cannot be read, as far as its name can: what was known of it counts no more."""
        key, version = name_of(raw), version_or_zero(raw)
        record, before = self._records.get(key), self._marks.get(key)
        if record is not None and record.version >= version > 0:
            return key  # the answer to a request was quicker
        if before is None:
            self._account(_MARK_BYTES)
        mark = self._marks[key] = Mark(defect, why, version)
        if before is None or before.defect is Defect.TOO_DEEP:
            self.on_defect(key, mark)
            if record is not None:
                self._notify(Change(EventType.CHANGED, key, record.unpack(), version))
        return key

    def remove(self, raw: Object) -> bool:
        """Takes in a DELETED event; whether it was news.

        A watch by labels also says so when an object loses its label: a later version of it is believed.
        """
        key, uid, version = identity(raw)
        self.newest = max(self.newest, version)
        self._bury(uid, version)
        record = self._records.get(key)
        if record is None:
            self._unmark(key)
        if record is None or record.uid != uid:
            return False  # known already, or the name has a new owner
        self._drop(key, record)
        self._notify(Change(EventType.DELETED, key, self._last(raw, record), version))
        return True

    def _last(self, raw: Object, record: _Record) -> Object:
        """An object as it was when it went, or as it was last kept if that cannot be read."""
        try:
            with well_formed():
                return self._slim(raw)
        except Unreadable:
            return record.unpack()

    def keep_only(self, seen: set[Key], listed_at: int) -> None:
        """After a full list as of version `listed_at`: what it did not contain is gone, unless it came later."""
        self.newest = max(self.newest, listed_at)
        for key, record in list(self._records.items()):
            if key not in seen and record.version <= listed_at:
                self._bury(record.uid, listed_at)
                self._drop(key, record)
                self._notify(Change(EventType.DELETED, key, record.unpack(), UNTOLD))
        for key in [key for key, mark in self._marks.items() if key not in seen and mark.version <= listed_at]:
            self._unmark(key)

    def forget_versions(self) -> None:
        """The server's history went back (restored from a backup): from here on its word counts, old or not."""
        self.newest = 0
        self._gone.clear()
        self._ahead.clear()
        for key, record in self._records.items():
            self._records[key] = _Record(record.uid, -1, record.packed, record.terms)
        for key, mark in self._marks.items():
            self._marks[key] = Mark(mark.defect, mark.why, -1)

    def _store(self, raw: Object, *, notify: bool) -> bool:
        key, uid, version = identity(raw)
        self.newest = max(self.newest, version)
        old = self._records.get(key)
        if self._is_gone(uid, version):
            return False
        hidden = self.unreadable(key) is not None
        if hidden and self._marks[key].version >= version:
            return False  # from before it became unreadable
        if old is not None and old.version >= version:
            if notify and old.uid == uid and self._was_overtaken(key, version):
                self._notify(Change(EventType.CHANGED, key, old.unpack(), version))
            return False
        trimmed, record, cut = self._pack(raw, uid, version)
        if old is not None and old.uid != uid:
            self._replaced(key, old, notify=notify)
            old = None
        self._note_depth(key, version, cut=cut)
        self._account(len(record.packed) - (len(old.packed) if old else 0))
        self._records[key] = record
        self._reindex(key, old.terms if old else (), record.terms)
        if not notify:
            self._ahead.setdefault(key, set()).add(version)
            return True
        self._ahead.pop(key, None)
        if hidden or not (old and _same(old, trimmed)):
            self._notify(Change(EventType.CHANGED if old else EventType.ADDED, key, trimmed, version))
        return True

    def _was_overtaken(self, key: Key, version: int) -> bool:
        """Whether others wrote what the watch tells of, and only an answer to us was quicker; else it is an echo."""
        ahead = self._ahead.get(key)
        if ahead is None or version not in ahead:
            return ahead is not None
        ahead.discard(version)
        if not ahead:
            del self._ahead[key]
        return False

    def _pack(self, raw: Object, uid: str, version: int) -> tuple[Object, _Record, bool]:
        """The object cut down, as it is kept, and whether something was cut off for being nested too deep."""
        with well_formed():
            trimmed = self._slim(raw)
            try:
                return trimmed, self._record(trimmed, uid, version), False
            except orjson.JSONEncodeError:
                cut_off(trimmed, LEVELS)
                return trimmed, self._record(trimmed, uid, version), True

    def _note_depth(self, key: Key, version: int, *, cut: bool) -> None:
        """Marks an object that was cut, and one that is whole (again) not."""
        before = self._marks.get(key)
        if not cut:
            self._unmark(key)
            return
        if before is None:
            self._account(_MARK_BYTES)
        mark = self._marks[key] = Mark(Defect.TOO_DEEP, f"it is nested deeper than {LEVELS} levels", version)
        if before is None or before.defect is not Defect.TOO_DEEP:
            self.on_defect(key, mark)

    def _unmark(self, key: Key) -> None:
        if self._marks.pop(key, None) is not None:
            self._bytes -= _MARK_BYTES

    def _record(self, trimmed: Object, uid: str, version: int) -> _Record:
        terms = tuple((name, value) for name, index in self._indexes.items() for value in index(trimmed))
        return _Record(uid, version, orjson.dumps(trimmed), terms)

    def _replaced(self, key: Key, old: _Record, *, notify: bool) -> None:
        """Another object has the name now: the old one was deleted, though nobody told us."""
        self._bury(old.uid, FOR_GOOD)
        self._drop(key, old)
        if notify:
            self._notify(Change(EventType.DELETED, key, old.unpack(), UNTOLD))

    def _account(self, size: int) -> None:
        if self._budget is not None and self._bytes + size > self._budget:
            raise Unavailable(f"the server has more objects than fit into {self._budget} bytes")
        self._bytes += size

    def _drop(self, key: Key, record: _Record) -> None:
        del self._records[key]
        self._ahead.pop(key, None)
        self._unmark(key)
        self._bytes -= len(record.packed)
        self._reindex(key, record.terms, ())

    def _reindex(self, key: Key, before: tuple[tuple[str, str], ...], after: tuple[tuple[str, str], ...]) -> None:
        if before == after:
            return
        for term in before:
            keys = self._terms[term]
            keys.discard(key)
            if not keys:
                del self._terms[term]
        for term in after:
            self._terms.setdefault(term, set()).add(key)

    def _is_gone(self, uid: str, version: int) -> bool:
        """Whether that version of the object is from before it went."""
        grave = self._gone.get(uid)
        return grave is not None and version <= grave[1]

    def _bury(self, uid: str, version: int) -> None:
        now = self._monotonic()
        self._gone.pop(uid, None)
        self._gone[uid] = now + REMEMBER_SECONDS, version
        while self._gone:
            oldest = next(iter(self._gone))
            if self._gone[oldest][0] > now and len(self._gone) <= _MOST_GRAVES:
                return
            del self._gone[oldest]

    def _notify(self, change: Change) -> None:
        for listener in self._listeners:
            listener(change)


def _same(old: _Record, new: Object) -> bool:
    """Whether nothing changed that we keep, such as when a Node's heartbeat moved."""
    before = old.unpack()
    before["metadata"]["resourceVersion"] = new["metadata"]["resourceVersion"]
    return before == new

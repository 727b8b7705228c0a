"""The objects of one kind as last seen: filled by a watch, and by the answers to our own writes.

In whatever order versions arrive, the newest wins: an object never goes back to an older version, and a deleted one
does not come back. So the controller never acts on anything older than its own last write. An object that became
unreadable counts neither as present nor as deleted: it has a name, and no content until it can be read again.
"""

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import orjson

from service.kube.errors import Unavailable, Unreadable
from service.runtime.defects import LEVELS, Defect, Mark, cut_off
from service.runtime.identity import identity, name_of, version_or_zero, well_formed
from service.runtime.key import Key
from service.runtime.packing import Packing, PackingSample, unpacked

Object = dict[str, Any]
# How long a late version of a deleted object is recognised; far longer than any request or event takes to arrive.
TOMBSTONE_SECONDS = 600.0
_MAX_TOMBSTONES = 100_000
_FOREVER = sys.maxsize
"""Later than any version: every version of such an object is ignored."""
UNKNOWN_VERSION = 0
"""The version of a deletion that a list revealed. No write has it, so that none is taken for its cause."""
_MARK_BYTES = 512
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


class EventType(StrEnum):
    """What happened to an object."""

    ADDED = "ADDED"
    CHANGED = "CHANGED"
    DELETED = "DELETED"


@dataclass(frozen=True, slots=True)
class Change:
    """A change of one object: as it is now, or as it was last seen if it was deleted."""

    type: EventType
    key: Key
    object: Object
    version: int
    """The version that the watch reported; the object is newer if the answer to our own write arrived first."""


@dataclass(frozen=True, slots=True)
class _Record:
    """An object, packed: that takes a tenth of the memory of dicts or less, and no caller can change it by mistake."""

    uid: str
    version: int
    packed: bytes
    sample: PackingSample | None
    terms: tuple[tuple[str, str], ...]

    def unpack(self) -> Object:
        return unpacked(self.packed, self.sample)  # type: ignore[no-any-return]


Index = Callable[[Object], Iterable[str]]


def slim(raw: Object) -> Object:
    """Removes what the controller does not read: field managers and kubectl's own copy of the manifest."""
    metadata = raw["metadata"]
    metadata.pop("managedFields", None)
    annotations = metadata.get("annotations")
    if annotations:
        annotations.pop(_LAST_APPLIED, None)
    return raw


class Cache:
    """Objects by key, with indexes. `slim` reduces an object to what is worth keeping, before it is indexed.

    With a `budget`, objects that would need more bytes than that raise `Unavailable`.
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
        """The highest resourceVersion seen: an older list is stale."""
        self._slim = slim
        self._indexes = dict(indexes or {})
        self._monotonic = monotonic
        self._budget = budget
        self._bytes = 0
        # A server that is not trusted could send millions of objects that are alike within its budget.
        self._packing = Packing(compress=budget is None)
        self._records: dict[Key, _Record] = {}
        self._terms: dict[tuple[str, str], set[Key]] = {}
        self._tombstones: dict[str, tuple[float, int]] = {}
        """By uid of a deleted object: until when it is remembered, and up to which version it is ignored."""
        self._own_versions: dict[Key, set[int]] = {}
        """Versions from the answers to our own requests that the watch has not reported yet."""
        self._listeners: list[Callable[[Change], None]] = []
        self._marks: dict[Key, Mark] = {}
        self.on_defect: Callable[[Key, Mark], None] = lambda _key, _mark: None
        """Called for an object that cannot be read, or not all of it: once, until it can be read again."""

    def __len__(self) -> int:
        return len(self._records)

    def __contains__(self, key: Key) -> bool:
        return key in self._records

    def __iter__(self) -> Iterator[Key]:
        return iter(tuple(self._records))

    def get(self, key: Key) -> Object | None:
        """A copy of the object, which the caller may change; None if there is none, or none that can be read."""
        record = self._readable(key)
        return None if record is None else record.unpack()

    def unreadable(self, key: Key) -> str | None:
        """Why the content of the object is unknown; None if it is known."""
        mark = self._marks.get(key)
        if mark is None or mark.defect is Defect.TOO_DEEP:
            return None
        return mark.why

    def version(self, key: Key) -> int | None:
        """The version of the object; None if there is none, or none that can be read."""
        record = self._readable(key)
        return None if record is None else record.version

    def _readable(self, key: Key) -> _Record | None:
        return None if self.unreadable(key) else self._records.get(key)

    def keys_by(self, index: str, value: str) -> frozenset[Key]:
        """Keys of the objects that have `value` in an index."""
        if index not in self._indexes:
            raise KeyError(f"no index {index!r}; the indexes are {sorted(self._indexes)}")
        return frozenset(self._terms.get((index, value), ()))

    def count_by(self, index: str, value: str) -> int:
        """How many objects have `value` in an index."""
        return len(self._terms.get((index, value), ()))

    def listen(self, listener: Callable[[Change], None]) -> None:
        """Calls `listener` with every change from now on, except our own writes."""
        self._listeners.append(listener)

    def absorb(self, raw: Object, *, notify: bool = False) -> bool:
        """Stores the answer to a write of ours, reducing it in place; returns whether it was new.

        Without `notify`, listeners are called neither now nor when the watch reports the same version. An answer may
        also contain what others wrote just before; listeners are called for that when the watch reports it.
        """
        return self._store(raw, notify=notify)

    def absorb_deletion(self, key: Key, uid: str, answer: Object | None = None) -> None:
        """Removes an object that we deleted; if the answer to our DELETE shows it held by finalizers, stores that."""
        if answer is not None and answer.get("kind") != "Status":
            self._store(answer, notify=False)
            return
        self._add_tombstone(uid, _FOREVER)
        record = self._records.get(key)
        if record is not None and record.uid == uid:
            self._drop(key, record)

    def upsert(self, raw: Object) -> bool:
        """Stores an object from a list or a watch; returns whether it was new."""
        return self._store(raw, notify=True)

    def mark_unreadable(self, raw: Object, defect: Defect, why: str) -> Key:
        """Marks an object that cannot be read, as far as its name can: its known content no longer counts."""
        key = name_of(raw)
        version = version_or_zero(raw)
        record = self._records.get(key)
        before = self._marks.get(key)
        if record is not None and record.version >= version > 0:
            return key  # the answer to a request arrived first
        if before is None:
            self._reserve(_MARK_BYTES)
        mark = self._marks[key] = Mark(defect, why, version)
        if before is None or before.defect is Defect.TOO_DEEP:
            self.on_defect(key, mark)
            if record is not None:
                self._notify(Change(EventType.CHANGED, key, record.unpack(), version))
        return key

    def remove(self, raw: Object) -> bool:
        """Removes an object after a DELETED event; returns whether it was stored.

        A watch with a label selector also sends DELETED when an object loses its label, so later versions count again.
        """
        key, uid, version = identity(raw)
        self.newest = max(self.newest, version)
        self._add_tombstone(uid, version)
        record = self._records.get(key)
        if record is None:
            self._unmark(key)
        if record is None or record.uid != uid:
            return False  # removed before, or another object has the name now
        self._drop(key, record)
        self._notify(Change(EventType.DELETED, key, self._last_state(raw, record), version))
        return True

    def _last_state(self, raw: Object, record: _Record) -> Object:
        """The object as the DELETED event has it, or as last stored if that cannot be read."""
        try:
            with well_formed():
                return self._slim(raw)
        except Unreadable:
            return record.unpack()

    def keep_only(self, seen: set[Key], listed_at: int) -> None:
        """Removes all objects that a full list as of version `listed_at` lacks, except newer ones."""
        self.newest = max(self.newest, listed_at)
        for key, record in list(self._records.items()):
            if key not in seen and record.version <= listed_at:
                self._add_tombstone(record.uid, listed_at)
                self._drop(key, record)
                self._notify(Change(EventType.DELETED, key, record.unpack(), UNKNOWN_VERSION))
        for key in [key for key, mark in self._marks.items() if key not in seen and mark.version <= listed_at]:
            self._unmark(key)

    def forget_versions(self) -> None:
        """Accepts any version from now on: the server was restored from a backup, or is another one."""
        self.newest = 0
        self._tombstones.clear()
        self._own_versions.clear()
        for key, record in self._records.items():
            self._records[key] = replace(record, version=-1)
        for key, mark in self._marks.items():
            self._marks[key] = Mark(mark.defect, mark.why, -1)

    def _store(self, raw: Object, *, notify: bool) -> bool:
        key, uid, version = identity(raw)
        self.newest = max(self.newest, version)
        old = self._records.get(key)
        if self._was_deleted(uid, version):
            return False
        hidden = self.unreadable(key) is not None
        if hidden and self._marks[key].version >= version:
            return False  # from before it became unreadable
        if old is not None and old.version >= version:
            if notify and old.uid == uid and self._written_by_others(key, version):
                self._notify(Change(EventType.CHANGED, key, old.unpack(), version))
            return False
        trimmed, record, cut = self._pack(raw, uid, version)
        if old is not None and old.uid != uid:
            self._replaced(key, old, notify=notify)
            old = None
        self._mark_depth(key, version, cut=cut)
        self._reserve(len(record.packed) - (len(old.packed) if old else 0))
        self._records[key] = record
        self._reindex(key, old.terms if old else (), record.terms)
        if not notify:
            self._own_versions.setdefault(key, set()).add(version)
            return True
        self._own_versions.pop(key, None)
        if old is None:
            self._notify(Change(EventType.ADDED, key, trimmed, version))
        elif hidden or not _same(old, trimmed):
            self._notify(Change(EventType.CHANGED, key, trimmed, version))
        return True

    def _written_by_others(self, key: Key, version: int) -> bool:
        """Whether an old version that the watch reports comes from others; the answer to our write arrived first."""
        own = self._own_versions.get(key)
        if own is None:
            return False
        if version not in own:
            return True
        own.discard(version)
        if not own:
            del self._own_versions[key]
        return False

    def _pack(self, raw: Object, uid: str, version: int) -> tuple[Object, _Record, bool]:
        """The reduced object, its record, and whether something was cut off because it is nested too deep."""
        with well_formed():
            trimmed = self._slim(raw)
            try:
                return trimmed, self._record(trimmed, uid, version), False
            except orjson.JSONEncodeError:
                cut_off(trimmed, LEVELS)
                return trimmed, self._record(trimmed, uid, version), True

    def _mark_depth(self, key: Key, version: int, *, cut: bool) -> None:
        """Marks an object of which something was cut off, and unmarks one that is whole."""
        before = self._marks.get(key)
        if not cut:
            self._unmark(key)
            return
        if before is None:
            self._reserve(_MARK_BYTES)
        mark = self._marks[key] = Mark(Defect.TOO_DEEP, f"it is nested deeper than {LEVELS} levels", version)
        if before is None or before.defect is not Defect.TOO_DEEP:
            self.on_defect(key, mark)

    def _unmark(self, key: Key) -> None:
        if self._marks.pop(key, None) is not None:
            self._bytes -= _MARK_BYTES

    def _record(self, trimmed: Object, uid: str, version: int) -> _Record:
        terms = tuple((name, value) for name, index in self._indexes.items() for value in index(trimmed))
        content, sample = self._packing.pack(trimmed, len(self._records))
        return _Record(uid, version, content, sample, terms)

    def _replaced(self, key: Key, old: _Record, *, notify: bool) -> None:
        """Removes an object whose name another one has now: it was deleted, but the watch did not report it."""
        self._add_tombstone(old.uid, _FOREVER)
        self._drop(key, old)
        if notify:
            self._notify(Change(EventType.DELETED, key, old.unpack(), UNKNOWN_VERSION))

    def _reserve(self, size: int) -> None:
        if self._budget is not None and self._bytes + size > self._budget:
            raise Unavailable(f"the objects of the server need more than {self._budget} bytes")
        self._bytes += size

    def _drop(self, key: Key, record: _Record) -> None:
        del self._records[key]
        self._own_versions.pop(key, None)
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

    def _was_deleted(self, uid: str, version: int) -> bool:
        """Whether that version of the object is from before its deletion."""
        tombstone = self._tombstones.get(uid)
        return tombstone is not None and version <= tombstone[1]

    def _add_tombstone(self, uid: str, version: int) -> None:
        now = self._monotonic()
        self._tombstones.pop(uid, None)
        self._tombstones[uid] = now + TOMBSTONE_SECONDS, version
        while self._tombstones:
            oldest = next(iter(self._tombstones))
            if self._tombstones[oldest][0] > now and len(self._tombstones) <= _MAX_TOMBSTONES:
                return
            del self._tombstones[oldest]

    def _notify(self, change: Change) -> None:
        for listener in self._listeners:
            listener(change)


def _same(old: _Record, new: Object) -> bool:
    """Whether nothing changed that the cache keeps; a Node's heartbeat, for example, is not kept."""
    before = old.unpack()
    before["metadata"]["resourceVersion"] = new["metadata"]["resourceVersion"]
    return before == new

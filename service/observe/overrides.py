"""The overrides that count, indexed by what they are about, and the ScheduledMachines that a selector selects."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from crds.overrides import Override
from crds.selector import LabelOperator, Selector
from service.observe.indexes import label_term
from service.runtime.informer import Informer
from service.runtime.key import Key

_Term = TypeVar("_Term")


@dataclass(frozen=True, slots=True)
class IndexedOverride:
    """An override that counts, and the machines that it is about: those of these names, or those it selects."""

    override: Override
    machines: tuple[str, ...]
    selector: Selector | None


class OverrideIndex:
    """An OverrideSource: a lookup costs the overrides of one name and the selectors of one namespace."""

    def __init__(self) -> None:
        self._entries: dict[Key, IndexedOverride] = {}
        self._by_machine: dict[Key, set[Key]] = {}
        self._by_namespace: dict[str, set[Key]] = {}
        """Those with a selector."""

    def about(self, namespace: str, name: str, labels: Mapping[str, str]) -> tuple[Override, ...]:
        """Those that name or select a machine, in any order."""
        return tuple(entry.override for entry in self._matching(namespace, name, labels))

    def _matching(self, namespace: str, name: str, labels: Mapping[str, str]) -> Iterator[IndexedOverride]:
        for key in self._by_machine.get(Key(namespace, name), ()):
            yield self._entries[key]
        for key in self._by_namespace.get(namespace, ()):
            entry = self._entries[key]
            if entry.selector is not None and entry.selector.matches(labels):
                yield entry

    def put(self, key: Key, entry: IndexedOverride | None) -> tuple[IndexedOverride, ...]:
        """Stores what counts of an override, or that nothing does; returns the entries before and after a change."""
        before = self._entries.get(key)
        if before == entry:
            return ()
        if before is not None:
            self._drop(key, before)
        if entry is not None:
            self._add(key, entry)
        return tuple(each for each in (before, entry) if each is not None)

    def __iter__(self) -> Iterator[tuple[Key, Override]]:
        for key, entry in self._entries.items():
            yield key, entry.override

    def _add(self, key: Key, entry: IndexedOverride) -> None:
        self._entries[key] = entry
        for name in entry.machines:
            self._by_machine.setdefault(Key(key.namespace, name), set()).add(key)
        if entry.selector is not None:
            self._by_namespace.setdefault(key.namespace, set()).add(key)

    def _drop(self, key: Key, entry: IndexedOverride) -> None:
        del self._entries[key]
        for name in entry.machines:
            _discard(self._by_machine, Key(key.namespace, name), key)
        if entry.selector is not None:
            _discard(self._by_namespace, key.namespace, key)


def _discard(index: dict[_Term, set[Key]], term: _Term, key: Key) -> None:
    found = index.get(term, set())
    found.discard(key)
    if not found:
        index.pop(term, None)


def machines_of(entry: IndexedOverride, namespace: str, scheduled: Informer) -> Iterator[Key]:
    """The ScheduledMachines that exist and that an override is about."""
    if entry.selector is None:
        named = (Key(namespace, name) for name in entry.machines)
        yield from (key for key in named if key in scheduled)
        return
    for key in _candidates(entry.selector, scheduled):
        if key.namespace == namespace and entry.selector.matches(_labels(scheduled, key)):
            yield key


def _candidates(selector: Selector, scheduled: Informer) -> Iterable[Key]:
    """Those that one requirement of the selector leaves, by the index of labels; else all."""
    for key, value in selector.match_labels.items():
        return scheduled.keys_by("label", label_term(key, value))
    for each in selector.match_expressions:
        if each.operator is LabelOperator.IN:
            terms = (label_term(each.key, value) for value in each.values)
            return frozenset().union(*(scheduled.keys_by("label", term) for term in terms))
        if each.operator is LabelOperator.EXISTS:
            return scheduled.keys_by("label", each.key)
    return scheduled


def _labels(scheduled: Informer, key: Key) -> Mapping[str, str]:
    raw = scheduled.get(key) or {}
    return labels_of(raw)


def labels_of(raw: Mapping[str, object]) -> Mapping[str, str]:
    """The labels of an object; nothing in it is trusted to be well-formed."""
    metadata = raw.get("metadata")
    labels = metadata.get("labels") if isinstance(metadata, dict) else None
    return labels if isinstance(labels, dict) else {}

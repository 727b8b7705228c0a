"""Drift of a provider's object: a value that we set was changed since, and not by the provider itself.

A value may differ from what we sent for other reasons: a conversion or a webhook writes it otherwise, or the provider's
controller fills it in. The API server's own record of who set which field, `metadata.managedFields`, shows which it is.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

import orjson

from crds import names

Raw = Mapping[str, Any]
Path = tuple[str | int, ...]
PATHS_MAX: Final = 100
_TEXT_MAX: Final = 64
_DURATION: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ns|us|µs|ms|s|m|h)")
_UNITS: Final = {
    "ns": Decimal("1e-9"), "us": Decimal("1e-6"), "µs": Decimal("1e-6"), "ms": Decimal("1e-3"),
    "s": Decimal(1), "m": Decimal(60), "h": Decimal(3600),
}  # fmt: skip
_QUANTITY: Final = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))(e[+-]?[0-9]{1,3}|[KMGTPE]i|[numkMGTPE])?")
_DECIMAL_SUFFIX: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY_SUFFIX: Final = "KMGTPE"
"""Each followed by an i."""


@dataclass(frozen=True, slots=True)
class SpecChange:
    """A value that was changed since we set it, and the field manager that changed it."""

    path: str
    manager: str

    def __str__(self) -> str:
        return f"{self.path} (by {self.manager})"


def differences(wanted: Any, there: Any) -> tuple[Path, ...]:
    """Where a spec does not say what was sent. What is absent was pruned, what was added is its provider's business."""
    found: list[Path] = []
    pairs: list[tuple[Path, Any, Any]] = [((), wanted, there)]
    while pairs and len(found) < PATHS_MAX:
        path, one, other = pairs.pop()
        if isinstance(one, Mapping) and isinstance(other, Mapping):
            pairs += [((*path, key), one[key], other[key]) for key in one if key in other]
        elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
            pairs += [((*path, at), *both) for at, both in enumerate(zip(one, other, strict=True))]
        elif not same_value(one, other):
            found.append(path)
    return tuple(sorted(found, key=shown))


def shown(path: Path) -> str:
    """A path as people write it."""
    return "spec" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)


def same_value(one: Any, other: Any) -> bool:
    """Whether two values mean the same to Kubernetes: `90s` and `1m30s`, `1000m` and `1`, `22` and `"22"`."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if one == other:
        return True
    texts = [str(value) for value in (one, other) if isinstance(value, str | int | float)]
    if len(texts) < 2 or max(map(len, texts)) > _TEXT_MAX:
        return False
    readings = ((read(texts[0]), read(texts[1])) for read in (_quantity, _duration, _instant))
    return any(left is not None and left == right for left, right in readings)


def _duration(text: str) -> Decimal | None:
    """Seconds, as Go reads and writes them."""
    bare = text.lstrip("+-")
    parts = _DURATION.findall(bare)
    if not parts or "".join(number + unit for number, unit in parts) != bare:
        return None
    seconds = sum((Decimal(number) * _UNITS[unit] for number, unit in parts), Decimal(0))
    return -seconds if text.startswith("-") else seconds


def _quantity(text: str) -> Decimal | None:
    """A number, as Kubernetes reads resource quantities."""
    found = _QUANTITY.fullmatch(text)
    if found is None:
        return None
    number, suffix = Decimal(found[1]), found[2] or ""
    if suffix.endswith("i"):
        return number * Decimal(1024 ** (_BINARY_SUFFIX.index(suffix[0]) + 1))
    return number.scaleb(_DECIMAL_SUFFIX[suffix] if suffix in _DECIMAL_SUFFIX else int(suffix[1:]))


def _instant(text: str) -> int | None:
    """Whole seconds: Kubernetes keeps no fractions in most of its times."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return int(found.timestamp()) if found.tzinfo is not None else None


def changes_by_others(wanted: Any, raw: Raw) -> tuple[SpecChange, ...]:
    """What was changed in an object that we created with the spec `wanted`; `raw` has its managed fields.

    A value that our field manager still owns has not been written since our creation, whatever its form now. One
    that a writer of the object's status or finalizers owns was written by its provider. Where the record does not
    know our creation, such as after a restore from a backup, the author is unknown.
    """
    entries = [_Entry.read(entry) for entry in raw["metadata"].get("managedFields") or ()]
    ours = [entry for entry in entries if entry.manager == names.FIELD_MANAGER]
    if not ours:
        return ()
    others = [entry for entry in entries if entry.manager != names.FIELD_MANAGER]
    found = []
    for path in differences(wanted, raw.get("spec") or {}):
        manager = None if any(entry.owns(wanted, path) for entry in ours) else _author(others, ours[0], wanted, path)
        if manager is not None:
            found.append(SpecChange(shown(path), manager))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _Entry:
    """One of the managed fields: what a manager wrote in one version of the kind."""

    manager: str
    api_version: str
    time: str
    fields: Any
    on_status: bool

    @classmethod
    def read(cls, raw: Raw) -> "_Entry":
        fields = raw.get("fieldsV1")
        fields = fields if isinstance(fields, Mapping) else {}
        return cls(
            manager=str(raw.get("manager") or ""),
            api_version=str(raw.get("apiVersion") or ""),
            time=str(raw.get("time") or ""),
            fields=fields,
            on_status=raw.get("subresource") == "status" or "f:status" in fields,
        )

    @property
    def provides(self) -> bool:
        """Whether a provider's controller wrote this: people write neither status nor finalizers."""
        finalizes = "f:finalizers" in (self.fields.get("f:metadata") or {})
        return (self.on_status or finalizes) and not self.manager.startswith("kubectl")

    @property
    def has_spec(self) -> bool:
        return "f:spec" in self.fields

    def owns(self, wanted: Any, path: Path) -> bool:
        """Whether the value at that path of `wanted` is this manager's, itself or as a part of something atomic."""
        node = self.fields.get("f:spec")
        for step in path:
            if node is None or node == {}:
                break
            node = node.get(f"f:{step}") if isinstance(step, str) else _item(node, step, wanted[step])
            wanted = wanted[step]
        if isinstance(wanted, list) and node:
            return all(_item(node, at, item) is not None for at, item in enumerate(wanted))
        return node is not None


def _item(node: Raw, at: int, item: Any) -> Any:
    """What a manager owns of one item of a list: known by its keys, by its value or by its place."""
    return next((fields for name, fields in node.items() if _names(name, at, item)), None)


def _names(name: str, at: int, item: Any) -> bool:
    sort, _, text = name.partition(":")
    if sort == "i":
        return text == str(at)
    if sort not in ("k", "v"):
        return False
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    if sort == "v" or not isinstance(item, Mapping):
        return bool(value == item)
    return all(item.get(key, part) == part for key, part in value.items())


def _author(others: list[_Entry], ours: _Entry, wanted: Any, path: Path) -> str | None:
    """Who changed a value that was ours; None if it was the provider, or is unknown."""
    providers = {entry.manager for entry in others if entry.provides}
    authors = list(_owners(others, wanted, path))
    if not authors:
        # Written in another version of the kind, in which the field may have another name.
        authors = [entry for entry in others if entry.has_spec and entry.api_version != ours.api_version]
        if any(entry.manager in providers for entry in authors):
            return None
    latest = max(authors, key=lambda entry: entry.time, default=None)
    return latest.manager if latest is not None and latest.manager not in providers else None


def _owners(entries: list[_Entry], wanted: Any, path: Path) -> Iterator[_Entry]:
    return (entry for entry in entries if entry.has_spec and entry.owns(wanted, path))

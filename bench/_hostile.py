"""Reviews as no API server sends them, each near the limit of three megabytes or of values: what do they cost?

Every shape is put where it costs most: into what is passed through, into what is judged, and into both versions of an
update; calendars, classes and overrides have shapes of their own. `bench_admission_under_fire` posts them, and a test
measures each.
"""

import copy
import random
from collections.abc import Iterator
from typing import Any, NamedTuple

import orjson

from bench.bench_admission import TYPICAL, review
from crds import names
from webhooks.complexity import VALUES_MAX
from webhooks.review import BODY_LIMIT

ROOM = BODY_LIMIT - 16 * 1024
FEW = VALUES_MAX - 500
"""Values that just fit."""
MARK = "@@"
OBJECT = ("request", "object")
MIXED = ("combs of 100", "objects in objects", "texts", "fields", "one text of escapes", "long texts")
PLACES: dict[str, tuple[str, ...]] = {
    "bootstrapSpec": (*OBJECT, "spec", "bootstrapSpec", "spec"),
    "unknown field": (*OBJECT, "spec", "surprise"),
    "nodeTaints": (*OBJECT, "spec", "nodeTaints"),
    "labels": (*OBJECT, "spec", "machineTemplate", "labels"),
    "hoursOfDay": (*OBJECT, "spec", "schedule", "hoursOfDay"),
    "cron": (*OBJECT, "spec", "schedule", "cron"),
    "windows": (*OBJECT, "spec", "schedule", "windows"),
    "exceptions": (*OBJECT, "spec", "schedule", "exceptions"),
    "parameters": (*OBJECT, "spec", "parameters"),
    "finalizers": (*OBJECT, "metadata", "finalizers"),
    "annotations": (*OBJECT, "metadata", "annotations"),
    "managedFields": (*OBJECT, "metadata", "managedFields"),
    "userInfo": ("request", "userInfo"),
}


class Kind(NamedTuple):
    """Another kind that is judged: where it is posted, the smallest object, and what a caller may put where."""

    path: str
    kind: str
    spec: dict[str, Any]
    places: dict[str, tuple[str, ...]]


KINDS = (
    Kind(
        names.VALIDATE_CALENDAR_PATH,
        names.CALENDAR_KIND,
        {"dates": ["2026-12-24"]},
        {"dates": ("dates",), "yearly": ("yearly",), "ics": ("ics", "inline"), "country": ("holidays", "country")},
    ),
    Kind(
        names.VALIDATE_CLASS_PATH,
        names.CLASS_KIND,
        {**{name: TYPICAL["spec"][name] for name in ("bootstrapSpec", "infrastructureSpec")}, "namespaceSelector": {}},
        {
            "parameters": ("parameters",),
            "schemas": ("parameters", "0", "schema", "properties"),
            "texts": ("infrastructureSpec", "spec", "user"),
            "expressions": ("namespaceSelector", "matchExpressions"),
        },
    ),
    Kind(
        names.VALIDATE_OVERRIDE_PATH,
        names.OVERRIDE_KIND,
        {"machines": ["desk-7"], "state": "Open", "until": "2026-11-20T22:00:00Z"},
        {"machines": ("machines",), "until": ("until",), "expressions": ("selector", "matchExpressions")},
    ),
)


def _list(one: bytes, count: int) -> bytes:
    return b"[" + b",".join([one] * count) + b"]"


def _full(one: bytes) -> bytes:
    return _list(one, ROOM // (len(one) + 1))


def _object(entries: Iterator[bytes]) -> bytes:
    return b"{" + b",".join(entries) + b"}"


def large() -> dict[str, bytes]:
    """As much as three megabytes hold."""
    return {
        "combs of 100": _full(b"[" * 100 + b"]" * 100),
        "combs of 1000": _full(b"[" * 1000 + b"]" * 1000),
        "objects in objects": _full(b'{"a":' * 50 + b"{}" + b"}" * 50),
        "empty objects": _full(b"{}"),
        "numbers": _full(b"1"),
        "texts": _full(b'""'),
        "fields": _object(b'"%x":0' % number for number in range(ROOM // 10)),
        "one field many times": _object(b'"a":[]' for _ in range(ROOM // 7)),
        "one long text": b'"%s"' % (b"a" * ROOM),
        "one text of commas": b'"%s"' % (b",[" * (ROOM // 2)),
        "one text of escapes": b'"%s"' % (b"\\n" * (ROOM // 2)),
        "one text of quotes": b'"%s"' % (b'\\",' * (ROOM // 3)),
        "one text of signs": b'"%s"' % ("\U0001f600".encode() * (ROOM // 4)),
        "deeper than is read": b"[" * (FEW // 2) + b'"a",' * (FEW // 2 - 9) + b"1" + b"]" * (FEW // 2),
        "long texts": _list(b'"%s"' % (b"\\u2028" * 25), FEW),
        "one long number": b"0." + b"1" * ROOM,
    }


def many() -> dict[str, bytes]:
    """As many values as are read at all, in half of a review: the other half is the old version."""
    half = FEW // 2
    return {
        "short lists": _list(b"[1]", half // 2),
        "combs": _list(b"[" * 90 + b"]" * 90, half // 91),
        "objects": _object(b'"k%d":{"a":1}' % number for number in range(half // 2)),
        "bad names": _object(b'"%d%s":[]' % (number, b"\\n" * 60) for number in range(half // 2)),
        "bad texts": _list(b'"%s"' % (b"\\u0001" * 25), half),
    }


def crafted() -> dict[str, bytes]:
    """What costs most where it is read as it is meant: dates, regular expressions, references, schemas."""
    patterns = (b'"p%d":{"pattern":"(?:[a-z\\\\d]{1,60}){40}x%d"}' % (number, number) for number in range(1200))
    letters = (b'"p%d":{"pattern":"\\\\p{L}{20}%d"}' % (number, number) for number in range(1200))
    slow = b'[{"name":"a","schema":{"pattern":"a[ab]{500}c"},"default":"%s"}]' % bytes(
        random.Random(1).choices(b"ab", k=60_000)
    )
    branches = _list(b'{"contains":{"pattern":"^b"}}', 600)
    crossed = b'[{"name":"a","schema":{"anyOf":%s},"default":%s}]' % (branches, _list(b'"a"', 7000))
    return {
        "ranges": _full(b'"2026-01-01/2026-12-31"'),
        "long ranges": _list(b'"0001-01-01/9999-12-31"', 9000),
        "patterns": _object(patterns),
        "letters": _object(letters),
        "a slow pattern": slow,
        "a slow schema": crossed,
        "references": _object(b'"k%d":"a$(params.none)"' % number for number in range(FEW // 3)),
        "references in one text": b'"%s"' % (b"$(params.none)" * (ROOM // 14)),
        "mistakes in one text": b'"%s"' % (b"$(params." * (ROOM // 9)),
        "requirements": _list(b'{"key":"a","operator":"In","values":["a"]}', FEW // 10),
    }


def other_kinds() -> Iterator[tuple[str, str, bytes]]:
    """Reviews of calendars, classes and overrides: what it is, where it is posted, and its bytes."""
    shapes = crafted() | {name: shape for name, shape in large().items() if name in MIXED}
    for kind in KINDS:
        for place, path in kind.places.items():
            for shape, value in shapes.items():
                yield f"{shape} in {place} of a {kind.kind}", kind.path, _of_kind(kind, path, value)


def _of_kind(kind: Kind, path: tuple[str, ...], value: bytes) -> bytes:
    """An update, whose old version is as bad: both are judged, where both fit."""
    given: dict[str, Any] = {
        "apiVersion": names.API_VERSION,
        "kind": kind.kind,
        "metadata": {"name": "hostile", "namespace": "default"},
        "spec": copy.deepcopy(kind.spec),
    }
    if kind.kind == names.CLASS_KIND:
        del given["metadata"]["namespace"]
        given["spec"]["parameters"] = [{"name": "a", "schema": {"type": "string"}}]
    _put(given, ("spec", *path), MARK)
    envelope = review(given)
    about = {"group": names.GROUP, "version": names.VERSION, "kind": kind.kind}
    envelope["request"] |= {"kind": about, "requestKind": about}
    if 2 * len(value) < ROOM:
        envelope["request"] |= {"operation": "UPDATE", "oldObject": copy.deepcopy(given) | {"status": {}}}
    return orjson.dumps(envelope).replace(f'"{MARK}"'.encode(), value)


def creations() -> Iterator[tuple[str, bytes]]:
    """Every large shape in every place."""
    for place, path in PLACES.items():
        for shape, value in large().items():
            yield f"{shape} in {place}", _filled(path, value)


def updates() -> Iterator[tuple[str, bytes]]:
    """Objects with many faults, of which the old version has as many that look alike."""
    for place, path in PLACES.items():
        if path[: len(OBJECT)] == OBJECT:
            for shape, value in many().items():
                changed = value.replace(b"1", b"2").replace(b"\\n", b"\\t")
                yield f"{shape} in {place}, updated", _filled(path, value, changed)


def _filled(path: tuple[str, ...], value: bytes, old: bytes | None = None) -> bytes:
    given: dict[str, Any] = copy.deepcopy(TYPICAL)
    given["metadata"]["name"] = "worker"
    given["spec"]["clusterName"] = "production"
    envelope = review(given)
    if old is not None:
        envelope["request"] |= {"operation": "UPDATE", "oldObject": copy.deepcopy(given)}
        _put(envelope, ("request", "oldObject", *path[len(OBJECT) :]), f"{MARK}old")
    _put(envelope, path, MARK)
    body = orjson.dumps(envelope).replace(f'"{MARK}old"'.encode(), old or b"").replace(f'"{MARK}"'.encode(), value)
    assert len(body) < BODY_LIMIT, f"{len(body)} bytes"
    return body


def _put(raw: Any, path: tuple[str, ...], value: str) -> None:
    for name in path[:-1]:
        raw = raw[int(name)] if isinstance(raw, list) else raw.setdefault(name, {})
    raw[path[-1]] = value

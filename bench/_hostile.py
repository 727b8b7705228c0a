"""Reviews as no API server sends them, each near the limit of three megabytes or of values: what do they cost?

Every shape is put where it costs most: into what is passed through, into what is judged, and into both versions of an
update. `bench_admission_under_fire` posts them, and a test measures each.
"""

import copy
from collections.abc import Iterator
from typing import Any

import orjson

from bench.bench_admission import TYPICAL, review
from webhooks.complexity import VALUES_MAX
from webhooks.review import BODY_LIMIT

ROOM = BODY_LIMIT - 16 * 1024
FEW = VALUES_MAX - 500
"""Values that just fit."""
MARK = "@@"
OBJECT = ("request", "object")
PLACES: dict[str, tuple[str, ...]] = {
    "bootstrapSpec": (*OBJECT, "spec", "bootstrapSpec", "spec"),
    "unknown field": (*OBJECT, "spec", "surprise"),
    "nodeTaints": (*OBJECT, "spec", "nodeTaints"),
    "labels": (*OBJECT, "spec", "machineTemplate", "labels"),
    "hoursOfDay": (*OBJECT, "spec", "schedule", "hoursOfDay"),
    "cron": (*OBJECT, "spec", "schedule", "cron"),
    "finalizers": (*OBJECT, "metadata", "finalizers"),
    "annotations": (*OBJECT, "metadata", "annotations"),
    "managedFields": (*OBJECT, "metadata", "managedFields"),
    "userInfo": ("request", "userInfo"),
}


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
        raw = raw[name]
    raw[path[-1]] = value

"""Name, uid and version of an object; checked, as a workload cluster belongs to others and may send anything."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from service.kube.errors import Unreadable
from service.runtime.key import Key

Object = dict[str, Any]
_NAME_MAX: Final = 253
_UID_MAX: Final = 128
_VERSION_MAX: Final = 20
_MALFORMED: Final = (KeyError, TypeError, ValueError, AttributeError)


def key_of(raw: Object) -> Key:
    """The key of an object."""
    return identity(raw)[0]


def version_of(raw: Object) -> int:
    """The resourceVersion of an object or bookmark as a number; API servers count them up."""
    with well_formed():
        return _whole(raw["metadata"]["resourceVersion"])


def identity(raw: Object) -> tuple[Key, str, int]:
    """The key, uid and version of an object."""
    try:  # not `well_formed`: every event and every answer comes through here
        metadata = raw["metadata"]
        key = Key(metadata.get("namespace", ""), metadata["name"])
        uid = metadata["uid"]
        if not (isinstance(key.namespace, str) and isinstance(key.name, str) and isinstance(uid, str)):
            raise TypeError("names and uids are text")
        if len(key.namespace) > _NAME_MAX or len(key.name) > _NAME_MAX or len(uid) > _UID_MAX:
            raise ValueError(f"a name has at most {_NAME_MAX} characters and a uid {_UID_MAX}")
        if not (key.name and uid):
            raise ValueError("an object has a name and a uid")
        return key, uid, _whole(metadata["resourceVersion"])
    except _MALFORMED as error:
        raise _unreadable("an object", error) from error


def _whole(version: Any) -> int:
    if not isinstance(version, str) or len(version) > _VERSION_MAX:
        raise TypeError("a resourceVersion is a short text")
    return int(version)


def name_of(raw: Object) -> Key:
    """The key of an object that may be malformed; an empty key if it has no valid name."""
    metadata = raw.get("metadata")
    found = metadata if isinstance(metadata, dict) else {}
    match found.get("namespace") or "", found.get("name"):
        case str(namespace), str(name) if max(len(namespace), len(name)) <= _NAME_MAX:
            return Key(namespace, name)
    return Key("", "")


def version_or_zero(raw: Object) -> int:
    """The version of an object that may be malformed; 0 if it has no valid one."""
    try:
        return version_of(raw)
    except Unreadable:
        return 0


@contextmanager
def well_formed(what: str = "an object") -> Iterator[None]:
    """Turns errors from reading what a server sent into `Unreadable`: a workload cluster may send anything."""
    try:
        yield
    except _MALFORMED as error:
        raise _unreadable(what, error) from error


def _unreadable(what: str, error: Exception) -> Unreadable:
    return Unreadable(f"the server sent something that is not {what}: {error!r}")

"""Which object a request to an API server concerns, from its path and body alone."""

from dataclasses import dataclass
from typing import Any

import orjson

Raw = dict[str, Any]
WRITES = frozenset({"POST", "PATCH", "PUT", "DELETE"})
NOT_COUNTED = frozenset({"leases"})
"""Renewed by the clock, not by what happens; fencing has tests of its own."""


@dataclass(frozen=True, slots=True)
class Target:
    """The object that a path leads to; a create names it in its body."""

    resource: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    @classmethod
    def of(cls, path: str) -> "Target":
        """`/api/v1/…` and `/apis/GROUP/VERSION/…`, with or without a namespace."""
        parts = path.partition("?")[0].strip("/").split("/")
        parts = parts[2:] if parts[0] == "api" else parts[3:]
        namespace = ""
        if len(parts) > 2 and parts[0] == "namespaces":
            namespace, parts = parts[1], parts[2:]
        resource, name, subresource = (*parts, "", "", "")[:3]
        return cls(resource, namespace, name, subresource)


@dataclass(slots=True)
class Write:
    """One write of the operator, and the status of the API server's answer, 0 if the write was never sent."""

    method: str
    path: str
    target: Target
    label: str
    """The same for the same write in every run of a scenario."""
    status: int = 0

    @property
    def accepted(self) -> bool:
        return 200 <= self.status < 300

    def __str__(self) -> str:
        return f"{self.method} {self.path.partition('?')[0]} -> {self.status or 'not sent'}"


def read_write(method: str, path: str, body: bytes, namespace: str) -> Write:
    """The write that a request is; `namespace` is that of the case, and differs from run to run."""
    target = Target.of(path)
    name = target.name
    if method == "POST" and not target.subresource:
        sent = orjson.loads(body)
        name = (
            sent.get("reason") or sent["metadata"]["name"] if target.resource == "events" else sent["metadata"]["name"]
        )
    kind = f"{target.resource}/{target.subresource}" if target.subresource else target.resource
    found = Target(target.resource, target.namespace, name, target.subresource)
    return Write(method, path, found, f"{method} {kind} {name.replace(namespace, 'NAMESPACE')}")

"""Faults between the operator and its API servers, for each of several machines on its own: a crash, a lost answer.

Every request of this process passes through here; only writes on behalf of the machines of a test are counted.
"""

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import orjson
import pytest

from crds import names
from service.kube.errors import KubeError, Unavailable
from service.kube.transport import Request, Transport

Raw = dict[str, Any]
Enabled = Callable[[str], Awaitable[bool]]
CASE = re.compile(r"case-\d\d")
WRITES = ("POST", "PATCH", "PUT", "DELETE")


class Crashed(KubeError):
    """For this machine the process is dead: whatever it still tries, nothing is sent."""


class Fault(StrEnum):
    """What becomes of a write."""

    CRASH_BEFORE = "the process dies before it is sent"
    REFUSED = "it fails"
    ANSWER_LOST = "it is carried out, but the answer is lost"


@dataclass
class Faults:
    """Each machine `case-NN` meets its fault at its NN-th write, once; after a crash it can write no more."""

    fault: Fault
    enabled: Enabled
    """Whether the schedule of a machine is enabled, as stored."""
    armed: bool = False
    crashed: set[str] = field(default_factory=set)
    writes: dict[str, list[str]] = field(default_factory=dict)
    disabled_too_late: list[str] = field(default_factory=list)

    def install(self, patch: pytest.MonkeyPatch) -> None:
        original = Transport.call

        async def call(transport: Transport, request: Request) -> bytes:
            case = self._case(request)
            if case is None:
                return await original(transport, request)
            lost = self._meet(case, request)
            await self._check_order(case, request)
            answer = await original(transport, request)
            if lost:
                raise Unavailable("the answer was lost")
            return answer

        patch.setattr(Transport, "call", call)

    def _case(self, request: Request) -> str | None:
        if not self.armed or request.method not in WRITES or request.resource == "events":
            return None
        if f"fieldManager={names.FIELD_MANAGER}" not in request.path and request.method == "PATCH":
            return None  # the agent's, or the test's own
        found = CASE.search(request.path)
        return found.group() if found else None

    def _meet(self, case: str, request: Request) -> bool:
        if case in self.crashed:
            raise Crashed("dead")
        made = self.writes.setdefault(case, [])
        made.append(f"{request.verb} {request.resource}")
        if len(made) != int(case[-2:]):
            return False
        match self.fault:
            case Fault.CRASH_BEFORE:
                self.crashed.add(case)
                made.pop()
                raise Crashed("dead")
            case Fault.REFUSED:
                raise Unavailable("refused by the test")
            case Fault.ANSWER_LOST:
                return True

    async def _check_order(self, case: str, request: Request) -> None:
        if clears_request(request) and await self.enabled(case):
            self.disabled_too_late.append(case)


def clears_request(request: Request) -> bool:
    """Whether a write takes the agent's request off a Node."""
    if request.resource != "nodes" or request.body is None:
        return False
    annotations = (orjson.loads(request.body).get("metadata") or {}).get("annotations") or {}
    return annotations.get(names.ANNOTATION_RECLAIM_REQUESTED, "") is None

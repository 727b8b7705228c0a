"""Every write names the object, or the version of it, that it is meant for."""

from typing import Any

import orjson
import pytest

from crds import names
from local.provider.kinds import MACHINES
from service.kube.transport import Request, Transport
from tests.e2e.manifests import MONDAY_NINE, machine
from tests.e2e.operator import Operator
from tests.e2e.scenes import back_in_service, shutting_down
from tests.e2e.workload import WorkloadSide

TAINT = {"key": "example.com/spot", "effect": "NoSchedule"}
SEEN = {
    "patch scheduledmachines",
    "replace scheduledmachines",
    "patch machines",
    "delete machines",
    "patch nodes",
    "create_eviction pods",
}
"""The writes of such a life, besides creations."""


def record(op: Operator, workload: WorkloadSide, patch: pytest.MonkeyPatch) -> list[Request]:
    """All that the operator writes from now on, but for new objects and Events."""
    original, written = Transport.call, list[Request]()
    ours = (op.client.transport, workload.client.transport)

    async def call(transport: Transport, request: Request) -> bytes:
        if transport not in ours and request.method != "GET" and request.verb != "create":
            written.append(request)
        return await original(transport, request)

    patch.setattr(Transport, "call", call)
    return written


def meant_for(request: Request) -> dict[str, Any]:
    """The uid and resourceVersion that metadata or preconditions carry."""
    body = orjson.loads(request.body or b"{}")
    fields = {**body.get("metadata", {}), **body.get("preconditions", {})}
    fields |= body.get("deleteOptions", {}).get("preconditions", {})
    return {name: fields[name] for name in ("uid", "resourceVersion") if fields.get(name)}


def described(request: Request) -> str:
    return f"{request.verb} {request.resource}"


async def test_every_write_is_meant_for_what_was_seen(
    op: Operator, workload: WorkloadSide, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = record(op, workload, monkeypatch)
    await op.apply(machine(nodeTaints=[TAINT]))
    node = await shutting_down(op, workload)
    op.clock.move_to(MONDAY_NINE)
    await back_in_service(op, workload, node)
    await op.change(MACHINES, "worker-machine", {"metadata": {"labels": {names.LABEL_MANAGED_BY: "another-client"}}})
    await op.until_object(
        MACHINES, "worker-machine", lambda raw: names.MANAGED_BY in raw["metadata"]["labels"].values()
    )
    await op.delete("worker")
    await op.phase("worker", "ShuttingDown")
    await workload.vacate(node)
    await op.gone("worker")

    assert {described(request) for request in written} == SEEN
    assert [described(request) for request in written if not meant_for(request)] == []

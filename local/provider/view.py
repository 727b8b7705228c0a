"""What the provider has seen of the management cluster, and how it writes there."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from crds.names import ANNOTATION_PAUSED, LABEL_CLUSTER_NAME
from local.provider.kinds import CLUSTERS, MACHINES
from local.provider.simulate import SimulatedFailure, Simulation
from service.kube.client import Client
from service.kube.decode import Object
from service.kube.resource import Resource
from service.runtime.key import Key

FIELD_MANAGER = "5spot-simulated-provider"
# API servers cut the time of creation to whole seconds: a delay from there would be up to one too short.
CUT_OFF = timedelta(seconds=1)

Look = Callable[[Resource, Key], Object | None]
Absorb = Callable[[Resource, Object], None]


@dataclass(frozen=True, slots=True)
class Management:
    """The management cluster: cached reads, and writes whose answers the cache takes in."""

    client: Client
    look: Look
    absorb: Absorb
    now: Callable[[], datetime]

    def machine_of(self, resource: Object) -> Object | None:
        """The Machine that Cluster API has put on the object as owner; before that a provider must not act."""
        meta = resource["metadata"]
        owners = [o["name"] for o in meta.get("ownerReferences", ()) if o["kind"] == MACHINES.kind]
        return self.look(MACHINES, Key(meta["namespace"], owners[0])) if owners else None

    def paused(self, resource: Object) -> bool:
        """Whether the object or its Cluster is paused: then a provider changes nothing."""
        meta = resource["metadata"]
        if ANNOTATION_PAUSED in (meta.get("annotations") or {}):
            return True
        name = (meta.get("labels") or {}).get(LABEL_CLUSTER_NAME)
        cluster = self.look(CLUSTERS, Key(meta["namespace"], name)) if name else None
        return bool(cluster and cluster["spec"].get("paused"))

    def seconds_left(self, resource: Object, simulation: Simulation) -> float:
        """How long the object has still to wait before anything shows."""
        created = datetime.fromisoformat(resource["metadata"]["creationTimestamp"])
        return simulation.seconds_left(created + CUT_OFF, self.now()) if simulation.delay_seconds else 0.0

    async def patch(
        self, kind: Resource, resource: Object, body: dict[str, Any], *, subresource: str | None = None
    ) -> None:
        """Changes part of an object."""
        meta = resource["metadata"]
        answer = await self.client.patch(
            kind,
            meta["name"],
            body,
            namespace=meta["namespace"],
            subresource=subresource,
            field_manager=FIELD_MANAGER,
        )
        self.absorb(kind, answer)

    async def report(self, kind: Resource, resource: Object, status: dict[str, Any]) -> None:
        """Changes the status, unless it says that already."""
        reported = resource.get("status", {})
        if not all(_same(reported.get(key), value) for key, value in status.items()):
            await self.patch(kind, resource, {"status": status}, subresource="status")

    def failed_status(self, simulation: Simulation) -> dict[str, Any] | None:
        """The status of an object that will not become ready, or None if it can."""
        match simulation.failure:
            case SimulatedFailure.INVALID_CONFIGURATION:
                failure = {"failureReason": "InvalidConfiguration", "failureMessage": simulation.complaint}
                return {**failure, **self._not_ready("InvalidConfiguration", simulation.complaint)}
            case SimulatedFailure.NEVER_READY:
                return self._not_ready("NeverReady", "spec.simulate.failure keeps this from becoming ready")
            case _:
                return None

    def _not_ready(self, reason: str, message: str) -> dict[str, Any]:
        condition = {"type": "Ready", "status": "False", "severity": "Error", "reason": reason, "message": message}
        return {
            "ready": False,
            "conditions": [{**condition, "lastTransitionTime": self.now().isoformat("T", "seconds")}],
        }


def _same(old: Any, new: Any) -> bool:
    return bool(_timeless(old) == _timeless(new))


def _timeless(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    return [{k: v for k, v in entry.items() if k != "lastTransitionTime"} for entry in value if isinstance(entry, dict)]

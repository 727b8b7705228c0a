"""The ScheduledMachine of one pass: as it was read, and as our own writes change it."""

from dataclasses import dataclass
from typing import Any

from crds.scheduledmachine import Metadata
from crds.status import ScheduledMachineStatus
from service.clock import Clock
from service.decide.intent import Intent
from service.decide.world import Identity
from service.kube.resource import SCHEDULED_MACHINES
from service.objects import views
from service.runtime.key import Key

Raw = dict[str, Any]


@dataclass(slots=True)
class Subject:
    """One ScheduledMachine; `raw` is replaced by the answer to each write."""

    key: Key
    raw: Raw
    intent: Intent
    me: Identity
    status: ScheduledMachineStatus

    @classmethod
    def read(cls, key: Key, raw: Raw, intent: Intent, clock: Clock) -> "Subject":
        """From an object as stored."""
        me = identity_of(raw, clock)
        return cls(key=key, raw=raw, intent=intent, me=me, status=ScheduledMachineStatus.read(raw.get("status")))

    @property
    def cluster(self) -> Key | None:
        """The workload cluster that the machine joins."""
        name = self.intent.cluster_name
        return Key(self.key.namespace, name) if name else None

    @property
    def resource_version(self) -> str:
        """The version that our next write expects."""
        version: str = self.raw["metadata"]["resourceVersion"]
        return version

    def with_status(self, changes: Raw) -> Raw:
        """The object to store, with these fields of its status; None removes a field."""
        fields = {**(self.raw.get("status") or {}), **changes}
        status = {name: value for name, value in fields.items() if value is not None}
        return {**SCHEDULED_MACHINES.envelope(), **self.raw, "status": status}

    @property
    def finalizers(self) -> list[str]:
        """All finalizers, ours and those of others."""
        return list(self.raw["metadata"].get("finalizers") or ())


def identity_of(raw: Raw, clock: Clock) -> Identity:
    """The ScheduledMachine's own metadata, from an object as stored."""
    return views.identity(Metadata.read(raw["metadata"]), clock)

"""What `spec.simulate` of a K0sWorkerConfig or RemoteMachine asks for.

```yaml
spec:
  address: 192.168.1.100
  simulate:
    delaySeconds: 5        # ready only this long after its creation
    failure: NeverReady    # or InvalidConfiguration, or NodeNeverJoins
    machineID: 0123abcd    # of a RemoteMachine: what its Node reports as status.nodeInfo.machineID
```
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

KEYS = ("delaySeconds", "failure", "machineID")


class SimulatedFailure(StrEnum):
    """How a host or its configuration can go wrong."""

    INVALID_CONFIGURATION = "InvalidConfiguration"
    NEVER_READY = "NeverReady"
    NODE_NEVER_JOINS = "NodeNeverJoins"


@dataclass(frozen=True, slots=True)
class Simulation:
    """The simulated delay and failure; `complaint` names what is not valid."""

    delay_seconds: float = 0.0
    failure: SimulatedFailure | None = None
    machine_id: str = ""
    complaint: str = ""

    @classmethod
    def of(cls, resource: Mapping[str, Any]) -> "Simulation":
        """Reads it from an object; an unknown value counts as an invalid configuration."""
        asked = resource.get("spec", {}).get("simulate") or {}
        complaint = _complaint(asked)
        if complaint:
            return cls(failure=SimulatedFailure.INVALID_CONFIGURATION, complaint=complaint)
        failure = asked.get("failure")
        return cls(
            delay_seconds=float(asked.get("delaySeconds", 0)),
            failure=SimulatedFailure(failure) if failure else None,
            machine_id=str(asked.get("machineID", "")),
            complaint="spec.simulate.failure asks for an invalid configuration",
        )

    def seconds_left(self, created: datetime, now: datetime) -> float:
        """How long an object created then has still to wait."""
        return max(0.0, self.delay_seconds - (now - created).total_seconds())


def _complaint(asked: object) -> str:
    if not isinstance(asked, Mapping):
        return "spec.simulate must be an object"
    if unknown := sorted(set(asked) - set(KEYS)):
        return f"spec.simulate.{unknown[0]} is unknown; there are {', '.join(KEYS)}"
    delay = asked.get("delaySeconds", 0)
    if isinstance(delay, bool) or not isinstance(delay, int | float) or delay < 0:
        return f"spec.simulate.delaySeconds must be a number of seconds, not {delay!r}"
    failure = asked.get("failure")
    if failure and failure not in list(SimulatedFailure):
        return f"spec.simulate.failure {failure!r} is unknown; there are {', '.join(SimulatedFailure)}"
    return ""

"""What the parts of one process have in common; made by `service.app`."""

import asyncio
from dataclasses import dataclass, field

from service.clock import Clock
from service.kube.client import Client
from service.settings import Settings


@dataclass(slots=True)
class Shared:
    """Settings, the client of the management cluster, the schedule's clock, and how the process stops."""

    settings: Settings
    client: Client
    clock: Clock
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    """Set by the first signal: take no new work, finish running work, return."""
    abort: asyncio.Event = field(default_factory=asyncio.Event)
    """Set by a second signal, or by Ctrl-C: wait for nothing."""
    cluster_scoped: set[tuple[str, str]] = field(default_factory=set)
    """Group and kind of cluster-scoped provider kinds: the controller finds them, the webhooks refuse them."""

"""A performer with everything that it acts through, as `service.controller.wiring` puts it together."""

from dataclasses import dataclass, field

from crds.providers import DEFAULT_POLICY
from service.act.children import Children
from service.act.perform import Performer
from service.act.writer import WriteListener, Writer
from service.clock import Clock
from service.kube.client import Client
from service.kube.discovery import Discovery
from service.observe.observer import Observer
from service.observe.watches import Watches
from service.runtime.key import Key
from service.runtime.own_writes import OwnWrites
from service.runtime.slots import Slots
from service.workload.clusters import WorkloadClusters


@dataclass
class Acting:
    client: Client
    clock: Clock
    workloads: WorkloadClusters
    stale: bool = False
    """Whether the performer takes its view of a ScheduledMachine for one that may be out of date."""
    watches: Watches = field(init=False)
    observer: Observer = field(init=False)
    writer: Writer = field(init=False)
    performer: Performer = field(init=False)

    def __post_init__(self) -> None:
        self.watches = Watches(self.client, Discovery(self.client))
        self.observer = Observer(self.client, self.watches, self.workloads, DEFAULT_POLICY, self.clock)
        listener = WriteListener(
            scheduled_machine=lambda _key: None,
            node=lambda _cluster, _node, _by: None,
            agent_config=self.observer.workload.agents.absorb_config,
            eviction_refused=self.observer.workload.drains.eviction_refused,
        )
        own_writes = OwnWrites(lambda _key: None)
        self.writer = Writer(self.client, self.watches, self.workloads, own_writes, listener)
        children = Children(self.client, self.writer, Slots(16, lambda _key: None))
        self.performer = Performer(self.writer, children, self.clock, self._may_be_stale)

    def _may_be_stale(self, _key: Key) -> bool:
        return self.stale

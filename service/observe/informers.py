"""Makes and runs the informers of the management cluster, and connects them with what listens to their events."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from service.kube.client import Client
from service.kube.resource import Resource
from service.runtime.cache import Change
from service.runtime.informer import Informer
from service.runtime.tasks import start

Listener = Callable[[Change], None]


def _ignore(*_: object) -> None:
    """For a listener that is not needed."""


@dataclass(frozen=True, slots=True)
class WatchListener:
    """What is called when a watched object changes, or a watch fails."""

    scheduled: Listener = _ignore
    cluster: Listener = _ignore
    child: Listener = _ignore
    drain_rule: Listener = _ignore
    restart: Callable[[str, str], None] = _ignore
    """With the kind whose watch broke, and why."""
    defect: Callable[[str, str], None] = _ignore
    """With the kind of an object that cannot be read, and what is wrong with it."""
    ended: Callable[[Resource], None] = _ignore
    """With a provider's kind that is not watched any more."""


class InformerFactory:
    """Makes informers that report to `listener`, and runs them in `group`; both are set before the first one runs."""

    def __init__(self, client: Client, namespaces: tuple[str, ...]) -> None:
        self._client = client
        self._namespaces = namespaces
        self.listener = WatchListener()
        self.group: asyncio.TaskGroup | None = None

    def make(self, resource: Resource, changed: Listener, **options: Any) -> Informer:
        """An informer that calls `changed`; it does not run yet."""
        informer = Informer(self._client, resource, namespaces=self._namespaces, **options)
        informer.listen(changed)
        informer.on_restart(lambda reason: self.listener.restart(resource.plural, reason))
        informer.on_defect(lambda defect: self.listener.defect(resource.plural, defect))
        return informer

    def run(self, informer: Informer) -> asyncio.Task[None]:
        """Runs an informer until its task is cancelled."""
        if self.group is None:
            raise RuntimeError("start() comes first")
        return start(self.group, informer.run(), name=f"watch {informer.resource.plural}")

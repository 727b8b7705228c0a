"""Finds out which field managers changed a provider's object that differs from what we sent.

Caches leave managedFields out, so this costs one request, and only for an object that differs; the answer holds until
the object's spec changes.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from crds import names
from crds.scheduledmachine import ProviderSpec
from service.decide import manifests
from service.decide.drift import Path, SpecChange, changes_by_others, differences
from service.decide.world import Child, Role, World
from service.kube.client import Client
from service.kube.errors import KubeError, NotFound
from service.kube.resource import Resource
from service.objects.subject import Subject

TIMEOUT_SECONDS: Final = 2.0
"""Only a condition depends on the answer: a provider that hangs must not delay the rest of the pass."""
_MOST_ANSWERS: Final = 10_000

Resolve = Callable[[str, str], Awaitable[Resource]]


@dataclass(frozen=True, slots=True)
class _Answer:
    paths: tuple[Path, ...]
    generation: int
    resource_version: str
    changes: tuple[SpecChange, ...]

    def holds_for(self, child: Child, paths: tuple[Path, ...]) -> bool:
        """No drift holds until the spec is written again; drift is checked again after every write to the object."""
        if self.changes or not self.generation:
            return self.resource_version == child.resource_version and self.paths == paths
        return self.generation == child.generation and self.paths == paths


class DriftObserver:
    """Observes which of our provider objects other field managers changed."""

    def __init__(self, client: Client, resolve: Resolve) -> None:
        self._client = client
        self._resolve = resolve
        self._answers: dict[str, _Answer] = {}

    async def observe(self, subject: Subject, world: World) -> tuple[SpecChange, ...] | None:
        """What others changed in the objects of a Machine that is not being removed; None if that is not known."""
        spec = subject.intent.spec
        machine = world.our_machine
        status = world.status
        if spec is None or machine is None or machine.deleting:
            return ()
        if subject.intent.kill_switch or world.me.deleting_since or status.reclaim or status.shutdown_started_at:
            return ()
        if machine.child.annotations.get(names.ANNOTATION_SPEC_HASH) != manifests.spec_hash(spec):
            return ()
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                bootstrap = await self._changes(world.child(Role.BOOTSTRAP), spec.bootstrap_spec)
                return (*bootstrap, *await self._changes(world.child(Role.INFRASTRUCTURE), spec.infrastructure_spec))
        except (KubeError, TimeoutError):
            return None

    async def _changes(self, child: Child | None, provider: ProviderSpec) -> tuple[SpecChange, ...]:
        if child is None or not child.ours:
            return ()
        paths = differences(provider.spec, child.spec)
        known = self._answers.get(child.uid)
        if not paths:
            self._answers.pop(child.uid, None)
            return ()
        if known is None or not known.holds_for(child, paths):
            known = await self._read(child, provider)
        return known.changes

    async def _read(self, child: Child, provider: ProviderSpec) -> _Answer:
        resource = await self._resolve(child.api_version, child.kind)
        raw = await self._client.get(resource, child.name, namespace=child.namespace)
        metadata = raw["metadata"]
        if metadata["uid"] != child.uid:
            raise NotFound(f"another {child.kind} has the name {child.name} now")
        paths = differences(provider.spec, raw.get("spec") or {})
        changes = changes_by_others(provider.spec, raw)
        answer = _Answer(paths, metadata.get("generation") or 0, metadata["resourceVersion"], changes)
        if len(self._answers) >= _MOST_ANSWERS:
            self._answers.clear()
        self._answers[child.uid] = answer
        return answer

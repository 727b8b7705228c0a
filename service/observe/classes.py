"""Watches ScheduledMachineClasses and the labels of namespaces, for the controller and for the webhooks.

A class is read once, however many ScheduledMachines name it.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Any, Final, NamedTuple

import structlog

from crds import names
from crds.cel import PROVIDER_SPECS
from crds.classes import ClassProblem, FoundClass, Tenancy, UnusableClass, class_for, class_not_found
from crds.classrules import read_class
from crds.partial import readable_timeout
from crds.providers import ProviderPolicy
from service.decide.manifests import digest
from service.kube.client import Client
from service.kube.errors import NotFound, Rejected, Unavailable
from service.kube.resource import NAMESPACES, SCHEDULED_MACHINE_CLASSES, Resource
from service.runtime.cache import Change, EventType, Object
from service.runtime.informer import Informer
from service.runtime.key import Key

LISTED_SECONDS: Final = 1.0
LEFT_MAX: Final = 100

log = structlog.get_logger(__name__)


def _ignore(_name: str) -> None:
    """For a reader that asks again each time."""


class _Timeouts(NamedTuple):
    grace: timedelta | None = None
    drain: timedelta | None = None


class ClassStore:
    """The classes by name, and the labels of namespaces."""

    def __init__(self, client: Client, policy: ProviderPolicy) -> None:
        self._policy = policy
        self._classes = Informer(client, SCHEDULED_MACHINE_CLASSES)
        self._namespaces = Informer(client, NAMESPACES, metadata_only=True, slim=_labels_only)
        self._classes.listen(self._class_changed)
        self._namespaces.listen(lambda change: self._on_namespace(change.key.name))
        self._read: dict[str, FoundClass] = {}
        self._outlines: dict[str, Object] = {}
        self._specs: dict[str, str] = {}
        """A digest of each class's spec: what else changes in a class concerns no user."""
        self._left: dict[str, _Timeouts] = {}
        """The timeouts of the classes that were deleted last: machines of theirs may be draining."""
        self._on_class: Callable[[str], None] = _ignore
        self._on_namespace: Callable[[str], None] = _ignore

    def subscribe(self, class_changed: Callable[[str], None], namespace_changed: Callable[[str], None]) -> None:
        """Calls these with the name of each class whose spec changed, and of each namespace whose labels changed."""
        self._on_class = class_changed
        self._on_namespace = namespace_changed

    async def run(self) -> None:
        """Watches until cancelled."""
        async with asyncio.TaskGroup() as group:
            for informer in (self._classes, self._namespaces):
                group.create_task(informer.run(), name=f"watch {informer.resource.plural}")

    @property
    def pending(self) -> bool:
        """Whether there may be classes or namespaces that are not listed yet, as after a start.

        What the operator may not list, or what the API server does not serve, is not waited for.
        """
        return any(map(_is_pending, (self._classes, self._namespaces)))

    async def listed(self) -> None:
        """Waits until classes and namespaces are known."""
        while self.pending:
            for informer in filter(_is_pending, (self._classes, self._namespaces)):
                await _sync(informer)

    # What others ask

    def find(self, name: str) -> FoundClass:
        """The class of a name, for any namespace, or why it cannot be used."""
        if name not in self._read:
            found = self._look(name)
            if Key("", name) not in self._classes:
                return found  # there is none, or none that can be seen: that is not worth remembering
            self._read[name] = found
        return self._read[name]

    def _look(self, name: str) -> FoundClass:
        if _is_pending(self._classes):
            return UnusableClass(ClassProblem.UNKNOWN, f"the controller has not read {names.CLASS_KIND} {name} yet")
        if not self._classes.is_synced and isinstance(self._classes.error, Rejected):
            problem = f"{names.CLASS_KIND} {name} cannot be read: {self._classes.error.message}"
            return UnusableClass(ClassProblem.INVALID, problem)
        raw = self.manifest(name)
        why = self._classes.unreadable(Key("", name))
        if why is not None:
            return UnusableClass(ClassProblem.INVALID, f"{names.CLASS_KIND} {name} cannot be read: {why}")
        if raw is None:
            return class_not_found(name, *self._left.get(name, _Timeouts()))
        return read_class(raw, self._policy)

    def manifest(self, name: str) -> Object | None:
        """A class as it is stored."""
        raw = self._classes.get(Key("", name))
        return {**SCHEDULED_MACHINE_CLASSES.envelope(), **raw} if raw is not None else None

    def names(self) -> Iterable[str]:
        """The classes that there are."""
        return [key.name for key in self._classes]

    def outline(self, name: str) -> Object | None:
        """The priority and the kinds of a stored class; kept, as each of its machines asks when it is listed."""
        if name not in self._outlines:
            raw = self.manifest(name)
            if raw is None:
                return None
            self._outlines[name] = _outlined(raw)
        return self._outlines[name]

    def known_labels(self, namespace: str) -> Mapping[str, str] | None:
        """The labels of a namespace as they were last seen; None if it has not been seen, whatever the reason."""
        raw = self._namespaces.get(Key("", namespace))
        return _labels(raw) if raw is not None else None

    def labels(self, namespace: str) -> Mapping[str, str] | None:
        """The labels of a namespace; none if namespaces cannot be listed, None if they are not listed yet."""
        known = self.known_labels(namespace)
        refused = not self._namespaces.is_synced and isinstance(self._namespaces.error, Rejected)
        return {} if known is None and refused else known

    def tenancy(self, namespace: str) -> Tenancy:
        """What ScheduledMachines of a namespace may be made of; the label that demands a class is admission's."""
        return Tenancy(find=lambda name: self._found_for(name, namespace))

    def _found_for(self, name: str, namespace: str) -> FoundClass:
        labels = self.labels(namespace)
        if labels is None:
            return UnusableClass(ClassProblem.UNKNOWN, f"the controller has not read the labels of {namespace} yet")
        return class_for(self.find(name), namespace, labels)

    def uses_kind(self, resource: Resource) -> bool:
        """Whether a class makes objects of a kind, in any version."""
        wanted = (resource.group, resource.kind)
        found = (each for each in self._read.values() if not isinstance(each, UnusableClass))
        specs = (spec for each in found for spec in (each.spec.bootstrap_spec, each.spec.infrastructure_spec))
        return any((spec.group, spec.kind) == wanted for spec in specs)

    def _class_changed(self, change: Change) -> None:
        name = change.key.name
        self._read.pop(name, None)
        self._outlines.pop(name, None)
        if change.type is EventType.DELETED:
            self._specs.pop(name, None)
            self._remember(name, change.object.get("spec"))
            self._on_class(name)
            return
        self._left.pop(name, None)
        spec = digest(change.object.get("spec"))
        if self._specs.get(name) != spec:
            self._specs[name] = spec
            self._on_class(name)

    def _remember(self, name: str, spec: Any) -> None:
        given = spec if isinstance(spec, dict) else {}
        if len(self._left) >= LEFT_MAX:
            del self._left[next(iter(self._left))]
        found = (readable_timeout(given.get(field)) for field in ("gracefulShutdownTimeout", "nodeDrainTimeout"))
        self._left[name] = _Timeouts(*found)


def _is_pending(informer: Informer) -> bool:
    return not informer.is_synced and not isinstance(informer.error, NotFound | Rejected)


async def _sync(informer: Informer) -> None:
    try:
        await informer.synced(within=LISTED_SECONDS)
    except Unavailable as error:
        if _is_pending(informer):
            log.warning("waiting for classes and namespaces", error=error.message)


def _outlined(raw: Object) -> Object:
    spec = raw.get("spec")
    known: dict[str, Any] = spec if isinstance(spec, dict) else {}
    kinds = {part: {**known[part], "spec": None} for part in PROVIDER_SPECS if isinstance(known.get(part), dict)}
    return {"spec": {"priority": known.get("priority"), **kinds}}


def _labels_only(raw: Object) -> Object:
    metadata = raw["metadata"]
    kept = ("name", "uid", "resourceVersion", "labels")
    return {"metadata": {name: metadata[name] for name in kept if name in metadata}}


def _labels(raw: dict[str, Any]) -> Mapping[str, str]:
    labels = raw["metadata"].get("labels")
    return labels if isinstance(labels, dict) else {}

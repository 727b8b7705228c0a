"""The classes that ScheduledMachines name, from files or read with the rights of a user, as far as they are known."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from crds import names
from crds.classes import ClassProblem, FoundClass, Tenancy, UnusableClass, class_for
from crds.classrules import read_class
from crds.providers import ProviderPolicy


@dataclass(frozen=True, slots=True)
class Tenancies:
    """Classes by name, and the labels of namespaces, as far as both are at hand."""

    classes: Mapping[str, FoundClass] = field(default_factory=dict)
    labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    unread: Mapping[str, str] = field(default_factory=dict)
    """By name, why a class cannot be read."""

    @classmethod
    def of(cls, documents: Iterable[Any], policy: ProviderPolicy) -> "Tenancies":
        """The classes and Namespaces among manifests."""
        classes: dict[str, FoundClass] = {}
        labels: dict[str, Mapping[str, str]] = {}
        for each in documents:
            name = _name(each)
            if name is not None and each.get("kind") == names.CLASS_KIND:
                classes[name] = read_class(each, policy)
            if name is not None and (each.get("apiVersion"), each.get("kind")) == ("v1", "Namespace"):
                given = each["metadata"].get("labels")
                labels[name] = given if isinstance(given, dict) else {}
        return cls(classes, labels)

    def of_namespace(self, namespace: str) -> Tenancy:
        """What ScheduledMachines of a namespace may be; without its manifest, its labels are not judged."""
        labels = self.labels.get(namespace)
        only = labels is not None and labels.get(names.LABEL_TENANCY) == names.TENANCY_CLASSES
        return Tenancy(find=lambda name: self._find(name, namespace), only_classes=only)

    def _find(self, name: str, namespace: str) -> FoundClass:
        found = self.classes.get(name)
        if found is None:
            missing = f"{names.CLASS_KIND} {name} is not in these files; give its file too"
            return UnusableClass(ClassProblem.UNKNOWN, self.unread.get(name, missing))
        labels = self.labels.get(namespace)
        return found if labels is None else class_for(found, namespace, labels)

    def tenancy(self, namespace: str) -> Tenancy:
        """As a source of classes for `read_intent`."""
        return self.of_namespace(namespace)


def _name(document: Any) -> str | None:
    metadata = document.get("metadata") if isinstance(document, dict) else None
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return name if isinstance(name, str) else None


NO_TENANCIES: Final = Tenancies()

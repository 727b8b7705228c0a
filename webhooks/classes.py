"""Admission of classes: which of them a namespace may use, and a warning when one in use is deleted.

Classes and namespaces come from memory. The API server is asked for a namespace that is too new to be there.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from crds import names
from crds.classes import ClassProblem as Problem
from crds.classes import FoundClass, Tenancy, UnusableClass, class_for
from crds.violations import printable
from webhooks.review import Review

Labels = Mapping[str, str]
NAMED_MAX: Final = 3


class NamespaceUnknownError(Exception):
    """The API server did not say what labels a namespace has; the message says why."""


def _no_class(name: str) -> FoundClass:
    return UnusableClass(Problem.UNKNOWN, f"{names.CLASS_KIND} {name} is not known here")


def _labels_unknown(_namespace: str) -> Labels | None:
    return {}


async def _no_namespace(_namespace: str) -> Labels:
    return {}


def _users_unknown(_name: str) -> Sequence[str] | None:
    return None


@dataclass(frozen=True, slots=True)
class ClassLookups:
    """What is known of classes and namespaces."""

    find: Callable[[str], FoundClass] = _no_class
    labels: Callable[[str], Labels | None] = _labels_unknown
    """The labels of a namespace, from memory; None if it is not there."""
    ask: Callable[[str], Awaitable[Labels]] = _no_namespace
    """Likewise from the API server; raises `NamespaceUnknownError`."""
    users: Callable[[str], Sequence[str] | None] = _users_unknown
    """The ScheduledMachines that name a class, as `namespace/name`; None if that is not known."""

    def tenancy(self, namespace: str, labels: Labels) -> Tenancy:
        """What ScheduledMachines of a namespace with these labels may be."""
        return Tenancy(
            find=lambda name: class_for(self.find(name), namespace, labels),
            only_classes=labels.get(names.LABEL_TENANCY) == names.TENANCY_CLASSES,
        )


def in_use(review: Review, lookups: ClassLookups) -> Iterator[str]:
    """A warning for a class that is to be deleted while ScheduledMachines name it."""
    found = lookups.users(review.name)
    if not found:
        return
    named = ", ".join(printable(each, 127) for each in sorted(found)[:NAMED_MAX])
    more = f" and {len(found) - NAMED_MAX} more" if len(found) > NAMED_MAX else ""
    yield (
        f"{names.CLASS_KIND} {printable(review.name, 63)} is used by {named}{more}; "
        "until it is there again, no machine is created for them"
    )

"""ScheduleOverrides as people see them, and those that are about one machine. Pure: made from objects as stored."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from crds.base import rfc3339
from crds.overridelife import StoredOverride, as_override
from crds.overrides import Override
from crds.reasons import ACCEPTED
from crds.scheduleoverride import OverrideStatus
from service.objects.overrides import read_override

Raw = dict[str, Any]


class Standing(StrEnum):
    """What an override does at a moment."""

    IN_FORCE = "in force"
    TO_COME = "to come"
    OVER = "over"
    NOT_ACCEPTED = "not accepted"


@dataclass(frozen=True, slots=True)
class ListedOverride:
    """One override, as stored."""

    namespace: str
    uid: str
    stored: StoredOverride
    status: OverrideStatus
    counts: Override | None
    """As the decision takes it; None if the controller did not accept it, or it cannot be read."""

    @classmethod
    def read(cls, raw: Raw, now: datetime) -> "ListedOverride":
        """From an object as stored, which may be invalid. One that no controller has seen yet counts as accepted."""
        stored, status = read_override(raw, now), OverrideStatus.read(raw.get("status"))
        metadata = raw["metadata"]
        counts = None if _refused(stored, status) else as_override(stored, status.accepted_at or stored.created)
        return cls(metadata.get("namespace", ""), metadata.get("uid", ""), stored, status, counts)

    @property
    def name(self) -> str:
        """Its name."""
        return self.stored.name

    @property
    def problem(self) -> str:
        """Why it does not count; empty if it does."""
        if self.counts:
            return ""
        accepted = self.status.condition(ACCEPTED)
        if self.stored.problem or accepted is None or accepted.status == "True":
            return self.stored.problem
        return accepted.message or accepted.reason

    def standing(self, now: datetime) -> Standing:
        """What it does at a moment."""
        if self.counts is None:
            return Standing.NOT_ACCEPTED
        if now < self.counts.begins:
            return Standing.TO_COME
        return Standing.IN_FORCE if now < self.counts.ends else Standing.OVER

    def concerns(self, name: str, labels: Mapping[str, str]) -> bool:
        """Whether it names or selects a machine of its namespace."""
        spec = self.stored.spec
        if spec is None:
            return False
        return name in spec.machines or (spec.selector is not None and spec.selector.matches(labels))

    def names_only(self, name: str) -> bool:
        """Whether it is about this machine and no other."""
        spec = self.stored.spec
        return spec is not None and set(spec.machines) == {name}

    @property
    def target(self) -> str:
        """The machines that it is about, in a few words."""
        spec = self.stored.spec
        if spec is None:
            return ""
        return ", ".join(spec.machines) if spec.selector is None else _selection(spec.selector.to_json())

    def to_json(self, now: datetime) -> Raw:
        """For programs; absent values are left out."""
        spec = self.stored.spec
        given = spec.to_json() if spec else {}
        reported = [each.to_json() for each in self.status.conditions]
        found = {
            "namespace": self.namespace,
            "name": self.name,
            **given,
            "standing": self.standing(now).value,
            "problem": self.problem,
            "createdAt": rfc3339(self.stored.created),
            "conditions": reported,
        }
        return {name: value for name, value in found.items() if value not in (None, "", [])}


@dataclass(frozen=True, slots=True)
class ListedOverrides:
    """An OverrideSource: the overrides that were read from a namespace."""

    found: tuple[ListedOverride, ...] = ()

    @classmethod
    def read(cls, listed: Iterable[Raw], now: datetime) -> "ListedOverrides":
        """From objects as stored."""
        return cls(tuple(ListedOverride.read(each, now) for each in listed))

    def about(self, namespace: str, name: str, labels: Mapping[str, str]) -> tuple[Override, ...]:
        """Those that count and name or select a machine."""
        concerning = (each.counts for each in self.concerning(namespace, name, labels))
        return tuple(each for each in concerning if each is not None)

    def concerning(self, namespace: str, name: str, labels: Mapping[str, str]) -> tuple[ListedOverride, ...]:
        """The same as stored, those that do not count too."""
        return tuple(each for each in self.found if each.namespace == namespace and each.concerns(name, labels))


def _refused(stored: StoredOverride, status: OverrideStatus) -> bool:
    """Whether the controller refused this generation, or it is being deleted."""
    accepted = status.condition(ACCEPTED)
    current = status.observed_generation == stored.generation
    return stored.deleting or (accepted is not None and accepted.status != "True" and current)


def _selection(selector: Raw) -> str:
    labels = [f"{key}={value}" for key, value in (selector.get("matchLabels") or {}).items()]
    for each in selector.get("matchExpressions") or ():
        values = f" ({', '.join(each['values'])})" if each.get("values") else ""
        labels.append(f"{each['key']} {each['operator']}{values}")
    return ", ".join(labels)

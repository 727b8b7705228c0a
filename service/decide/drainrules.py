"""Cluster API's rules for draining: the label on a pod, then the first MachineDrainRule by name that applies.

Cluster API reads the same label and the same rules when it drains a Machine that is being deleted.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, NamedTuple

from crds.invalid import InvalidValue
from service.decide.selectors import Labels, LabelSelector, read_selector

DRAIN_LABEL: Final = "cluster.x-k8s.io/drain"
MOST_REQUIREMENTS: Final = 1000
"""Requirements in all rules of a namespace: every pod is held against them, and a tenant writes them."""


class Behavior(StrEnum):
    """What happens to a pod, in Cluster API's words."""

    DRAIN = "Drain"
    SKIP = "Skip"
    WAIT_COMPLETED = "WaitCompleted"


class Treatment(NamedTuple):
    """The behavior for one pod, and its turn: pods of a lower order leave first."""

    behavior: Behavior
    order: int = 0


EVICTED: Final = Treatment(Behavior.DRAIN)
SKIPPED: Final = Treatment(Behavior.SKIP)
AWAITED: Final = Treatment(Behavior.WAIT_COMPLETED)


class UnknownNamespaceError(LookupError):
    """A rule asks for the labels of a Namespace that has not been seen."""


class Pair(NamedTuple):
    """A selector of objects and one of what they belong to; both must match."""

    own: LabelSelector
    parent: LabelSelector


@dataclass(frozen=True, slots=True)
class DrainRule:
    """A MachineDrainRule; an empty list of selectors selects everything."""

    name: str
    treatment: Treatment
    machines: tuple[Pair, ...] = ()
    pods: tuple[Pair, ...] = ()

    def applies_to_machine(self, machine: Labels, cluster: Labels) -> bool:
        """Whether it is for this Machine of this Cluster."""
        return not self.machines or any(
            pair.own.matches(machine) and pair.parent.matches(cluster) for pair in self.machines
        )

    def applies_to_pod(self, pod: Labels, namespace: Labels | None) -> bool:
        """Whether it is for this pod; `UnknownNamespaceError` if that depends on labels that are not known."""
        return not self.pods or any(_selects(pair, pod, namespace) for pair in self.pods)

    @property
    def asks_for_namespaces(self) -> bool:
        """Whether it selects pods by the labels of their Namespaces."""
        return any(pair.parent.requirements for pair in self.pods)

    @property
    def requirements(self) -> int:
        """How much there is to compare."""
        return sum(len(selector.requirements) for pair in (*self.machines, *self.pods) for selector in pair)


def _selects(pair: Pair, pod: Labels, namespace: Labels | None) -> bool:
    if not pair.own.matches(pod):
        return False
    if not pair.parent.requirements:
        return True
    if namespace is None:
        raise UnknownNamespaceError
    return pair.parent.matches(namespace)


@dataclass(frozen=True, slots=True)
class DrainRules:
    """The rules for one Machine, by name; `problem` says why none can be relied on, and then no pod is evicted."""

    rules: tuple[DrainRule, ...] = ()
    problem: str | None = None

    @property
    def ask_for_namespaces(self) -> bool:
        """Whether the labels of Namespaces are needed."""
        return any(rule.asks_for_namespaces for rule in self.rules)

    def treatment(self, pod: Labels, namespace: Labels | None) -> Treatment:
        """What happens to a pod with these labels in a Namespace with those."""
        labelled = by_label(pod)
        if labelled is not None:
            return labelled
        first = (rule.treatment for rule in self.rules if rule.applies_to_pod(pod, namespace))
        return next(first, EVICTED)


def by_label(pod: Labels) -> Treatment | None:
    """What the pod's own label asks for; another value than these two counts as no label."""
    value = pod.get(DRAIN_LABEL, "").lower()
    if value == "skip":
        return SKIPPED
    return AWAITED if value.replace("-", "", 1) == "waitcompleted" else None


def read_rules(listed: Iterable[Mapping[str, Any]], machine: Labels, cluster: Labels) -> DrainRules:
    """The rules of a namespace that are for one Machine.

    Cluster API drains nothing while one rule of the namespace cannot be read, for this Machine or another: nor do we.
    """
    rules: list[DrainRule] = []
    for raw in sorted(listed, key=lambda raw: str(raw["metadata"]["name"])):
        try:
            rules.append(read_rule(raw))
        except InvalidValue as error:
            return DrainRules(problem=f"MachineDrainRule {raw['metadata']['name']} cannot be read: {error}")
    if sum(rule.requirements for rule in rules) > MOST_REQUIREMENTS:
        return DrainRules(problem=f"the MachineDrainRules have more than {MOST_REQUIREMENTS} requirements in all")
    return DrainRules(tuple(rule for rule in rules if rule.applies_to_machine(machine, cluster)))


def read_rule(raw: Mapping[str, Any]) -> DrainRule:
    """A MachineDrainRule, the same in both contracts; `InvalidValue` if it says what Cluster API does not know."""
    spec = raw.get("spec")
    if not isinstance(spec, dict) or not isinstance(spec.get("drain"), dict):
        raise InvalidValue("spec.drain must be an object")
    return DrainRule(
        name=str(raw["metadata"]["name"]),
        treatment=_treatment(spec["drain"]),
        machines=_pairs(spec.get("machines"), "clusterSelector"),
        pods=_pairs(spec.get("pods"), "namespaceSelector"),
    )


def _treatment(drain: Mapping[str, Any]) -> Treatment:
    try:
        behavior = Behavior(str(drain.get("behavior")))
    except ValueError:
        raise InvalidValue(f"spec.drain.behavior must be one of {', '.join(Behavior)}") from None
    order = drain.get("order") or 0
    if not isinstance(order, int):
        raise InvalidValue("spec.drain.order must be a whole number")
    # Only pods that are evicted have a turn of their own.
    return Treatment(behavior, order if behavior is Behavior.DRAIN else 0)


def _pairs(listed: Any, parent: str) -> tuple[Pair, ...]:
    if listed is None:
        return ()
    if not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
        raise InvalidValue("machines and pods must be lists of objects")
    return tuple(Pair(read_selector(one.get("selector")), read_selector(one.get(parent))) for one in listed)

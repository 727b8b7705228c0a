"""Classes as ScheduledMachines see them, and the complete spec that a ScheduledMachine and its class make together.

Who holds the classes (the controller and the webhook by watches, commands from files) hands them over as a `Tenancy`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any, Final, NamedTuple

from crds.fields import ANNOTATIONS_MAX, PAIRS_MAX
from crds.parameters import Parameter, parameter_violations
from crds.scheduledmachine import MachineTemplate, ProviderSpec, ScheduledMachineSpec, WrittenSpec
from crds.scheduledmachineclass import SETTABLE, ClassProviderSpec, ClassSpec
from crds.substitution import OversizedSpecError, substituted
from crds.violations import Violation, ViolationReason

CLASS_FIELD: Final = "spec.classRef"


class ClassProblem(StrEnum):
    """Why a ScheduledMachine gets nothing from its class, as conditions name it."""

    NOT_FOUND = "ClassNotFound"
    INVALID = "ClassInvalid"
    NOT_ALLOWED = "ClassNotAllowed"
    UNKNOWN = "ClassUnknown"


@dataclass(frozen=True, slots=True)
class UnusableClass:
    """A class that is missing, broken, not for this namespace, or out of the reader's sight."""

    problem: ClassProblem
    message: str
    grace: timedelta | None = None
    """The timeouts of the class, as far as they are known: they still bound the removal of its machines."""
    drain: timedelta | None = None


class MachineClass:
    """A class that can be read; one in memory, however many use it."""

    def __init__(self, name: str, spec: ClassSpec) -> None:
        self.name = name
        self.spec = spec
        self.parameters: dict[str, Parameter] = {
            each.name: Parameter(each.name, each.json_schema, each.default) for each in spec.parameters
        }

    @property
    def grace(self) -> timedelta | None:
        """The time for the whole shutdown of machines that have none."""
        return self.spec.graceful_shutdown_timeout

    @property
    def drain(self) -> timedelta | None:
        """The time for draining the Node of machines that have none."""
        return self.spec.node_drain_timeout

    def allows(self, labels: Mapping[str, str]) -> bool:
        """Whether ScheduledMachines in a namespace with these labels may name it."""
        return self.spec.namespace_selector.matches(labels)


FoundClass = MachineClass | UnusableClass


def class_of(raw: Mapping[str, Any]) -> str | None:
    """The class that a ScheduledMachine as stored names."""
    match raw.get("spec"):
        case {"classRef": {"name": str(name)}}:
            return name
    return None


def class_not_found(name: str, grace: timedelta | None = None, drain: timedelta | None = None) -> UnusableClass:
    """There is none of that name; the timeouts are those that it had, if that is known."""
    return UnusableClass(ClassProblem.NOT_FOUND, f"ScheduledMachineClass {name} does not exist", grace, drain)


def class_for(found: FoundClass, namespace: str, labels: Mapping[str, str]) -> FoundClass:
    """The class, if it may be used in the namespace, which has these labels."""
    if isinstance(found, UnusableClass) or found.allows(labels):
        return found
    message = (
        f"ScheduledMachineClass {found.name} is not for namespace {namespace}: its namespaceSelector does not match"
    )
    return UnusableClass(ClassProblem.NOT_ALLOWED, message, found.grace, found.drain)


def _out_of_sight(name: str) -> FoundClass:
    return UnusableClass(ClassProblem.UNKNOWN, f"ScheduledMachineClass {name} is not known here")


@dataclass(frozen=True, slots=True)
class Tenancy:
    """What ScheduledMachines of one namespace may be."""

    find: Callable[[str], FoundClass] = _out_of_sight
    """The class of a name, as far as the namespace may use it."""
    only_classes: bool = False
    """Whether the namespace takes only ScheduledMachines that name a class."""


NO_TENANCY: Final = Tenancy()
"""For a reader that knows no classes and no namespaces."""


class Resolution(NamedTuple):
    """The complete spec, or what is wrong with what the ScheduledMachine gives to its class."""

    spec: ScheduledMachineSpec | None
    violations: tuple[Violation, ...] = ()


def resolve(spec: WrittenSpec, machine_class: MachineClass) -> Resolution:
    """What a spec with a class amounts to: its own fields first, then those of the class, then the built-in ones."""
    violations = parameter_violations(spec.parameters, machine_class.parameters)
    template = _template(spec.machine_template, machine_class.spec.machine_template)
    violations += _too_many(template)
    if violations:
        return Resolution(None, tuple(violations))
    try:
        return Resolution(_complete(spec, machine_class, template))
    except OversizedSpecError:
        message = "make an object of more than 1 MiB out of the class"
        return Resolution(None, (Violation.of("spec.parameters", spec.parameters, message, ViolationReason.TOO_LONG),))


def _complete(spec: WrittenSpec, machine_class: MachineClass, template: MachineTemplate | None) -> ScheduledMachineSpec:
    values = _values(spec.parameters, machine_class.parameters)
    own = {name: value for name in WrittenSpec.model_fields if (value := getattr(spec, name)) is not None}
    made = {
        "machine_template": template,
        "bootstrap_spec": _provider(machine_class.spec.bootstrap_spec, values),
        "infrastructure_spec": _provider(machine_class.spec.infrastructure_spec, values),
    }
    return ScheduledMachineSpec.model_construct(**(_BUILT_IN | machine_class.spec.defaults() | own | made))


_BUILT_IN: Final[dict[str, Any]] = {name: ScheduledMachineSpec.model_fields[name].default for name in SETTABLE}
"""Given as they are: pydantic would copy each of them."""


def _values(given: Mapping[str, Any], parameters: Mapping[str, Parameter]) -> dict[str, Any]:
    return {
        name: parameter.default if given.get(name) is None else given[name] for name, parameter in parameters.items()
    }


def _provider(provider: ClassProviderSpec, values: Mapping[str, Any]) -> ProviderSpec:
    return ProviderSpec.model_construct(
        api_version=provider.api_version, kind=provider.kind, namespace=None, spec=substituted(provider.spec, values)
    )


def _template(own: MachineTemplate | None, of_class: MachineTemplate | None) -> MachineTemplate | None:
    if own is None or of_class is None:
        return own or of_class
    return MachineTemplate.model_construct(
        labels={**of_class.labels, **own.labels},
        annotations={**of_class.annotations, **own.annotations},
        version=own.version or of_class.version,
        failure_domain=own.failure_domain or of_class.failure_domain,
    )


def _too_many(template: MachineTemplate | None) -> list[Violation]:
    if template is None:
        return []
    found = []
    for name, pairs in (("labels", template.labels), ("annotations", template.annotations)):
        if len(pairs) > PAIRS_MAX:
            message = f"must have at most {PAIRS_MAX} entries, those of the class included"
            found.append(Violation.of(f"spec.machineTemplate.{name}", pairs, message, ViolationReason.TOO_LONG))
    if sum(len(key.encode()) + len(value.encode()) for key, value in template.annotations.items()) > ANNOTATIONS_MAX:
        message = f"must be at most {ANNOTATIONS_MAX} bytes together, those of the class included"
        field = "spec.machineTemplate.annotations"
        found.append(Violation.of(field, template.annotations, message, ViolationReason.TOO_LONG))
    return found

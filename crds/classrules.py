"""What may be said in a ScheduledMachineClass, for webhook, command line and controller alike."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic import ValidationError

from crds import names, selector, substitution, syntax
from crds.bounds import CLASS, fitted
from crds.changes import answers_for
from crds.classes import ClassProblem, FoundClass, MachineClass, UnusableClass
from crds.envelope import UnknownFields, envelope_rules, in_no_namespace, parsed_spec
from crds.parameters import DEPTH_MAX, InvalidSchemaError, Parameter, deeper_than, too_many_bytes
from crds.partial import readable_timeout
from crds.providerrules import provider_violations
from crds.providers import BOOTSTRAP, DEFAULT_POLICY, INFRASTRUCTURE, ProviderPolicy
from crds.scheduledmachineclass import ClassParameter, ClassSpec
from crds.schemacost import TOO_MANY_PATTERNS, too_many_patterns, too_much_work
from crds.taintrules import repeated_taints
from crds.unread import UNREAD_MAX, unread_fields
from crds.violations import Violation, ViolationReason

Raw = dict[str, Any]

ONLY_IN_SPECS: Final = (
    "parameters are put into bootstrapSpec.spec and infrastructureSpec.spec only; this stays as it is"
)
UNUSED: Final = "is not used in bootstrapSpec or infrastructureSpec"


@dataclass(frozen=True, slots=True)
class ClassVerdict:
    """The judgement on a class: its spec if it could be read, and all that is to be said about it."""

    spec: ClassSpec | None
    violations: tuple[Violation, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def allowed(self) -> bool:
        """Whether the object may be stored."""
        return not self.violations


def check_class(
    raw: Any, *, policy: ProviderPolicy = DEFAULT_POLICY, old: Raw | None = None, unknown: UnknownFields = "forbid"
) -> ClassVerdict:
    """Judge a class that is to be stored; `old` is what an update would replace. Never raises.

    An update answers only for what it changes; `spec` is None if the class as a whole cannot be read.
    """
    if type(raw) is not dict:
        return ClassVerdict(None, (Violation.of("", raw, "must be an object", ViolationReason.TYPE),))
    spec, violations = _examined(raw, policy, unknown)
    readable = spec if not violations else None
    held = answers_for(raw, old, violations, lambda before: _examined(before, policy, "forbid")[1])
    return ClassVerdict(readable, tuple(held), tuple(_warnings(readable, raw["spec"])) if readable else ())


def read_class(raw: Raw, policy: ProviderPolicy = DEFAULT_POLICY) -> FoundClass:
    """A stored class, or why it cannot be used."""
    name = str(raw["metadata"].get("name"))
    verdict = check_class(raw, policy=policy, unknown="ignore")
    if verdict.spec is not None:
        return MachineClass(name, verdict.spec)
    wrong = "; ".join(f"{one.field}: {one.message}" for one in verdict.violations)
    given = raw.get("spec")
    spec: Raw = given if type(given) is dict else {}
    return UnusableClass(
        ClassProblem.INVALID,
        f"{names.CLASS_KIND} {name} is invalid: {wrong}",
        grace=readable_timeout(spec.get("gracefulShutdownTimeout")),
        drain=readable_timeout(spec.get("nodeDrainTimeout")),
    )


def _examined(given: Raw, policy: ProviderPolicy, unknown: UnknownFields) -> tuple[ClassSpec | None, list[Violation]]:
    raw, violations = fitted(given, CLASS)
    too_deep = bool(violations)
    parsed, wrong = parsed_spec(ClassSpec, raw.get("spec"), unknown)
    violations += wrong
    violations += envelope_rules(raw, unknown, kind=names.CLASS_KIND, name_max=syntax.PREFIX_MAX)
    violations += in_no_namespace(raw, names.CLASS_KIND)
    spec = raw.get("spec")
    if type(spec) is dict:
        violations += _unread(spec) if unknown == "ignore" else ()
        violations += provider_violations(spec, policy)
        violations += selector.expression_violations(spec.get("namespaceSelector"), "spec.namespaceSelector")
        violations += _repeated(spec)
        violations += repeated_taints(spec)
        violations += _what_is_put_in(spec, unknown) if not too_deep else ()
    return parsed, violations


def _what_is_put_in(spec: Raw, unknown: UnknownFields) -> Iterator[Violation]:
    """What is wrong with parameters and with references to them, even if other fields cannot be read."""
    given = spec.get("parameters")
    listed = given if type(given) is list else ()
    readable = {index: found for index, each in enumerate(listed) if (found := _parameter(each, unknown)) is not None}
    yield from _parameter_rules(readable)
    if (given is None or type(given) is list) and len(readable) == len(listed):
        yield from _reference_rules(spec, {each.name: each for each in readable.values()})


def _parameter(given: Any, unknown: UnknownFields) -> ClassParameter | None:
    try:
        return ClassParameter.parse(given, unknown=unknown)
    except ValidationError:
        return None


def _unread(spec: Raw) -> Iterator[Violation]:
    """Unknown fields of a stored class: each may change what its users get."""
    found = unread_fields(ClassSpec, spec, "spec")
    return (violation for violation, _ in zip(found, range(UNREAD_MAX), strict=False))


def _repeated(spec: Raw) -> Iterator[Violation]:
    """Parameters of the same name; the API server checks that itself, files are read without it."""
    given, seen = spec.get("parameters"), set[str]()
    for index, each in enumerate(given if type(given) is list else ()):
        name = each.get("name") if type(each) is dict else None
        if type(name) is str and name in seen:
            message = "repeats the name of an earlier parameter"
            yield Violation.of(f"spec.parameters[{index}].name", name, message, ViolationReason.DUPLICATE)
        elif type(name) is str:
            seen.add(name)


def _parameter_rules(given: Mapping[int, ClassParameter]) -> Iterator[Violation]:
    schemas = [[each.json_schema, each.default] for each in given.values()]
    if any(deeper_than(each, DEPTH_MAX) for each in schemas):
        message = f"schemas and defaults must not be nested deeper than {DEPTH_MAX} levels"
        yield Violation("spec.parameters", "deeply nested", message, ViolationReason.TOO_LONG, given=schemas)
        return
    too_large = list(too_many_bytes(schemas))
    if too_large:
        yield from too_large
        return
    parameters = {index: Parameter(each.name, each.json_schema, each.default) for index, each in given.items()}
    too_costly = list(_cost_rules([*parameters.values()]))
    yield from too_costly
    if not too_costly:
        for index, parameter in parameters.items():
            yield from _schema_rules(parameter, f"spec.parameters[{index}]")


def _cost_rules(parameters: list[Parameter]) -> Iterator[Violation]:
    """Whether schemas would take long to compile, or defaults to check."""
    schemas = [each.schema for each in parameters]
    if too_many_patterns(schemas):
        yield Violation.of("spec.parameters", schemas, TOO_MANY_PATTERNS, ViolationReason.TOO_LONG)
    defaults = {each.name: each.default for each in parameters if each.default is not None}
    if too_much_work(defaults, {each.name: each.cost for each in parameters}):
        message = "has defaults that are too long for their schemas; shorten them, or have simpler schemas"
        yield Violation.of("spec.parameters", schemas, message, ViolationReason.TOO_LONG)


def _schema_rules(parameter: Parameter, path: str) -> Iterator[Violation]:
    try:
        if parameter.default is None:
            _ = parameter.validator
        else:
            yield from parameter.violations(parameter.default, f"{path}.default")
    except InvalidSchemaError as error:
        yield Violation.of(f"{path}.schema", parameter.schema, str(error))


def _reference_rules(spec: Raw, declared: Mapping[str, ClassParameter]) -> Iterator[Violation]:
    for template, path in _templates(spec):
        found = substitution.mentions(template, path)
        if found.more:
            message = f"must name parameters at most {substitution.MENTIONS_MAX} times"
            yield Violation.of(path, template, message, ViolationReason.TOO_LONG)
        for where, text in found.mistakes:
            message = "write $(params.NAME) for a parameter, or $$( for the text $("
            yield Violation.of(where, text, message)
        for where, name, alone in found.references:
            if name not in declared:
                message = f"names a parameter that the class does not have; it has: {', '.join(declared) or 'none'}"
                yield Violation.of(where, f"$(params.{name})", message, ViolationReason.NOT_SUPPORTED)
            elif not alone and not _fits_into_text(declared[name].json_schema):
                message = (
                    "stands within a longer text: the schema of the parameter must have a type of string, "
                    "number, integer or boolean"
                )
                yield Violation.of(where, f"$(params.{name})", message)


def _fits_into_text(schema: Raw) -> bool:
    """Whether a schema admits nothing but texts, numbers, true and false, as far as its type and its list say."""
    kinds, listed = schema.get("type"), schema.get("enum", [schema["const"]] if "const" in schema else None)
    if type(listed) is list:
        return not any(type(each) in (dict, list) for each in listed)
    named = kinds if type(kinds) is list else [kinds]
    return bool(named) and all(each in ("string", "number", "integer", "boolean") for each in named)


def _templates(spec: Raw) -> Iterator[tuple[Raw, str]]:
    for name in (BOOTSTRAP, INFRASTRUCTURE):
        provider = spec.get(name)
        template = provider.get("spec") if type(provider) is dict else None
        if type(template) is dict:
            yield template, f"spec.{name}.spec"


def _warnings(spec: ClassSpec, written: Raw) -> Iterator[str]:
    found = [substitution.mentions(template, path) for template, path in _templates(written)]
    used = {each.name for one in found for each in one.references}
    for index, each in enumerate(spec.parameters):
        if each.name not in used:
            yield f"spec.parameters[{index}].name: {each.name} {UNUSED}"
    for one in found:
        for where in one.keys:
            yield f"{where}: nothing is put into names of fields"
    for where, text in _elsewhere(spec):
        if substitution.START in text:
            yield f"{where}: {ONLY_IN_SPECS}"


def _elsewhere(spec: ClassSpec) -> Iterator[tuple[str, str]]:
    """The free texts of a class in which parameters mean nothing."""
    template = spec.machine_template
    for key, text in (template.annotations if template else {}).items():
        yield f"spec.machineTemplate.annotations[{key}]", text
    for index, text in enumerate(spec.kill_if_commands or ()):
        yield f"spec.killIfCommands[{index}]", text

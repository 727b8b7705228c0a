"""What a policy can say about classes without webhooks: who may name one, and the plain words of its schemas.

The API server evaluates the policy once for each class, and each time only for ScheduledMachines that name it. What CEL
cannot say (formats, lists, objects and combinations in a schema) is left to the controller, which creates nothing from
parameters that do not fit.
"""

from collections.abc import Iterator
from typing import Any, Final

from crds import names
from crds.cel import Check

_EMPTY: Final = "dyn({})"
MATCH: Final = (
    "oldObject == null || dyn(object.spec).?classRef != dyn(oldObject.spec).?classRef"
    " || dyn(object.spec).?parameters != dyn(oldObject.spec).?parameters"
)
"""An update that leaves class and parameters alone is not asked about."""
PARAM_KIND: Final = {"apiVersion": names.API_VERSION, "kind": names.CLASS_KIND}
PARAM_REF: Final[dict[str, Any]] = {"selector": {}, "parameterNotFoundAction": "Allow"}


def _or(container: str, field: str, empty: str) -> str:
    return f"has({container}.{field}) && {container}.{field} != null ? {container}.{field} : {empty}"


VARIABLES: Final = {
    "spec": "dyn(object.spec)",
    "ref": _or("variables.spec", "classRef", _EMPTY),
    "other": "variables.ref.?name.orValue('') != params.metadata.name",
    "given": _or("variables.spec", "parameters", _EMPTY),
    "class": "dyn(params.spec)",
    "declared": _or("variables.class", "parameters", "dyn([])"),
    "labels": _or("dyn(namespaceObject.metadata)", "labels", _EMPTY),
    "wanted": _or("variables.class.namespaceSelector", "matchLabels", _EMPTY),
    "requirements": _or("variables.class.namespaceSelector", "matchExpressions", "dyn([])"),
    # Those that are given, with their schemas.
    "used": "variables.declared.filter(p, p.name in variables.given && variables.given[p.name] != null"
    " && has(p.schema) && p.schema != null)",
}
_TYPES: Final = {
    "string": "type({0}) == string",
    "boolean": "type({0}) == bool",
    "integer": "type({0}) == int || type({0}) == double && double(int({0})) == {0}",
    "number": "type({0}) == int || type({0}) == double",
    "object": "type({0}) == map",
    "array": "type({0}) == list",
}
_REQUIREMENTS: Final = {
    "In": "{0} && variables.labels[r.key] in r.values",
    "NotIn": "!({0}) || !(variables.labels[r.key] in r.values)",
    "Exists": "{0}",
    "DoesNotExist": "!({0})",
}


def checks() -> Iterator[Check]:
    """The namespace is one of the class's, and parameters are known, given, and of their type."""
    met = " || ".join(
        f"r.operator == '{name}' && ({rule.format('r.key in variables.labels')})"
        for name, rule in _REQUIREMENTS.items()
    )
    yield Check(
        "spec.classRef",
        "variables.other"
        " || variables.wanted.all(k, k in variables.labels && variables.labels[k] == variables.wanted[k])"
        f" && variables.requirements.all(r, {met})",
        "this class is not for this namespace: its namespaceSelector does not match",
        "'spec.classRef: class ' + params.metadata.name + ' is not for namespace ' + request.namespace"
        " + ': its namespaceSelector does not match'",
        "Forbidden",
    )
    unknown = "variables.given.filter(k, variables.given[k] != null && !variables.declared.exists(p, p.name == k))"
    yield Check(
        "spec.parameters",
        f"variables.other || size({unknown}) == 0",
        "has a parameter that the class does not know",
        f"'spec.parameters: unknown: ' + {unknown}.join(', ') + '; the class has: '"
        " + variables.declared.map(p, string(p.name)).join(', ')",
    )
    missing = (
        "variables.declared.filter(p, (!has(p.default) || p.default == null)"
        " && !(p.name in variables.given && variables.given[p.name] != null))"
    )
    yield Check(
        "spec.parameters",
        f"variables.other || size({missing}) == 0",
        "lacks a parameter that the class requires",
        f"'spec.parameters: required by the class: ' + {missing}.map(p, string(p.name)).join(', ')",
    )
    yield from _values()


def _values() -> Iterator[Check]:
    """Each word of a schema by itself."""
    value = "variables.given[p.name]"
    typed = " || ".join(f"p.schema.type == '{name}' && ({rule.format(value)})" for name, rule in _TYPES.items())
    text = f"type({value}) != string"
    number = f"type({value}) != int && type({value}) != double"
    words = {
        "type": f"type(p.schema.type) != string || {typed}",
        "enum": f"{value} in p.schema.enum",
        "const": f"{value} == p.schema['const']",
        "pattern": f"{text} || {value}.matches(p.schema.pattern)",
        "maxLength": f"{text} || size({value}) <= p.schema.maxLength",
        "minLength": f"{text} || size({value}) >= p.schema.minLength",
        "maximum": f"{number} || {value} <= p.schema.maximum",
        "minimum": f"{number} || {value} >= p.schema.minimum",
    }
    for word, rule in words.items():
        wrong = f"variables.used.filter(p, '{word}' in p.schema && !({rule}))"
        yield Check(
            "spec.parameters",
            f"variables.other || size({wrong}) == 0",
            f"a value does not meet {word} of the schema in the class",
            f"'spec.parameters: against {word} of the schema in class ' + params.metadata.name + ': '"
            f" + {wrong}.map(p, string(p.name)).join(', ')",
        )

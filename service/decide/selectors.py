"""Label selectors as Kubernetes reads them: `matchLabels` and `matchExpressions`, all of which must hold."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from crds import syntax
from crds.invalid import InvalidValue

Labels = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class LabelRequirement:
    """One demand on an object's labels."""

    key: str
    operator: str
    values: frozenset[str] = frozenset()

    def holds(self, labels: Labels) -> bool:
        """Whether the labels meet it."""
        return _OPERATORS[self.operator](labels.get(self.key), self.values)


def _in(value: str | None, values: frozenset[str]) -> bool:
    return value is not None and value in values


def _not_in(value: str | None, values: frozenset[str]) -> bool:
    return value is None or value not in values


def _exists(value: str | None, _values: frozenset[str]) -> bool:
    return value is not None


def _does_not_exist(value: str | None, _values: frozenset[str]) -> bool:
    return value is None


_OPERATORS: Final[Mapping[str, Callable[[str | None, frozenset[str]], bool]]] = {
    "In": _in,
    "NotIn": _not_in,
    "Exists": _exists,
    "DoesNotExist": _does_not_exist,
}
_WITH_VALUES: Final = frozenset({"In", "NotIn"})


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """All requirements of a selector; without any it selects everything."""

    requirements: tuple[LabelRequirement, ...] = ()

    def matches(self, labels: Labels) -> bool:
        """Whether an object with these labels is selected."""
        return all(requirement.holds(labels) for requirement in self.requirements)


EVERYTHING: Final = LabelSelector()


def read_selector(raw: Any) -> LabelSelector:
    """A selector from JSON, where absent and empty select everything; `InvalidValue` if Kubernetes would refuse it."""
    if raw is None:
        return EVERYTHING
    if not isinstance(raw, dict):
        raise InvalidValue("a label selector must be an object")
    labels, expressions = raw.get("matchLabels") or {}, raw.get("matchExpressions") or []
    if not isinstance(labels, dict) or not isinstance(expressions, list):
        raise InvalidValue("matchLabels must be an object and matchExpressions a list")
    equal = (_requirement(key, "In", [value]) for key, value in labels.items())
    return LabelSelector((*equal, *(_expression(one) for one in expressions)))


def _expression(raw: Any) -> LabelRequirement:
    if not isinstance(raw, dict):
        raise InvalidValue("an entry of matchExpressions must be an object")
    return _requirement(raw.get("key"), raw.get("operator"), raw.get("values") or [])


def _requirement(key: Any, operator: Any, values: Any) -> LabelRequirement:
    texts = isinstance(values, list) and all(isinstance(value, str) for value in values)
    if not isinstance(key, str) or not isinstance(operator, str) or not texts:
        raise InvalidValue("key, operator and values must be text")
    if operator not in _OPERATORS:
        raise InvalidValue(f"operator must be one of {', '.join(_OPERATORS)}")
    if bool(values) is not (operator in _WITH_VALUES):
        raise InvalidValue(f"operator {operator} {'needs' if operator in _WITH_VALUES else 'takes no'} values")
    syntax.qualified_name(key)
    return LabelRequirement(key, operator, frozenset(syntax.label_value(value) for value in values))

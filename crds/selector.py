"""Label selectors as Kubernetes has them, parsed and bounded: of overrides, never empty, and of classes."""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Annotated, Any, Final

from pydantic import ConfigDict, Field

from crds import cel, fields
from crds.base import Lax, Model, atomic_list
from crds.violations import Violation


class LabelOperator(StrEnum):
    """How a label is compared."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"


EMPTY: cel.CelRule = {
    "rule": "has(self.matchLabels) && size(self.matchLabels) > 0"
    " || has(self.matchExpressions) && size(self.matchExpressions) > 0",
    "message": "must not be empty; name at least one label",
}
VALUES: cel.CelRule = {
    "rule": "(self.operator in ['In', 'NotIn']) == (has(self.values) && size(self.values) > 0)",
    "message": "needs values with In and NotIn, and has none with Exists and DoesNotExist",
}


class Requirement(Model):
    """A requirement on one label."""

    model_config = ConfigDict(json_schema_extra=cel.validations([VALUES]))

    key: fields.LabelKey = Field(description="Key of the label.")
    operator: Annotated[LabelOperator, Lax] = Field(description="In, NotIn, Exists or DoesNotExist.")
    values: fields.SelectorValues = Field(
        default=(), description="Values of the label, with In and NotIn; with the other two there are none."
    )

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether labels meet it; NotIn is met by an absent label, as everywhere in Kubernetes."""
        match self.operator:
            case LabelOperator.IN:
                return labels.get(self.key) in self.values
            case LabelOperator.NOT_IN:
                return labels.get(self.key) not in self.values
            case LabelOperator.EXISTS:
                return self.key in labels
            case LabelOperator.DOES_NOT_EXIST:
                return self.key not in labels


class Selector(Model):
    """Selects ScheduledMachines by their labels; all requirements have to be met."""

    model_config = ConfigDict(json_schema_extra=cel.validations([EMPTY]))

    match_labels: fields.SelectorLabels = Field(
        default_factory=dict, description="Labels that a ScheduledMachine must have, with these values."
    )
    match_expressions: Annotated[tuple[Requirement, ...], Lax] = Field(
        default=(),
        max_length=fields.SELECTED_MAX,
        json_schema_extra=atomic_list(nullable=True),
        description="Further requirements on the labels.",
    )

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether labels meet all requirements."""
        if any(labels.get(key) != value for key, value in self.match_labels.items()):
            return False
        return all(each.matches(labels) for each in self.match_expressions)


class NamespaceSelector(Selector):
    """Namespaces by their labels; an empty one selects all."""

    model_config = ConfigDict(json_schema_extra={})

    match_labels: fields.SelectorLabels = Field(
        default_factory=dict, description="Labels that a namespace must have, with these values."
    )


def expression_violations(selecting: Any, path: str) -> Iterator[Violation]:
    """Requirements of a selector, as it was written, that lack values or have some where there are none."""
    expressions = selecting.get("matchExpressions") if type(selecting) is dict else None
    for index, each in enumerate(expressions if type(expressions) is list else ()):
        if (
            type(each) is dict
            and each.get("operator") in _OPERATORS
            and bool(each.get("values")) != (each["operator"] in _WITH_VALUES)
        ):
            yield Violation.of(f"{path}.matchExpressions[{index}]", each, VALUES["message"])


_OPERATORS: Final = frozenset(LabelOperator)
_WITH_VALUES: Final = frozenset({LabelOperator.IN, LabelOperator.NOT_IN})

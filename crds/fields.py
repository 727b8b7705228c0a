"""The types of single spec fields: how each is read, and how the CRD's schema says the same."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache, partial
from typing import Annotated, Any, Final

from pydantic import AfterValidator, Field, GetCoreSchemaHandler, WithJsonSchema
from pydantic_core import CoreSchema, core_schema

from crds import cel, patterns, syntax, values
from crds.base import Lax
from crds.cron import CRON_MAX
from crds.syntax import anchored
from crds.values import DaySet, HourSet, InvalidValue, Zone, parse_duration
from crds.zones import NAME_MAX as TIMEZONE_MAX

DAY_ITEMS_MAX: Final = 50
HOUR_ITEMS_MAX: Final = 50
ITEM_MAX: Final = 200
COMMANDS_MAX: Final = 100
COMMAND_MAX: Final = 256
TAINTS_MAX: Final = 64
PAIRS_MAX: Final = 64
DURATION_MAX: Final = 32
REMEMBERED: Final = 4096
ANNOTATIONS_MAX: Final = 262144
"""Bytes of all annotations together, as everywhere in Kubernetes."""


def _remembered(parse: Callable[[Any], Any], longest: int) -> Callable[[Any], Any]:
    """The same parser with a memory: manifests of one team say the same things over and over."""
    known = lru_cache(maxsize=REMEMBERED)(parse)

    def read(given: Any) -> Any:
        if type(given) is not str:
            return parse(given)
        if len(given) > longest:
            raise InvalidValue(f"must be at most {longest} characters")
        return known(given)

    return read


@dataclass(frozen=True)
class Items:
    """Reads a list of texts item by item, so that each error has its own index, and joins them to one set."""

    kind: type[DaySet] | type[HourSet]
    parse: Callable[[Any], Any]
    items_max: int

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        item = core_schema.no_info_plain_validator_function(self.parse)
        listed = core_schema.list_schema(item, max_length=self.items_max, strict=True)
        joined = core_schema.no_info_after_validator_function(self.kind.union, listed)
        return core_schema.no_info_wrap_validator_function(self._unless_read, joined)

    def _unless_read(self, given: Any, read: Callable[[Any], Any]) -> Any:
        return given if isinstance(given, self.kind) else read(given)


@dataclass(frozen=True)
class Parsed:
    """Reads a text into a typed value; one that is typed already, as in tests and defaults, passes."""

    kind: type
    parse: Callable[[Any], Any]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self._read)

    def _read(self, given: Any) -> Any:
        return given if isinstance(given, self.kind) else self.parse(given)


def _schema(**keywords: Any) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", **keywords})


def _list_schema(pattern: str, items_max: int) -> WithJsonSchema:
    items = {"type": "string", "minLength": 1, "maxLength": ITEM_MAX, "pattern": pattern}
    return WithJsonSchema(
        {"type": "array", "maxItems": items_max, "items": items, "x-kubernetes-list-type": "atomic", "nullable": True}
    )


def _duration(longest: timedelta, **keywords: Any) -> tuple[Parsed, WithJsonSchema]:
    read = Parsed(timedelta, _remembered(partial(parse_duration, longest=longest), DURATION_MAX))
    rules = cel.validations([cel.longest(longest)])
    schema = _schema(minLength=2, maxLength=DURATION_MAX, pattern=patterns.DURATION, **rules, **keywords)
    return read, schema


Days = Annotated[
    DaySet,
    Items(DaySet, _remembered(DaySet.parse_item, ITEM_MAX), DAY_ITEMS_MAX),
    _list_schema(patterns.DAYS, DAY_ITEMS_MAX),
]
Hours = Annotated[
    HourSet,
    Items(HourSet, _remembered(HourSet.parse_item, ITEM_MAX), HOUR_ITEMS_MAX),
    _list_schema(patterns.HOURS, HOUR_ITEMS_MAX),
]
Cron = Annotated[
    values.Cron,
    Parsed(values.Cron, _remembered(values.Cron.parse, CRON_MAX)),
    _schema(
        minLength=9,
        maxLength=CRON_MAX,
        pattern=patterns.CRON,
        nullable=True,
        **cel.validations(cel.CRON),
    ),
]
Timezone = Annotated[
    Zone, Parsed(Zone, Zone.parse), _schema(minLength=1, maxLength=TIMEZONE_MAX, pattern=patterns.TIMEZONE)
]
WindowDuration = Annotated[timedelta, *_duration(values.MAX_DURATION, nullable=True)]
Timeout = Annotated[timedelta, *_duration(values.MAX_TIMEOUT)]

APIVersion = Annotated[
    str, AfterValidator(syntax.api_version), _schema(maxLength=syntax.KEY_MAX, pattern=anchored(syntax.API_VERSION))
]
Kind = Annotated[str, AfterValidator(syntax.kind), _schema(maxLength=syntax.NAME_MAX, pattern=anchored(syntax.KIND))]
Namespace = Annotated[
    str,
    AfterValidator(syntax.namespace),
    _schema(maxLength=syntax.NAME_MAX, pattern=anchored(syntax.DNS_LABEL), nullable=True),
]
Payload = Annotated[dict[str, Any], WithJsonSchema({"type": "object", "x-kubernetes-preserve-unknown-fields": True})]
ClusterName = Annotated[
    str, AfterValidator(syntax.cluster_name), _schema(maxLength=syntax.NAME_MAX, pattern=anchored(syntax.SUBDOMAIN))
]
Priority = Annotated[int, Field(ge=0, le=255)]
TaintKey = Annotated[
    str,
    AfterValidator(syntax.taint_key),
    _schema(
        maxLength=syntax.TAINT_KEY_MAX,
        pattern=anchored(syntax.QUALIFIED_NAME),
        **cel.validations(cel.TAINT_KEY),
    ),
]
LabelValue = Annotated[
    str, AfterValidator(syntax.label_value), _schema(maxLength=syntax.NAME_MAX, pattern=anchored(syntax.LABEL_VALUE))
]
TaintValue = Annotated[
    str,
    AfterValidator(syntax.label_value),
    _schema(maxLength=syntax.NAME_MAX, pattern=anchored(syntax.LABEL_VALUE), nullable=True),
]
Command = Annotated[str, Field(min_length=1, max_length=COMMAND_MAX)]
Commands = Annotated[
    tuple[Command, ...],
    Lax,
    Field(max_length=COMMANDS_MAX),
    WithJsonSchema(
        {
            "type": "array",
            "nullable": True,
            "maxItems": COMMANDS_MAX,
            "items": {"type": "string", "minLength": 1, "maxLength": COMMAND_MAX},
            "x-kubernetes-list-type": "atomic",
        }
    ),
]


def _within_total(annotations: dict[str, str]) -> dict[str, str]:
    total = sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())
    if total > ANNOTATIONS_MAX:
        raise InvalidValue(f"must be at most {ANNOTATIONS_MAX} bytes together, keys included")
    return annotations


def _map_schema(value: dict[str, Any], rules: tuple[cel.Rule, ...]) -> WithJsonSchema:
    return WithJsonSchema(
        {
            "type": "object",
            "nullable": True,
            "maxProperties": PAIRS_MAX,
            "additionalProperties": {"type": "string", **value},
            "x-kubernetes-validations": list(rules),
        }
    )


Labels = Annotated[
    dict[Annotated[str, AfterValidator(syntax.label_key)], LabelValue],
    Field(max_length=PAIRS_MAX),
    _map_schema({"maxLength": syntax.NAME_MAX, "pattern": anchored(syntax.LABEL_VALUE)}, cel.LABELS),
]
Annotations = Annotated[
    dict[Annotated[str, AfterValidator(syntax.annotation_key)], Annotated[str, Field(max_length=ANNOTATIONS_MAX)]],
    Field(max_length=PAIRS_MAX),
    AfterValidator(_within_total),
    _map_schema({"maxLength": ANNOTATIONS_MAX}, cel.ANNOTATIONS),
]

"""The types of single spec fields: how each is read, and how the CRD's schema says the same."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache, partial
from types import UnionType
from typing import Annotated, Any, Final

from pydantic import AfterValidator, Field, GetCoreSchemaHandler, WithJsonSchema
from pydantic_core import CoreSchema, core_schema

from crds import calendars, cel, patterns, syntax, values
from crds.base import Lax, rfc3339
from crds.cron import CRON_MAX
from crds.dates import YEARLY_ALLOWED, Anniversary, Dates, Yearly
from crds.leads import MAX_LEAD, Auto, format_lead, parse_lead
from crds.moment import ALLOWED as MOMENT_ALLOWED
from crds.moment import parse_moment
from crds.syntax import anchored
from crds.timeofday import END_MESSAGE, START_MESSAGE, TimeOfDay
from crds.values import DaySet, HourSet, InvalidValue, Zone, format_duration, parse_duration
from crds.zones import NAME_MAX as TIMEZONE_MAX

DAY_ITEMS_MAX: Final = 50
HOUR_ITEMS_MAX: Final = 50
ITEM_MAX: Final = 200
WINDOWS_MAX: Final = 50
EXCEPTIONS_MAX: Final = 32
DATES_MAX: Final = 100
DATE_MAX: Final = 21
CALENDAR_DATES_MAX: Final = 1000
YEARLY_MAX: Final = 366
ICS_MAX: Final = 1024 * 1024
SUBDIVISION_MAX: Final = 64
TIME_MAX: Final = 5
MOMENT_MAX: Final = 35
OVERRIDDEN_MAX: Final = 16
"""A ValidatingAdmissionPolicy cannot afford to ask about the rights on more machines."""
SELECTED_MAX: Final = 16
SELECTOR_VALUES_MAX: Final = 32
REASON_MAX: Final = 256
USER_MAX: Final = 1024
COMMANDS_MAX: Final = 100
COMMAND_MAX: Final = 256
TAINTS_MAX: Final = 64
PAIRS_MAX: Final = 64
DURATION_MAX: Final = 32
REMEMBERED: Final = 4096
PARAMETERS_MAX: Final = 64
PARAMETER_NAME_MAX: Final = 63
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

    kind: type[DaySet] | type[HourSet] | type[Dates] | type[Yearly]
    parse: Callable[[Any], Any]
    items_max: int
    write: Callable[[Any], list[str]]
    join: Callable[[Any], Any]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        item = core_schema.no_info_plain_validator_function(self.parse)
        listed = core_schema.list_schema(item, max_length=self.items_max, strict=True)
        joined = core_schema.no_info_after_validator_function(self.join, listed)
        return core_schema.no_info_wrap_validator_function(
            self._unless_read, joined, serialization=_as_json(self.write)
        )

    def _unless_read(self, given: Any, read: Callable[[Any], Any]) -> Any:
        return given if isinstance(given, self.kind) else read(given)


@dataclass(frozen=True)
class Parsed:
    """Reads a text into a typed value; one that is typed already, as in tests and defaults, passes."""

    kind: type | UnionType
    parse: Callable[[Any], Any]
    write: Callable[[Any], str] = str

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self._read, serialization=_as_json(self.write))

    def _read(self, given: Any) -> Any:
        return given if isinstance(given, self.kind) else self.parse(given)


def _as_json(write: Callable[[Any], Any]) -> core_schema.SerSchema:
    return core_schema.plain_serializer_function_ser_schema(write, when_used="json")


def _listed(days_or_hours: DaySet | HourSet) -> list[str]:
    return [str(days_or_hours)] if days_or_hours else []


def _text(longest: int, *rules: cel.CelRule, **keywords: Any) -> dict[str, Any]:
    return {"type": "string", "maxLength": longest, **cel.validations(rules), **keywords}


def _within_ics(text: str) -> str:
    if len(text.encode()) > ICS_MAX:
        raise InvalidValue(cel.ICS_SIZE["message"])
    return text


def _schema(longest: int, *rules: cel.CelRule, **keywords: Any) -> WithJsonSchema:
    return WithJsonSchema(_text(longest, *rules, **keywords))


def _list_schema(*rules: cel.CelRule, items_max: int, longest: int = ITEM_MAX) -> WithJsonSchema:
    items = _text(longest, *rules)
    return WithJsonSchema(
        {"type": "array", "maxItems": items_max, "items": items, "x-kubernetes-list-type": "atomic", "nullable": True}
    )


def _duration(longest: timedelta, **keywords: Any) -> tuple[Parsed, WithJsonSchema]:
    read = Parsed(timedelta, _remembered(partial(parse_duration, longest=longest), DURATION_MAX), format_duration)
    return read, _schema(DURATION_MAX, cel.duration(longest), **keywords)


Days = Annotated[
    DaySet,
    Items(DaySet, _remembered(DaySet.parse_item, ITEM_MAX), DAY_ITEMS_MAX, _listed, DaySet.union),
    _list_schema(cel.matches(patterns.DAYS, DaySet.ALLOWED), items_max=DAY_ITEMS_MAX),
]
Hours = Annotated[
    HourSet,
    Items(HourSet, _remembered(HourSet.parse_item, ITEM_MAX), HOUR_ITEMS_MAX, _listed, HourSet.union),
    _list_schema(cel.matches(patterns.HOURS, HourSet.ALLOWED), items_max=HOUR_ITEMS_MAX),
]
DateItems = Annotated[
    Dates,
    Items(Dates, _remembered(Dates.parse_item, DATE_MAX), DATES_MAX, Dates.texts, Dates.union),
    _list_schema(*cel.DATES, items_max=DATES_MAX, longest=DATE_MAX),
]
CalendarDateItems = Annotated[
    Dates,
    Items(Dates, _remembered(Dates.parse_item, DATE_MAX), CALENDAR_DATES_MAX, Dates.texts, Dates.union),
    _list_schema(*cel.DATES, items_max=CALENDAR_DATES_MAX, longest=DATE_MAX),
]
YearlyItems = Annotated[
    Yearly,
    Items(Yearly, Anniversary.parse, YEARLY_MAX, Yearly.texts, Yearly),
    _list_schema(cel.matches(patterns.YEARLY, YEARLY_ALLOWED), items_max=YEARLY_MAX, longest=5),
]
Country = Annotated[
    str,
    AfterValidator(syntax.country),
    _schema(2, cel.matches(anchored(syntax.COUNTRY), syntax.COUNTRY_MESSAGE)),
]
Subdivision = Annotated[
    str,
    Field(min_length=1, max_length=SUBDIVISION_MAX),
    WithJsonSchema({"type": "string", "minLength": 1, "maxLength": SUBDIVISION_MAX, "nullable": True}),
]
Ics = Annotated[
    str,
    AfterValidator(_within_ics),
    _schema(ICS_MAX, cel.ICS_SIZE, nullable=True),
]
ConfigMapKey = Annotated[
    str,
    AfterValidator(syntax.config_map_key),
    _schema(syntax.PREFIX_MAX, cel.matches(anchored(syntax.CONFIG_MAP_KEY), syntax.CONFIG_MAP_KEY_MESSAGE)),
]
StartTime = Annotated[
    TimeOfDay,
    Parsed(TimeOfDay, TimeOfDay.parse_start),
    _schema(TIME_MAX, cel.matches(patterns.START_TIME, START_MESSAGE)),
]
EndTime = Annotated[
    TimeOfDay,
    Parsed(TimeOfDay, TimeOfDay.parse_end),
    _schema(TIME_MAX, cel.matches(patterns.END_TIME, END_MESSAGE)),
]
Cron = Annotated[
    values.Cron,
    Parsed(values.Cron, _remembered(values.Cron.parse, CRON_MAX)),
    _schema(CRON_MAX, *cel.CRON, nullable=True),
]
Timezone = Annotated[
    Zone,
    Parsed(Zone, Zone.parse),
    _schema(TIMEZONE_MAX, cel.matches(patterns.TIMEZONE, "must be an IANA time zone such as Europe/Berlin or UTC")),
]
WindowDuration = Annotated[timedelta, *_duration(values.MAX_DURATION, nullable=True)]
Timeout = Annotated[timedelta, *_duration(values.MAX_TIMEOUT)]
Lead = Annotated[
    timedelta | Auto,
    Parsed(timedelta | Auto, _remembered(parse_lead, DURATION_MAX), format_lead),
    _schema(DURATION_MAX, cel.lead(MAX_LEAD), nullable=True),
]

APIVersion = Annotated[
    str,
    AfterValidator(syntax.api_version),
    _schema(syntax.KEY_MAX, cel.matches(anchored(syntax.API_VERSION), syntax.API_VERSION_MESSAGE)),
]
Kind = Annotated[
    str, AfterValidator(syntax.kind), _schema(syntax.NAME_MAX, cel.matches(anchored(syntax.KIND), syntax.KIND_MESSAGE))
]
Namespace = Annotated[
    str,
    AfterValidator(syntax.namespace),
    _schema(syntax.NAME_MAX, cel.matches(anchored(syntax.DNS_LABEL), syntax.NAMESPACE_MESSAGE), nullable=True),
]
Payload = Annotated[dict[str, Any], WithJsonSchema({"type": "object", "x-kubernetes-preserve-unknown-fields": True})]
Anything = Annotated[Any, WithJsonSchema({"x-kubernetes-preserve-unknown-fields": True, "nullable": True})]
ParameterName = Annotated[
    str,
    AfterValidator(syntax.parameter_name),
    _schema(PARAMETER_NAME_MAX, cel.matches(anchored(syntax.PARAMETER_NAME), syntax.PARAMETER_NAME_MESSAGE)),
]
ParameterValues = Annotated[
    dict[str, Any],
    WithJsonSchema(
        {
            "type": "object",
            "nullable": True,
            "maxProperties": PARAMETERS_MAX,
            "x-kubernetes-preserve-unknown-fields": True,
        }
    ),
]
ClusterName = Annotated[
    str,
    AfterValidator(syntax.cluster_name),
    _schema(syntax.NAME_MAX, cel.matches(anchored(syntax.SUBDOMAIN), syntax.CLUSTER_NAME_MESSAGE)),
]
KubernetesVersion = Annotated[
    str,
    AfterValidator(syntax.kubernetes_version),
    _schema(
        syntax.VERSION_MAX,
        cel.matches(anchored(syntax.KUBERNETES_VERSION), syntax.KUBERNETES_VERSION_MESSAGE),
        nullable=True,
    ),
]
FailureDomain = Annotated[
    str,
    AfterValidator(syntax.failure_domain),
    _schema(
        syntax.FAILURE_DOMAIN_MAX,
        cel.matches(anchored(syntax.FAILURE_DOMAIN), syntax.FAILURE_DOMAIN_MESSAGE),
        nullable=True,
    ),
]
ObjectName = Annotated[
    str,
    AfterValidator(syntax.subdomain),
    _schema(syntax.PREFIX_MAX, cel.matches(anchored(syntax.SUBDOMAIN), syntax.OBJECT_NAME_MESSAGE)),
]
Moment = Annotated[
    datetime,
    Parsed(datetime, parse_moment, rfc3339),
    _schema(MOMENT_MAX, cel.matches(patterns.MOMENT, MOMENT_ALLOWED)),
]
OptionalMoment = Annotated[
    datetime,
    Parsed(datetime, parse_moment, rfc3339),
    _schema(MOMENT_MAX, cel.matches(patterns.MOMENT, MOMENT_ALLOWED), nullable=True),
]
_MACHINE_NAME: Final = cel.matches(anchored(syntax.SUBDOMAIN), syntax.MACHINE_NAME_MESSAGE)
MachineNames = Annotated[
    tuple[Annotated[str, AfterValidator(syntax.machine_name)], ...],
    Lax,
    Field(max_length=OVERRIDDEN_MAX),
    _list_schema(_MACHINE_NAME, items_max=OVERRIDDEN_MAX, longest=syntax.MACHINE_NAME_MAX),
]
OverrideReason = Annotated[str, Field(max_length=REASON_MAX), _schema(REASON_MAX, nullable=True)]
UserName = Annotated[
    str,
    Field(min_length=1, max_length=USER_MAX),
    WithJsonSchema({"type": "string", "minLength": 1, "maxLength": USER_MAX, "nullable": True}),
]
CalendarKind = Annotated[
    calendars.CalendarKind,
    Lax,
    # A rule instead of an enum, which would not take null.
    _schema(syntax.NAME_MAX, cel.one_of(calendars.CalendarKind), nullable=True),
]
Priority = Annotated[int, Field(ge=0, le=255)]
TaintKey = Annotated[str, AfterValidator(syntax.taint_key), _schema(syntax.TAINT_KEY_MAX, *cel.TAINT_KEY)]
_LABEL_VALUE: Final = cel.matches(anchored(syntax.LABEL_VALUE), syntax.LABEL_VALUE_MESSAGE)
LabelValue = Annotated[str, AfterValidator(syntax.label_value), _schema(syntax.NAME_MAX, _LABEL_VALUE)]
TaintValue = Annotated[str, AfterValidator(syntax.label_value), _schema(syntax.NAME_MAX, _LABEL_VALUE, nullable=True)]


def _not_blank(command: str) -> str:
    if not command.strip():
        raise InvalidValue(cel.COMMAND["message"])
    return command


Command = Annotated[str, Field(min_length=1, max_length=COMMAND_MAX), AfterValidator(_not_blank)]
Commands = Annotated[
    tuple[Command, ...],
    Lax,
    Field(max_length=COMMANDS_MAX),
    WithJsonSchema(
        {
            "type": "array",
            "nullable": True,
            "maxItems": COMMANDS_MAX,
            "items": {"minLength": 1, **_text(COMMAND_MAX, cel.COMMAND)},
            "x-kubernetes-list-type": "atomic",
        }
    ),
]


def _within_total(annotations: dict[str, str]) -> dict[str, str]:
    total = sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())
    if total > ANNOTATIONS_MAX:
        raise InvalidValue(f"must be at most {ANNOTATIONS_MAX} bytes together, keys included")
    return annotations


def _map_schema(value: dict[str, Any], rules: tuple[cel.CelRule, ...]) -> WithJsonSchema:
    return WithJsonSchema(
        {
            "type": "object",
            "nullable": True,
            "maxProperties": PAIRS_MAX,
            "additionalProperties": value,
            "x-kubernetes-validations": list(rules),
        }
    )


Labels = Annotated[
    dict[Annotated[str, AfterValidator(syntax.label_key)], LabelValue],
    Field(max_length=PAIRS_MAX),
    _map_schema(_text(syntax.NAME_MAX, _LABEL_VALUE), cel.LABELS),
]
Annotations = Annotated[
    dict[Annotated[str, AfterValidator(syntax.annotation_key)], Annotated[str, Field(max_length=ANNOTATIONS_MAX)]],
    Field(max_length=PAIRS_MAX),
    AfterValidator(_within_total),
    _map_schema({"type": "string", "maxLength": ANNOTATIONS_MAX}, cel.ANNOTATIONS),
]
LabelKey = Annotated[str, AfterValidator(syntax.qualified_name), _schema(syntax.KEY_MAX, *cel.LABEL_KEY)]
SelectorLabels = Annotated[
    dict[Annotated[str, AfterValidator(syntax.qualified_name)], LabelValue],
    Field(max_length=SELECTED_MAX),
    WithJsonSchema(
        {
            "type": "object",
            "nullable": True,
            "maxProperties": SELECTED_MAX,
            "additionalProperties": _text(syntax.NAME_MAX, _LABEL_VALUE),
            "x-kubernetes-validations": [cel.LABEL_KEYS],
        }
    ),
]
SelectorValues = Annotated[
    tuple[LabelValue, ...],
    Lax,
    Field(max_length=SELECTOR_VALUES_MAX),
    _list_schema(_LABEL_VALUE, items_max=SELECTOR_VALUES_MAX, longest=syntax.NAME_MAX),
]

"""The rules that the API server checks by itself (CEL), also when no webhook answers.

Rules over several fields compare with the old object, so that one stored before a rule existed can still be changed
elsewhere: Kubernetes' own ratcheting only sees whole objects and lists.
"""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any, Final, NamedTuple, TypedDict

from crds import patterns, syntax
from crds.cron import ALLOWED as CRON_ALLOWED
from crds.dates import DATES_ALLOWED, RANGE_MAX, RANGE_MESSAGE
from crds.providers import ProviderPolicy, kinds_expression
from crds.values import format_duration

VALIDATIONS: Final = "x-kubernetes-validations"
NOT_BEING_DELETED: Final = (
    "request.operation == 'CREATE' || !has(object.metadata.deletionTimestamp) || object.?spec != oldObject.?spec"
)
"""For webhooks: a deletion goes on unasked, but an edit of the spec meanwhile is judged like any other.

Server-side apply stores a made-up deletionTimestamp, so at creation it says nothing.
"""
CHANGES_THE_SPEC: Final = "oldObject == null || object.spec != oldObject.spec"
"""For policies: finalizers, labels and annotations are never asked about, during a deletion or before."""


class CelRule(TypedDict, total=False):
    """One entry of `x-kubernetes-validations`."""

    rule: str
    message: str
    fieldPath: str
    reason: str
    optionalOldSelf: bool


class Check(NamedTuple):
    """One entry of a policy's `validations`; `message_expression` is CEL for a message that names values."""

    field: str
    expression: str
    message: str
    message_expression: str = ""
    reason: str = "Invalid"

    def to_json(self) -> dict[str, Any]:
        """As the API has it."""
        entry = {"expression": self.expression, "message": f"{self.field}: {self.message}", "reason": self.reason}
        return {**entry, "messageExpression": self.message_expression} if self.message_expression else entry


def validations(rules: Iterable[CelRule]) -> dict[str, Any]:
    """The rules as schema words."""
    return {VALIDATIONS: list(rules)}


def _quoted(pattern: str) -> str:
    """A pattern as a raw CEL text."""
    return f"r'{pattern}'"


def matches(pattern: str, message: str) -> CelRule:
    """The same as `pattern` in a schema, with a message that helps the reader of the refusal."""
    return {"rule": f"self.matches({_quoted(pattern)})", "message": message}


def one_of(values: Iterable[str]) -> CelRule:
    """One of a few words."""
    listed = [f"'{value}'" for value in values]
    return {"rule": f"self in [{', '.join(listed)}]", "message": f"must be {' or '.join(listed)}"}


def duration(limit: timedelta) -> CelRule:
    """A duration's grammar and bounds."""
    seconds = int(limit.total_seconds())
    # Seven digits are too long in every unit, and more of them would be too much for CEL.
    readable = f"self != '' && self.matches({_quoted(patterns.DURATION)}) && !self.matches('[1-9][0-9]{{6}}')"
    bounds = f"duration(self) > duration('0s') && duration(self) <= duration('{seconds}s')"
    return {
        "rule": f"{readable} && {bounds}",
        "message": f"must be a duration such as 90s, 5m or 1h30m, more than 0 and at most {format_duration(limit)}",
    }


def lead(limit: timedelta) -> CelRule:
    """A duration, or Auto."""
    fixed = duration(limit)
    return {"rule": f"self == 'Auto' || {fixed['rule']}", "message": f"{fixed['message']}; or Auto"}


_WORDS: Final = (
    *(("sun", "0"), ("mon", "1"), ("tue", "2"), ("wed", "3"), ("thu", "4"), ("fri", "5"), ("sat", "6")),
    *(("jan", "1"), ("feb", "2"), ("mar", "3"), ("apr", "4"), ("may", "5"), ("jun", "6")),
    *(("jul", "7"), ("aug", "8"), ("sep", "9"), ("oct", "10"), ("nov", "11"), ("dec", "12")),
)
_IN_NUMBERS: Final = "self.lowerAscii()" + "".join(f".replace('{word}', '{number}')" for word, number in _WORDS)
_BLANK: Final = "[ \\t]+"


def _only(values: str) -> str:
    """A cron field that chooses nothing but these values."""
    value = f"0*({values})"
    return f"{value}(-{value})?(,{value}(-{value})?)*"


def _never(days: str, months: str) -> str:
    return f"[ \\t]*[^ \\t]+{_BLANK}[^ \\t]+{_BLANK}{_only(days)}{_BLANK}{_only(months)}{_BLANK}[*].*"


CRON: Final[tuple[CelRule, ...]] = (
    matches(patterns.CRON, CRON_ALLOWED),
    {
        # No more digits than a number can have, as this is asked of texts that are no cron expressions too.
        "rule": f"{_IN_NUMBERS}.findAll('[0-9]{{1,4}}-[0-9]{{1,4}}')"
        ".all(r, int(r.split('-')[0]) <= int(r.split('-')[1]))",
        "message": "a range must not run backwards; split it in two",
    },
    {
        "rule": "!self.lowerAscii().matches("
        + _quoted(f"^({_never('30|31', '2|feb')}|{_never('31', '2|4|6|9|11|feb|apr|jun|sep|nov')})$")
        + ")",
        "message": "never fires: there is no such date",
    },
)

_DAY: Final = "timestamp(self.split('/')[{}] + 'T00:00:00Z')"
_LENGTH: Final = f"{_DAY.format(1)} - {_DAY.format(0)}"
DATES: Final[tuple[CelRule, ...]] = (
    matches(patterns.DATES, DATES_ALLOWED),
    {
        # Asked of texts that are no dates too, and must not fail on them.
        "rule": f"!self.contains('/') || !self.matches({_quoted(patterns.DATES)})"
        f" || {_LENGTH} >= duration('0s') && {_LENGTH} < duration('{RANGE_MAX * 24}h')",
        "message": RANGE_MESSAGE,
    },
)
EXCEPTION: Final[CelRule] = {
    "rule": "(has(self.dates) && size(self.dates) > 0) != has(self.calendarRef)",
    "message": "needs either dates, with at least one entry, or calendarRef",
}

ICS_SIZE: Final[CelRule] = {
    "rule": f"size(bytes(self)) <= {1024 * 1024}",
    "message": "must be at most 1 MiB; put a larger calendar into several",
}
ICS: Final[CelRule] = {
    "rule": "has(self.inline) != has(self.configMapKeyRef)",
    "message": "needs either inline or configMapKeyRef",
}
CALENDAR: Final[CelRule] = {
    "rule": "has(self.dates) && size(self.dates) > 0 || has(self.yearly) && size(self.yearly) > 0"
    " || has(self.holidays) || has(self.ics)",
    "message": "needs dates or yearly with at least one entry, or holidays, or ics",
}


def _is_label_key(key: str) -> str:
    return (
        f"{key}.matches({_quoted(syntax.anchored(syntax.QUALIFIED_NAME))}) && {key}.indexOf('/') <= {syntax.PREFIX_MAX}"
    )


LABEL_KEY: Final[tuple[CelRule, ...]] = ({"rule": _is_label_key("self"), "message": syntax.KEY_MESSAGE},)
LABEL_KEYS: Final[CelRule] = {
    "rule": f"self.all(k, {_is_label_key('k')})",
    "message": f"keys {syntax.KEY_MESSAGE}",
}

TAINT_KEY: Final[tuple[CelRule, ...]] = (
    matches(syntax.anchored(syntax.QUALIFIED_NAME), syntax.KEY_MESSAGE),
    {
        "rule": f"!self.matches({_quoted('^' + syntax.TAINT_RESERVED)})",
        "message": syntax.TAINT_RESERVED_MESSAGE,
    },
)

COMMAND: Final[CelRule] = {
    "rule": "self.trim() != ''",
    "message": "must not be blank: white space occurs in nearly every command line",
}

THERE_BEFORE: Final = " || oldSelf.optMap(old, k in old).orValue(false)"
"""A key that an update did not bring; for Kubernetes' own ratcheting the map has changed as a whole."""


def _keys(exceptions: tuple[str, ...], key: str = "k") -> tuple[CelRule, CelRule]:
    allowed = "".join(f" || {key}.startsWith('{prefix}')" for prefix in exceptions)
    return (
        {
            "rule": f"self.all(k, {key}.matches({_quoted(syntax.anchored(syntax.QUALIFIED_NAME))})"
            f" && k.indexOf('/') <= {syntax.PREFIX_MAX}{THERE_BEFORE})",
            "message": f"keys {syntax.KEY_MESSAGE}",
            "optionalOldSelf": True,
        },
        {
            "rule": f"self.all(k, !{key}.matches({_quoted('^' + syntax.TEMPLATE_RESERVED)}){allowed}{THERE_BEFORE})",
            "message": syntax.template_reserved_message(exceptions),
            "optionalOldSelf": True,
        },
    )


LABELS: Final[tuple[CelRule, ...]] = _keys(syntax.LABEL_EXCEPTIONS)
ANNOTATIONS: Final[tuple[CelRule, ...]] = _keys(syntax.ANNOTATION_EXCEPTIONS, "k.lowerAscii()")


class Several(NamedTuple):
    """A rule over several fields of one object, of which `field` is the one to blame."""

    rule: str
    message: str
    field: str
    inputs: tuple[str, ...]


def _ratcheted(rule: Several) -> CelRule:
    """A rule that an update cannot be blamed for if the old object broke it already."""
    before = rule.rule.replace("self.", "old.")
    ratcheted: CelRule = {
        "rule": f"({rule.rule}) || oldSelf.optMap(old, !({before})).orValue(false)",
        "message": rule.message,
    }
    if rule.field:
        ratcheted["fieldPath"] = f".{rule.field}"
    return {**ratcheted, "optionalOldSelf": True}


def _filled(field: str) -> str:
    return f"(has(self.{field}) && size(self.{field}) > 0)"


_WEEKLY: Final = f"({_filled('daysOfWeek')} || {_filled('hoursOfDay')})"
_WINDOWS: Final = _filled("windows")
_CHOICE: Final = ("cron", "daysOfWeek", "hoursOfDay", "windows")
NO_CHOICE: Final = "needs daysOfWeek or hoursOfDay with at least one entry, or cron, or windows with at least one entry"
CRON_AND_WEEKLY: Final = "cannot be combined with daysOfWeek or hoursOfDay; use one or the other"
WINDOWS_AND_OTHERS: Final = "cannot be combined with daysOfWeek, hoursOfDay or cron; use windows alone"

SCHEDULE_FIELDS: Final = (
    Several(f"has(self.cron) || {_WEEKLY} || {_WINDOWS}", NO_CHOICE, "", _CHOICE),
    Several(f"!has(self.cron) || !{_WEEKLY}", CRON_AND_WEEKLY, "cron", _CHOICE[:3]),
    Several(f"!{_WINDOWS} || !has(self.cron) && !{_WEEKLY}", WINDOWS_AND_OTHERS, "windows", _CHOICE),
    Several(
        "has(self.cron) || !has(self.duration)",
        "needs cron: it says how long a window opened by cron lasts",
        "duration",
        ("duration", "cron"),
    ),
)
SCHEDULE: Final[tuple[CelRule, ...]] = tuple(_ratcheted(rule) for rule in SCHEDULE_FIELDS)

SPEC_MISSING: Final = "is required, unless classRef names a class"
CLASS_AND_SPEC: Final = "cannot be combined with classRef; the class says what is created"
PARAMETERS_ALONE: Final = "needs classRef: parameters are those of a class"
PROVIDER_SPECS: Final = ("bootstrapSpec", "infrastructureSpec")

SPEC_FIELDS: Final = (
    *(
        Several(f"has(self.classRef) || has(self.{name})", SPEC_MISSING, name, ("classRef", name))
        for name in PROVIDER_SPECS
    ),
    *(
        Several(f"!has(self.classRef) || !has(self.{name})", CLASS_AND_SPEC, name, ("classRef", name))
        for name in PROVIDER_SPECS
    ),
    Several(
        "has(self.classRef) || !has(self.parameters)",
        PARAMETERS_ALONE,
        "parameters",
        ("classRef", "parameters"),
    ),
)
SPEC: Final[tuple[CelRule, ...]] = tuple(_ratcheted(rule) for rule in SPEC_FIELDS)

NAME_TOO_LONG: Final = f"metadata.name must be at most {syntax.MACHINE_NAME_MAX} characters"
CLUSTER_MOVED: Final = "cannot change while a Machine exists"

ROOT: Final[tuple[CelRule, ...]] = (
    {
        "rule": f"oldSelf.hasValue() || size(self.metadata.name) <= {syntax.MACHINE_NAME_MAX}",
        "message": NAME_TOO_LONG,
        "optionalOldSelf": True,
    },
    {
        "rule": "!has(oldSelf.status) || !has(oldSelf.status.machineRef)"
        " || self.spec.clusterName == oldSelf.spec.clusterName",
        "message": CLUSTER_MOVED,
        "fieldPath": ".spec.clusterName",
    },
)


def allowed_groups(groups: Iterable[str]) -> CelRule:
    """The operator's allowlist, for one envelope."""
    ordered = sorted(groups)
    return {
        "rule": " || ".join(f"self.startsWith('{group}/')" for group in ordered) or "false",
        "message": f"group is not allowed here; allowed: {', '.join(ordered)}",
    }


def allowed_kinds(policy: ProviderPolicy, envelope: str) -> CelRule:
    """The kinds of a machine's own objects, for one envelope, but for those that reach further."""
    allowed = f"self.matches({_quoted(kinds_expression(policy.kinds(envelope)))})"
    refused = f"self.matches({_quoted(kinds_expression(policy.refused_kinds))})"
    return {"rule": f"{allowed} && !{refused}", "message": policy.allowed_kinds(envelope)}

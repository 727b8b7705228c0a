"""ValidatingAdmissionPolicies made from the rulebook, for clusters that do not want webhooks.

The rules that the CRD carries are lifted from its schema, so that they hold also where an older CRD is installed (Helm
never upgrades one), and those that a CRD cannot say are added. An update answers only for what it changes in the
spec, so that nothing here can stand in the operator's way or in that of a deletion.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from crds import advice, cel, classpolicy, countries, names, overridepolicy, syntax, zones
from crds.bounds import DEPTH_MAX, DEPTH_MESSAGE
from crds.cel import Check
from crds.classes import CLASS_FIELD
from crds.fields import ANNOTATIONS_MAX
from crds.providers import BOOTSTRAP, DEFAULT_POLICY, INFRASTRUCTURE, ProviderPolicy
from crds.rules import ONLY_CLASSES
from crds.schema import object_schema

Manifest = dict[str, Any]

RULES: Final = "5spot-scheduledmachines"
TIMEZONES: Final = "5spot-timezones"
ADVICE: Final = "5spot-advice"
DEPTH: Final = "5spot-depth"
CALENDARS: Final = "5spot-calendars"
OVERRIDES: Final = "5spot-overrides"
CLASSES: Final = "5spot-classes"
PART_OF: Final = {"app.kubernetes.io/part-of": "5spot"}


class Place(NamedTuple):
    """An object within a ScheduledMachine: the variables that hold it as it is to be and as it was."""

    now: str
    before: str

    def same(self, field: str) -> str:
        """Whether an update leaves the field alone."""
        return f"{self.now}.?{field} == {self.before}.?{field}"

    def absent(self, field: str) -> str:
        """Whether the field is not given; null counts as that."""
        return f"!has({self.now}.{field}) || {self.now}.{field} == null"


PLACES: Final = {
    "spec": Place("variables.spec", "variables.oldSpec"),
    "spec.schedule": Place("variables.schedule", "variables.oldSchedule"),
    "spec.classRef": Place("variables.classRef", "variables.oldClassRef"),
    f"spec.{BOOTSTRAP}": Place("variables.bootstrap", "variables.oldBootstrap"),
    f"spec.{INFRASTRUCTURE}": Place("variables.infrastructure", "variables.oldInfrastructure"),
    "spec.machineTemplate": Place("variables.template", "variables.oldTemplate"),
}
NEW_KEYS: Final = {
    "spec.machineTemplate.labels": "variables.newLabels",
    "spec.machineTemplate.annotations": "variables.newAnnotations",
}
"""For maps whose rules are about keys: those that an update adds."""


def manifests(policy: ProviderPolicy = DEFAULT_POLICY) -> dict[str, list[Manifest]]:
    """Each policy with its binding, by the name of the file that they go into."""
    return {
        "scheduledmachines.yaml": _bound(_rules(policy), "Deny"),
        "timezones.yaml": _bound(_timezones(), "Deny"),
        "depth.yaml": _bound(_depth(), "Deny"),
        "advice.yaml": _bound(_advice(), "Warn"),
        "calendars.yaml": _bound(_calendars(), "Deny"),
        "overrides.yaml": _bound(_overrides(), "Deny"),
        "classes.yaml": _bound(_classes(), "Deny", classpolicy.PARAM_REF),
    }


def _bound(policy: Manifest, action: str, param_ref: Manifest | None = None) -> list[Manifest]:
    name = policy["metadata"]["name"]
    params = {"paramRef": param_ref} if param_ref else {}
    binding = {
        **_envelope("ValidatingAdmissionPolicyBinding", name),
        "spec": {"policyName": name, "validationActions": [action], **params},
    }
    return [policy, binding]


def _policy(name: str, variables: dict[str, str], checks: Iterable[Check]) -> Manifest:
    return {
        **_envelope("ValidatingAdmissionPolicy", name),
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {
                "resourceRules": [
                    {
                        "apiGroups": [names.GROUP],
                        "apiVersions": [names.VERSION],
                        "operations": ["CREATE", "UPDATE"],
                        "resources": [names.PLURAL],
                        "scope": "Namespaced",
                    }
                ]
            },
            "matchConditions": [
                {"name": "changes-the-spec", "expression": cel.CHANGES_THE_SPEC},
            ],
            "variables": [{"name": key, "expression": value} for key, value in variables.items()],
            "validations": [check.to_json() for check in checks],
        },
    }


def _envelope(kind: str, name: str) -> Manifest:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": name, "labels": dict(PART_OF)},
    }


def _rules(policy: ProviderPolicy) -> Manifest:
    return _policy(RULES, _variables(), (*_lifted(object_schema(policy), ""), *_several(), *_only_here()))


_EMPTY: Final = "dyn({})"


def _variables() -> dict[str, str]:
    """What the checks look at. All of it is `dyn`: an optional field may be null, which its type does not say."""
    found = {"spec": "dyn(object.spec)", "oldSpec": f"oldObject == null ? {_EMPTY} : dyn(oldObject.spec)"}
    parts = (
        ("schedule", "schedule"),
        ("classRef", "classRef"),
        ("bootstrap", BOOTSTRAP),
        ("infrastructure", INFRASTRUCTURE),
    )
    for name, field in parts:
        found |= _pair(name, "variables.spec", "variables.oldSpec", field)
    found |= _pair("template", "variables.spec", "variables.oldSpec", "machineTemplate")
    for name in ("labels", "annotations"):
        found |= _pair(name, "variables.template", "variables.oldTemplate", name)
        found[f"new{name.title()}"] = f"variables.{name}.filter(k, !(k in variables.old{name.title()}))"
    found |= _pair("taints", "variables.spec", "variables.oldSpec", "nodeTaints", empty="dyn([])")
    return found


def _pair(name: str, now: str, before: str, field: str, empty: str = _EMPTY) -> dict[str, str]:
    """A part of the object as it is to be and as it was; empty where it is absent or null."""
    return {
        each: f"has({container}.{field}) && {container}.{field} != null ? {container}.{field} : {empty}"
        for each, container in ((name, now), (f"old{name[0].upper()}{name[1:]}", before))
    }


def _lifted(schema: Manifest, path: str) -> Iterator[Check]:
    """The rules that the CRD's schema carries below `path`, but for those over several fields."""
    for name, inner in schema.get("properties", {}).items():
        here = f"{path}.{name}".lstrip(".")
        if _is_list_of_objects(inner) and path in PLACES:
            yield from _lifted_from_list(here, PLACES[path], name, inner)
            continue
        for rule in inner.get(cel.VALIDATIONS, ()):
            if inner["type"] == "string":
                yield Check(here, _of_a_field(PLACES[path], name, rule["rule"]), rule["message"])
            elif here in NEW_KEYS:
                yield Check(here, _about(NEW_KEYS[here], rule["rule"].replace(cel.THERE_BEFORE, "")), rule["message"])
        for rule in inner.get("items", {}).get(cel.VALIDATIONS, ()):
            each = f"self.all(each, {_about('each', rule['rule'])})"
            yield Check(f"{here}[]", _of_a_field(PLACES[path], name, each), rule["message"])
        for rule in inner.get("additionalProperties", {}).get(cel.VALIDATIONS, ()):
            yield Check(
                here,
                _of_values(Place(f"variables.{name}", f"variables.old{name.title()}"), rule["rule"]),
                rule["message"],
            )
        yield from _lifted(inner, here)
    if schema.get("type") == "array":
        yield from _lifted_from_items(schema["items"], path)


def _is_list_of_objects(schema: Manifest) -> bool:
    """Whether it is a list that is written as a whole, so that an update which touches it answers for all of it."""
    return schema.get("x-kubernetes-list-type") == "atomic" and "properties" in schema["items"]


def _lifted_from_list(path: str, place: Place, field: str, schema: Manifest) -> Iterator[Check]:
    for suffix, expression, message in _within(schema, "self"):
        yield Check(f"{path}{suffix}", _of_a_field(place, field, expression), message)


def _within(schema: Manifest, subject: str, depth: int = 0) -> Iterator[tuple[str, str, str]]:
    """The rules about a subject and all that is in it: the way there, an expression, and what it says."""
    for rule in schema.get(cel.VALIDATIONS, ()):
        yield "", _about(subject, _null_is_absent(rule["rule"], "self")), rule["message"]
    for name, inner in schema.get("properties", {}).items():
        absent = Place(subject, "").absent(name)
        for suffix, expression, message in _within(inner, f"{subject}.{name}", depth):
            yield f".{name}{suffix}", f"{absent} || ({expression})", message
    if "items" in schema:
        each = f"e{depth}"
        for suffix, expression, message in _within(schema["items"], each, depth + 1):
            yield f"[]{suffix}", f"{subject}.all({each}, {expression})", message


def _null_is_absent(rule: str, subject: str) -> str:
    """In a CRD's rules null counts as absent, here it has to be said."""
    return re.sub(rf"has\({subject}\.(\w+)\)", rf"(has({subject}.\1) && {subject}.\1 != null)", rule)


def _lifted_from_items(items: Manifest, path: str) -> Iterator[Check]:
    place = Place("t", "")
    for name, inner in items.get("properties", {}).items():
        for rule in inner.get(cel.VALIDATIONS, ()):
            same = f"variables.oldTaints.exists(o, o.key == t.key && o.?{name} == t.?{name})"
            rules = f"{place.absent(name)} || {same} || ({_about(f't.{name}', rule['rule'])})"
            expression = f"variables.taints.all(t, {rules})"
            yield Check(f"{path}[].{name}", expression, rule["message"])


def _of_a_field(place: Place, field: str, rule: str) -> str:
    return f"{place.absent(field)} || {place.same(field)} || ({_about(f'{place.now}.{field}', rule)})"


def _of_values(place: Place, rule: str) -> str:
    value = f"{place.now}[k]"
    return f"{place.now}.all(k, k in {place.before} && {place.before}[k] == {value} || ({_about(value, rule)}))"


def _about(subject: str, rule: str) -> str:
    """A rule of the CRD, which calls its subject `self`, as one about something of another name."""
    return re.sub(r"\bself\b", lambda _found: subject, rule)


def _several() -> Iterator[Check]:
    """The rules over several fields."""
    for path, rules in (("spec.schedule", cel.SCHEDULE_FIELDS), ("spec", cel.SPEC_FIELDS)):
        place = PLACES[path]
        for rule in rules:
            untouched = " && ".join(f"{place.same(each)}" for each in rule.inputs)
            said = _about(place.now, _null_is_absent(rule.rule, "self"))
            field = f"{path}.{rule.field}".rstrip(".")
            yield Check(field, f"oldObject != null && {untouched} || ({said})", rule.message)


def _only_here() -> Iterator[Check]:
    """What a CRD can say only in part, or not at all."""
    longest = syntax.MACHINE_NAME_MAX
    yield Check(
        "metadata.name",
        f"oldObject != null || size(object.metadata.name) <= {longest}",
        cel.NAME_TOO_LONG.removeprefix("metadata.name "),
    )
    yield Check(
        "spec.clusterName",
        "oldObject == null || dyn(oldObject).?status.?machineRef.?name.orValue('') == ''"
        " || variables.spec.?clusterName == variables.oldSpec.?clusterName",
        cel.CLUSTER_MOVED,
    )
    for envelope in (BOOTSTRAP, INFRASTRUCTURE):
        yield _own_namespace(envelope)
    yield _only_classes()
    yield Check(
        "spec.machineTemplate.annotations",
        "variables.annotations == variables.oldAnnotations || variables.annotations"
        f".map(k, size(bytes(k)) + size(bytes(string(variables.annotations[k])))).sum() <= {ANNOTATIONS_MAX}",
        f"must be at most {ANNOTATIONS_MAX} bytes together, keys included",
    )


def _only_classes() -> Check:
    place = PLACES["spec"]
    untouched = " && ".join(place.same(each) for each in ("classRef", BOOTSTRAP, INFRASTRUCTURE))
    tenancy = f"dyn(namespaceObject.metadata).?labels[?'{names.LABEL_TENANCY}'].orValue('')"
    return Check(
        CLASS_FIELD,
        f"oldObject != null && {untouched} || {tenancy} != '{names.TENANCY_CLASSES}' || !({place.absent('classRef')})",
        ONLY_CLASSES,
        reason="Forbidden",
    )


def _own_namespace(envelope: str) -> Check:
    place, field = PLACES[f"spec.{envelope}"], f"spec.{envelope}.namespace"
    because = "or left out: an owner reference cannot cross namespaces"
    return Check(
        field,
        _of_a_field(place, "namespace", "self == request.namespace"),
        f"must be the ScheduledMachine's own namespace, {because}",
        f"'{field}: must be the ScheduledMachine\\'s own namespace, ' + request.namespace + ', {because}'",
    )


def _timezones() -> Manifest:
    known = ", ".join(f"'{name}'" for name in sorted(zones.names()))
    variables = {key: value for key, value in _variables().items() if key.lower().endswith(("spec", "schedule"))}
    check = Check(
        "spec.schedule.timezone",
        _of_a_field(PLACES["spec.schedule"], "timezone", f"self in [{known}]"),
        "is not the name of a time zone; upper and lower case matter, as in Europe/Berlin",
    )
    return _policy(TIMEZONES, variables, [check])


def _depth() -> Manifest:
    """What no CRD can say of fields that it does not know; apart from the rest, as it has a budget of its own then."""
    envelopes = {name: field for name, field in _variables().items() if name.lower().endswith(ENVELOPES)}
    checks = (_not_too_deep(envelope) for envelope in (BOOTSTRAP, INFRASTRUCTURE))
    return _policy(DEPTH, envelopes, checks)


ENVELOPES: Final = ("spec", "bootstrap", "infrastructure")


def _not_too_deep(envelope: str) -> Check:
    place = PLACES[f"spec.{envelope}"]
    rule = f"!({_deeper(f'{place.now}.spec', DEPTH_MAX)})"
    return Check(f"spec.{envelope}.spec", _of_a_field(place, "spec", rule), DEPTH_MESSAGE)


def _deeper(value: str, left: int) -> str:
    """Whether a value of any kind has more than so many levels below it.

    A list of one gives each value a name; `map` would make lists, which takes quadratic time.
    """
    nested = f"(type({value}) == map || type({value}) == list)"
    if left == 0:
        return f"{nested} && size({value}) > 0"
    inner = f"v{left}"
    below = f"[type({value}) == map ? {value}[x] : x].exists({inner}, {_deeper(inner, left - 1)})"
    return f"{nested} && {value}.exists(x, {below})"


def _calendars() -> Manifest:
    """The countries and subdivisions, a list too long for a CRD; all other rules of calendars are in their CRDs."""
    known = countries.known()
    listed = ", ".join(f"'{country}': {_words(parts)}" for country, parts in known.items())
    variables = {
        "holidays": _or_empty("dyn(object.spec)", "holidays"),
        "oldHolidays": f"oldObject == null ? {_EMPTY} : ({_or_empty('dyn(oldObject.spec)', 'holidays')})",
        "known": f"{{{listed}}}",
        "same": "variables.holidays == variables.oldHolidays",
        "country": "variables.holidays.?country.orValue('')",
        "subdivision": "variables.holidays.?subdivision.orValue(null)",
    }
    checks = (
        Check(
            "spec.holidays.country",
            "variables.country == '' || variables.same || variables.country in variables.known",
            "is not a country whose holidays are known; write its ISO 3166-1 code of two letters, such as GB",
        ),
        Check(
            "spec.holidays.subdivision",
            "variables.subdivision == null || variables.same || !(variables.country in variables.known)"
            " || variables.subdivision in variables.known[variables.country]",
            "is not a subdivision of this country with holidays of its own; leave it out or write a code such as SCT",
        ),
    )
    policy = _policy(CALENDARS, variables, checks)
    (rule,) = policy["spec"]["matchConstraints"]["resourceRules"]
    rule |= {"resources": [names.CALENDAR_PLURAL, names.CLUSTER_CALENDAR_PLURAL], "scope": "*"}
    return policy


def _overrides() -> Manifest:
    """Who may override, and that users write only their own names; what an override may say is in its CRD."""
    policy = _policy(OVERRIDES, overridepolicy.VARIABLES, overridepolicy.checks())
    (rule,) = policy["spec"]["matchConstraints"]["resourceRules"]
    rule["resources"] = [names.OVERRIDE_PLURAL]
    return policy


def _classes() -> Manifest:
    """What ScheduledMachines give to their classes, as far as CEL can compare it."""
    policy = _policy(CLASSES, classpolicy.VARIABLES, classpolicy.checks())
    # Without the kind of classes the policy would refuse every object; the controller checks all of it again.
    policy["spec"]["failurePolicy"] = "Ignore"
    policy["spec"]["paramKind"] = dict(classpolicy.PARAM_KIND)
    policy["spec"]["matchConditions"] = [
        {"name": "names-a-class", "expression": "dyn(object.spec).?classRef.orValue(dyn(null)) != null"},
        {"name": "changes-what-the-class-gets", "expression": classpolicy.MATCH},
    ]
    return policy


def _words(words: Iterable[str]) -> str:
    return "[" + ", ".join(f"'{word}'" for word in words) + "]"


def _or_empty(container: str, field: str) -> str:
    given = f"{container}.{field}"
    return f"has({given}) && {given} != null ? {given} : {_EMPTY}"


_DAYS: Final = "['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun']"


def _advice() -> Manifest:
    """What is legal but probably not meant; the API server sends the warning to the client and stores the object."""
    variables = {
        "schedule": "dyn(object.spec.schedule)",
        "days": _parts("daysOfWeek"),
        "hours": _parts("hoursOfDay"),
        "dayPairs": _pairs("variables.days", f"{_DAYS}.indexOf(each.trim())"),
        "hourPairs": _pairs("variables.hours", "int(each.trim())"),
        "pastMidnight": "variables.hourPairs.exists(p, p[0] > p[1])",
        "everyDay": "size(variables.days) == 0 || [0, 1, 2, 3, 4, 5, 6].all(d, variables.dayPairs.exists(p,"
        " p[0] <= p[1] ? p[0] <= d && d <= p[1] : p[0] <= d || d <= p[1]))",
        "commands": "dyn(object.spec).?killIfCommands.orValue(null)",
        "template": "dyn(object.spec).?machineTemplate.orValue(null)",
    }
    checks = (
        Check(
            "spec.schedule",
            "!variables.pastMidnight || variables.everyDay",
            "hours that run past midnight are active in the morning and in the evening of the days named, "
            "not in the morning after: day and hour are tested separately",
        ),
        Check(
            "spec.killIfCommands",
            "variables.commands == null || size(variables.commands) == 0",
            "a reclaim sets spec.schedule.enabled to false; if GitOps manages this object, let it ignore that field, "
            "or it will undo the reclaim",
        ),
        Check(
            "spec.machineTemplate.version",
            f"{_needs_no_version()} || variables.template != null && variables.template.?version.orValue(null) != null",
            advice.VERSION_MISSING,
        ),
    )
    policy = _policy(ADVICE, variables, checks)
    policy["spec"]["failurePolicy"] = "Ignore"  # good advice is no reason to stop anything
    return policy


def _needs_no_version() -> str:
    kinds = ", ".join(f"'{kind}'" for kind in sorted(advice.KINDS_WITH_OWN_VERSION))
    given = "dyn(object.spec).?bootstrapSpec.orValue(dyn(null))"
    return f"{given} == null || {given}.kind in [{kinds}]"


def _parts(field: str) -> str:
    """All parts of all items of a list, such as `mon-wed` and `fri` of `[mon-wed,fri]`."""
    given = f"variables.schedule.?{field}.orValue(null)"
    joined = f"({given} == null ? dyn([]) : {given}).join(',')"
    return f"{joined}.split(',').filter(p, p.trim() != '')"


def _pairs(parts: str, number: str) -> str:
    """First and last of each part, in numbers: `mon-wed` is 0 and 2, `mon` is 0 and 0."""
    return f"{parts}.map(p, p.split('-').map(each, {number})).map(p, [p[0], p[size(p) - 1]])"

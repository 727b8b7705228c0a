"""Who may override, as a policy says it in CEL where there are no webhooks; `crds.policies` makes the manifest."""

from collections.abc import Iterator
from typing import Final

from crds import names
from crds.cel import Check
from crds.fields import OVERRIDDEN_MAX
from crds.scheduleoverride import FIXED_MESSAGE, IMMUTABLE

NEEDED: Final = f"the verb {names.OVERRIDE_VERB} on {names.PLURAL}.{names.GROUP}"

_CALLER: Final = "the user who creates the override or changes until"

VARIABLES: Final = {
    "spec": "dyn(object.spec)",
    "oldSpec": "oldObject == null ? dyn({}) : dyn(oldObject.spec)",
    "machines": "has(variables.spec.machines) && variables.spec.machines != null ? variables.spec.machines : dyn([])",
    "selects": "has(variables.spec.selector) && variables.spec.selector != null",
    "asked": "oldObject == null || variables.spec.until != variables.oldSpec.until",
    "ours": f"authorizer.group('{names.GROUP}').resource('{names.PLURAL}').namespace(request.namespace)",
}


def checks() -> Iterator[Check]:
    """The caller needs the verb on each machine, is who asks for it, and changes nothing but the end."""
    yield Check(
        "spec.requestedBy",
        "variables.spec.?requestedBy == (variables.asked ? optional.of(dyn(request.userInfo.username)) :"
        " variables.oldSpec.?requestedBy)",
        f"must be {_CALLER}",
        f"'spec.requestedBy: must be ' + request.userInfo.username + ', {_CALLER}'",
        "Forbidden",
    )
    for field in IMMUTABLE:
        expression = f"oldObject == null || variables.spec.?{field} == variables.oldSpec.?{field}"
        yield Check(f"spec.{field}", expression, FIXED_MESSAGE)
    # The API server allows two questions to the authorizer in an expression, and 28 in a policy.
    for index in range(OVERRIDDEN_MAX):
        yield _may_override(index)
    yield Check(
        "spec.selector",
        f"!variables.selects || {_allowed('variables.ours')}",
        f"needs {NEEDED} for all machines of the namespace, not for some names",
        reason="Forbidden",
    )


def _may_override(index: int) -> Check:
    name = f"variables.machines[{index}]"
    return Check(
        f"spec.machines[{index}]",
        f"size(variables.machines) <= {index} || {_allowed(f'variables.ours.name({name})')}",
        f"needs {NEEDED}",
        f"'spec.machines[{index}]: needs {NEEDED} for ' + string({name}) + ' in namespace ' + request.namespace",
        "Forbidden",
    )


def _allowed(resource: str) -> str:
    return f"{resource}.check('{names.OVERRIDE_VERB}').allowed()"

"""The health checks for Argo CD and Flux, as docs/gitops.md has them, on what the operator reports of real machines.

Argo CD's script runs under Lua. Flux's expressions are evaluated by an API server, as rules of an admission policy that
refuses every change of a certain annotation, and says by which expression.
"""

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest
import yaml
from lupa.lua54 import LuaRuntime  # type: ignore[import-untyped]

from crds.status import Phase
from local.provider.kinds import MACHINES
from service.kube.errors import Denied
from service.kube.resource import SCHEDULED_MACHINES
from tests.docs import pages
from tests.e2e.manifests import SIX, machine
from tests.e2e.operator import Operator
from tests.integration.policy_door import BINDINGS, POLICIES, applied
from tests.waiting import until

Raw = dict[str, Any]
Judge = Callable[[str], Awaitable[str]]
PAGE = (pages.ROOT / "docs" / "gitops.md",)
(SCRIPT,) = (block.text for block in pages.blocks("lua", pages=PAGE))
(FLUX,) = (
    check
    for block in pages.blocks("yaml", pages=PAGE)
    for check in yaml.safe_load(block.text).get("healthCheckExprs", ())
)
ASKED = "tests.example/verdict"
ORDER = ("inProgress", "failed", "current")
"""As Flux evaluates them: the first that holds decides, and while none does, the object is in progress."""
AS_FLUX = {"Progressing": "inProgress", "Degraded": "failed", "Healthy": "current", "Suspended": "current"}


def health(raw: Raw) -> tuple[str, str]:
    """What the script says, with the object as the only thing that it knows."""
    lua = LuaRuntime(unpack_returned_tuples=True)
    judge: Any = lua.eval(f"function(obj) {SCRIPT} end")
    found = judge(lua.table_from(raw, recursive=True))
    return found["status"], found["message"]


def policy() -> list[Raw]:
    """Refuses what is asked with the first expression of Flux's that holds."""
    rules = [(f"!({of_object(FLUX[name])})", name) for name in ORDER]
    matched = {"apiGroups": ["5spot.finos.org"], "apiVersions": ["v1alpha1"], "resources": ["scheduledmachines"]}
    asked = f"has(object.metadata.annotations) && '{ASKED}' in object.metadata.annotations"
    spec = {
        "matchConstraints": {"resourceRules": [{**matched, "operations": ["UPDATE"]}]},
        "matchConditions": [{"name": "asked", "expression": asked}],
        "validations": [
            {"expression": expression, "message": name, "reason": "Forbidden"}
            for expression, name in (*rules, ("false", "inProgress"))
        ],
    }
    named = {"metadata": {"name": "flux"}}
    binding = {"policyName": "flux", "validationActions": ["Deny"]}
    return [{**POLICIES.envelope(), **named, "spec": spec}, {**BINDINGS.envelope(), **named, "spec": binding}]


def of_object(expression: str) -> str:
    """To Flux the fields of the object are variables."""
    return re.sub(r"(?<![\w.])(?=(?:status|metadata)\b)", "object.", expression)


async def flux(op: Operator, name: str) -> str:
    """What Flux's expressions say; empty until the API server has noticed the policy."""
    asking = {"metadata": {"annotations": {ASKED: ""}}}
    try:
        await op.change(SCHEDULED_MACHINES, name, asking, dry_run=True)
    except Denied as error:
        return error.message.rpartition(": ")[2].removesuffix(f" ({error.status})")
    return ""


@pytest.fixture
async def judged(op: Operator) -> AsyncIterator[Judge]:
    """Argo CD's verdict on the machine, with which Flux must agree."""

    async def judge(name: str) -> str:
        found = health(await op.get(name))[0]
        assert await until(lambda: flux(op, name)) == AS_FLUX[found]
        return found

    async with applied(op.client, policy(), op.namespace):
        yield judge


def test_what_the_operator_has_not_seen_is_in_progress():
    raw = {"metadata": {"generation": 2}}
    assert health(raw)[0] == "Progressing"
    assert health({**raw, "status": {"phase": "Active", "observedGeneration": 1}})[0] == "Progressing"


def test_every_phase_has_a_verdict():
    for phase in Phase:
        status = {"phase": phase.value, "observedGeneration": 1, "message": "why"}
        found, message = health({"metadata": {"generation": 1}, "status": status})
        assert found in {"Healthy", "Progressing", "Degraded", "Suspended"}
        assert message == "why"


async def test_a_machine_is_healthy_while_it_serves_and_when_its_window_is_closed(op: Operator, judged: Judge) -> None:
    await op.apply(machine(infrastructure={"simulate": {"delaySeconds": 2}}))
    await op.phase("worker", "Active", "MachineProvisioning")
    assert await judged("worker") == "Progressing"
    await op.ready("worker")
    assert await judged("worker") == "Healthy"

    await op.hold(MACHINES, "worker-machine")
    op.clock.move_to(SIX)
    await op.phase("worker", "ShuttingDown")
    assert await judged("worker") == "Progressing"
    await op.let_go(MACHINES, "worker-machine")
    await op.phase("worker", "Inactive")
    assert await judged("worker") == "Healthy"


async def test_a_machine_that_is_disabled_or_switched_off_is_suspended(op: Operator, judged: Judge) -> None:
    await op.apply(machine(schedule={"daysOfWeek": ["mon-fri"], "enabled": False}))
    await op.phase("worker", "Disabled")
    assert await judged("worker") == "Suspended"
    await op.edit_spec("worker", killSwitch=True)
    await op.phase("worker", "Terminated")
    assert await judged("worker") == "Suspended"


async def test_a_machine_that_cannot_work_or_is_late_is_degraded_and_says_why(op: Operator, judged: Judge) -> None:
    await op.apply(machine("refused", infrastructure={"simulate": {"failure": "InvalidConfiguration"}}))
    await op.apply(machine("late", infrastructure={"simulate": {"failure": "NodeNeverJoins"}}))
    await op.phase("refused", "Error")
    await op.phase("late", "Active")
    op.clock.advance(timedelta(minutes=16))
    await op.phase("late", "Active", "NotReadyInTime")
    for name in ("refused", "late"):
        raw = await op.get(name)
        assert await judged(name) == "Degraded"
        assert health(raw)[1] == raw["status"]["message"]

"""Dry run: what the schedule asks for is reported and not done.

It covers the rules that follow the schedule. The kill switch, reclaims, deletions and a disabled schedule act.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from crds import names
from crds.status import Phase
from service.decide.plan import Action, Create, Delete, Plan, RecordShutdown
from service.decide.reasons import Reason
from service.decide.situation import Situation


def is_dry_run(annotations: Mapping[str, str], *, default: bool) -> bool:
    """Whether an object is only reported about; its annotation outranks the setting, any value but `false` is yes."""
    found = annotations.get(names.ANNOTATION_DRY_RUN)
    return default if found is None else found.lower() != "false"


def without_actions(s: Situation, plan: Plan) -> Plan:
    """The plan as a sentence: what it would do, with none of it done."""
    if not plan.actions and not _drains(s, plan):
        return plan
    reason, would = _would(s, plan)
    return replace(
        plan,
        phase=_phase(s, plan, reason),
        reason=reason,
        message=f"Dry run: the controller would {would}. {plan.message}",
        actions=(),
        requeue_after=None,
        agent_requeue_after=None,
        backoff=False,
        shutdown=None,
        drain=None,
        taints=None,
    )


def _drains(s: Situation, plan: Plan) -> bool:
    """Whether a shutdown is under way, which may only wait for pods; a Machine that is being deleted is past it."""
    machine = s.world.our_machine
    return plan.shutdown is not None and machine is not None and not machine.deleting


def _would(s: Situation, plan: Plan) -> tuple[Reason, str]:
    created = [action for action in plan.actions if isinstance(action, Create)]
    deleted = [action for action in plan.actions if isinstance(action, Delete)]
    begins = any(isinstance(action, RecordShutdown) and action.started_at is not None for action in plan.actions)
    if created:
        return Reason.WOULD_CREATE, "create " + ", ".join(map(_created, created))
    if deleted:
        return Reason.WOULD_DELETE, "delete " + ", ".join(f"the {each.role} object {each.name}" for each in deleted)
    machine = s.world.our_machine
    if (begins or s.shutdown_started is not None) and machine is not None:
        return Reason.WOULD_DELETE, f"drain the Node and delete Machine {machine.child.name}"
    return Reason.WOULD_CHANGE, ", ".join(dict.fromkeys(map(_named, plan.actions)))


def _created(action: Create) -> str:
    return f"{action.manifest['kind']} {action.manifest['metadata']['name']}"


_NAMES: Final = {
    "AddFinalizer": "add the finalizer",
    "ApplyTaints": "write the taints of the Node",
    "Patch": "bring its objects up to date",
    "Uncordon": "uncordon the Node",
    "InstallAgent": "install the reclaim agent",
    "RemoveAgent": "remove the reclaim agent",
}


def _named(action: Action) -> str:
    return _NAMES.get(type(action).__name__, "change its objects")


def _phase(s: Situation, plan: Plan, reason: Reason) -> Phase:
    """As things stay: a machine that would be created is not there, one that would be deleted is."""
    machine = s.world.our_machine
    if reason is Reason.WOULD_CREATE:
        return Phase.PENDING
    if reason is Reason.WOULD_DELETE and machine is not None and not machine.deleting:
        return Phase.ACTIVE
    return plan.phase

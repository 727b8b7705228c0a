"""What follows from objects that the API server would not let us read, such as for lack of a permission.

The controller treats them neither as present nor as gone: it creates nothing beside them and reports nothing as
finished, but removes the objects that it can read. A ScheduledMachine that is being deleted waits for them no longer
than for anything else.
"""

from crds.status import Phase
from service.decide.outcome import Outcome
from service.decide.plan import Plan
from service.decide.rule import rule
from service.decide.situation import Situation
from service.decide.world import ReadFailure, World


def first_failure(world: World) -> ReadFailure | None:
    """Why not all objects can be read; one that lasts comes before one that is transient."""
    return min(world.unreadable.values(), key=lambda one: one.transient, default=None)


def lasting_failure(world: World) -> ReadFailure | None:
    """Why not all objects can be read, if that lasts until a person corrects it."""
    found = first_failure(world)
    return None if found is None or found.transient else found


@rule(
    when="the controller sees none of its objects, but could not read all of them: a permission is missing, a kind is "
    "no longer served, or a conversion webhook is down",
    then="nothing is created, and nothing is reported as gone",
    phase="Error",
)
def unreadable_objects(s: Situation) -> Plan | None:
    """Wait while no object is visible, but some may exist."""
    return None if s.world.children else wait_until_readable(s)


def wait_until_readable(s: Situation) -> Plan | None:
    """Create nothing beside objects that cannot be read."""
    found = first_failure(s.world)
    if found is None or s.world.our_machine is not None:
        return None
    message = f"{unreadable_message(s.world)} Nothing is created until it can."
    return Plan(Phase.ERROR, found.failure.reason, message, problem=True, shutdown=s.shutdown_started)


def unreadable_message(world: World) -> str:
    """The sentence that says which objects cannot be read, and why; empty if all can."""
    return " ".join(
        f"The controller cannot tell whether the {role} object exists: {one.failure.message.rstrip('.')}."
        for role, one in sorted(world.unreadable.items())
    )


def only_transient_failures(s: Situation, outcome: Outcome) -> bool:
    """Whether nothing was done and the only news is a read failure that may be over at the next pass."""
    return bool(s.world.unreadable) and lasting_failure(s.world) is None and outcome == Outcome()

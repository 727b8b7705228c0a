"""What follows from objects that could not be looked at, such as for want of a permission or of a conversion webhook.

They count neither as there nor as gone: nothing is created beside them and nothing is called finished, but what can be
seen is removed as ever. Who deletes a ScheduledMachine waits for them no longer than for anything else.
"""

from crds.status import Phase
from service.decide.outcome import Outcome
from service.decide.plan import Plan
from service.decide.situation import Situation
from service.decide.world import ReadFailure, World


def first_failure(world: World) -> ReadFailure | None:
    """What is in the way of seeing everything; the one that lasts, if there are several."""
    return min(world.unreadable.values(), key=lambda one: one.transient, default=None)


def lasting_failure(world: World) -> ReadFailure | None:
    """What is in the way and will be until somebody does something about it."""
    found = first_failure(world)
    return None if found is None or found.transient else found


def unreadable_objects(s: Situation) -> Plan | None:
    """The rule: nothing of ours is to be seen, but not everything could be looked at."""
    return None if s.world.children else wait_until_readable(s)


def wait_until_readable(s: Situation) -> Plan | None:
    """Nothing new is made beside what cannot be seen."""
    found = first_failure(s.world)
    if found is None or s.world.our_machine is not None:
        return None
    message = f"{unreadable_message(s.world)} Nothing is created meanwhile."
    return Plan(Phase.ERROR, found.failure.reason, message, problem=True, shutdown=s.shutdown_started)


def unreadable_message(world: World) -> str:
    """The sentence that says what cannot be seen and why; empty if everything can."""
    return " ".join(
        f"Whether the {role} object is there cannot be told: {one.failure.message.rstrip('.')}."
        for role, one in sorted(world.unreadable.items())
    )


def only_transient_failures(s: Situation, outcome: Outcome) -> bool:
    """Whether nothing was done and all that could be told is an obstacle that may be over at the next look."""
    return bool(s.world.unreadable) and lasting_failure(s.world) is None and outcome == Outcome()

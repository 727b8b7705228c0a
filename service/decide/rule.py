"""A rule of the lifecycle: a decision, and the sentences that the table in docs/lifecycle.md shows for it."""

from collections.abc import Callable
from dataclasses import dataclass

from service.decide.plan import Plan
from service.decide.situation import Situation

Decision = Callable[[Situation], Plan | None]


@dataclass(frozen=True, slots=True)
class Rule:
    """Calling it gives the plan, or None if the rule does not apply."""

    name: str
    when: str
    then: str
    phase: str
    decide: Decision

    def __call__(self, s: Situation) -> Plan | None:
        """The plan of this rule, if it applies."""
        return self.decide(s)


def rule(*, when: str, then: str, phase: str) -> Callable[[Decision], Rule]:
    """Make a rule of a function: `when` it applies, what happens `then`, and the phase that is reported."""

    def made(decide: Decision) -> Rule:
        return Rule(decide.__name__, when, then, phase, decide)

    return made

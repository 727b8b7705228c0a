"""Observations and verdicts in words; what both ways of showing the demo, and its summary, say."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Final

from local.demo.expectations import Expectation, ExpectationVerdict
from local.demo.observations import Chronicle, Facts, Kind, Observation

WITH_MESSAGE: Final = ("Inactive", "Pending", "Error")


def moment(instant: datetime) -> str:
    """`Fri 09:00`; London keeps Greenwich time in early March, so zones need no mention."""
    return f"{instant:%a %H:%M}"


def boundary(facts: Observation) -> str:
    """`opens Sat 07:00` or `closes Fri 18:00`."""
    for word in ("closes", "opens"):
        if said := facts.facts.get(word):
            return f"{word} {moment(datetime.fromisoformat(said).astimezone(UTC))}"
    return ""


def change(now: Observation, before: Observation | None) -> str:
    """What is new, in one line; empty if nothing of interest is."""
    line = _line(now)
    if not line or (before and line == _line(before)):
        return ""
    name = now.facts["about"] if now.kind is Kind.EVENT else now.name
    return f"{now.kind:8} {name:14} {line}"


def summary(
    expected: Sequence[Expectation], chronicle: Chronicle, now: datetime
) -> list[tuple[str, str, str, ExpectationVerdict]]:
    """A row per expectation: who, what, what was seen when, and the verdict."""
    return [(each.who, each.what, _seen(each, chronicle), each.verdict(chronicle, now)) for each in expected]


def _seen(expected: Expectation, chronicle: Chronicle) -> str:
    at = expected.find(chronicle)
    due = moment(expected.since)
    if at is None:
        return f"due {due}"
    return f"due {due}, seen {at:%H:%M}" if at.date() == expected.since.date() else f"due {due}, seen {moment(at)}"


def _line(seen: Observation) -> str:
    if seen.facts:
        return _DESCRIBED[seen.kind](seen.facts)
    return "" if seen.kind is Kind.EVENT else "gone"


def _machine(facts: Facts) -> str:
    if facts["phase"] == "New":
        return ""
    machine = f", machine {facts['machine']}" if facts["machine"] else ""
    # What Cluster API waits for changes many times a second: the message is shown only in these phases.
    message = f". {facts['message']}" if facts["phase"] in WITH_MESSAGE else ""
    return f"{facts['phase']}{machine}{message}"


def _node(facts: Facts) -> str:
    extras = ["cordoned"] if facts["cordoned"] else []
    extras += [f"tainted {facts['taints']}"] if facts["taints"] else []
    return ", ".join([facts["state"], *extras])


_DESCRIBED: Final[dict[Kind, Callable[[Facts], str]]] = {
    Kind.MACHINE: _machine,
    Kind.NODE: _node,
    Kind.POD: lambda facts: f"{facts['state']} on {facts['node']}",
    Kind.EVENT: lambda facts: f"{facts['reason']}: {facts['note']}",
}

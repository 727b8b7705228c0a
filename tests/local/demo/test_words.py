"""What the demo prints, line by line."""

from local.demo import words
from local.demo.expectations import PODS, ExpectationVerdict, expectations
from local.demo.observations import Kind, Observation
from local.examples import OFFICE
from tests.local.demo.chronicles import ChronicleBuilder, at, day_of


def lines(builder: ChronicleBuilder) -> list[str]:
    lines, latest = [], dict[tuple[Kind, str], Observation]()
    for seen in builder.chronicle.observations:
        lines.append(words.change(seen, latest.get((seen.kind, seen.name))))
        latest[seen.kind, seen.name] = seen
    return [line for line in lines if line]


def test_a_machines_life_is_printed_by_phases_and_not_by_every_message() -> None:
    builder = ChronicleBuilder()
    builder.machine(8, OFFICE, "New")
    builder.machine(9, OFFICE, "Active", "Provisioning", message="waiting for this")
    builder.machine(9.1, OFFICE, "Active", "Provisioning", message="waiting for that")
    builder.machine(9.2, OFFICE, "Error", "Failed", message="it broke")
    assert lines(builder) == [
        "machine  office-hours   Active, machine Provisioning",
        "machine  office-hours   Error, machine Failed. it broke",
    ]


def test_nodes_pods_and_events_are_printed_as_they_change() -> None:
    builder = ChronicleBuilder()
    builder.node(9, "host", taints="a=b:NoSchedule")
    builder.pod(9, "web-1", "host")
    builder.node(18, "host", cordoned="yes")
    builder.event(18, OFFICE, "ShutdownStarted", "The shutdown began.")
    builder.gone(18, Kind.POD, "web-1")
    builder.gone(18, Kind.NODE, "host")
    builder.gone(20, Kind.EVENT, f"{OFFICE}.ShutdownStarted")
    assert lines(builder) == [
        "node     host           Ready, tainted a=b:NoSchedule",
        "pod      web-1          running on host",
        "node     host           Ready, cordoned",
        "event    office-hours   ShutdownStarted: The shutdown began.",
        "pod      web-1          gone",
        "node     host           gone",
    ]


def test_the_summary_says_when_things_were_due_and_seen() -> None:
    friday = day_of(OFFICE, PODS[OFFICE], comes=9, leaves=18)
    rows = words.summary(expectations(), friday.chronicle, at(19))
    assert rows[1] == (OFFICE, "comes, with a Ready Node", "due Fri 09:00, seen 09:06", ExpectationVerdict.MET)
    assert rows[-1][2:] == ("due Sat 12:00", ExpectationVerdict.WAITING)


def test_a_boundary_is_printed_with_its_day_and_hour() -> None:
    builder = ChronicleBuilder()
    builder.machine(9, OFFICE, "Active", closes="2026-03-06T18:00:00Z")
    assert words.boundary(builder.chronicle.observations[0]) == "closes Fri 18:00"

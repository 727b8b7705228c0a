"""What the demo prints, line by line."""

from local.demo import words
from local.demo.expectations import PODS, ExpectationVerdict, expectations
from local.demo.sightings import Kind, Sighting
from local.examples import OFFICE
from tests.local.demo.telling import Telling, at, day_of


def lines(telling: Telling) -> list[str]:
    lines, latest = [], dict[tuple[Kind, str], Sighting]()
    for seen in telling.chronicle.sightings:
        lines.append(words.change(seen, latest.get((seen.kind, seen.name))))
        latest[seen.kind, seen.name] = seen
    return [line for line in lines if line]


def test_a_machines_life_is_told_by_its_phases_and_not_by_every_message() -> None:
    telling = Telling()
    telling.machine(8, OFFICE, "New")
    telling.machine(9, OFFICE, "Active", "Provisioning", message="waiting for this")
    telling.machine(9.1, OFFICE, "Active", "Provisioning", message="waiting for that")
    telling.machine(9.2, OFFICE, "Error", "Failed", message="it broke")
    assert lines(telling) == [
        "machine  office-hours   Active, machine Provisioning",
        "machine  office-hours   Error, machine Failed. it broke",
    ]


def test_nodes_pods_and_events_are_told_as_they_change() -> None:
    telling = Telling()
    telling.node(9, "host", taints="a=b:NoSchedule")
    telling.pod(9, "web-1", "host")
    telling.node(18, "host", cordoned="yes")
    telling.event(18, OFFICE, "ShutdownStarted", "The shutdown began.")
    telling.gone(18, Kind.POD, "web-1")
    telling.gone(18, Kind.NODE, "host")
    telling.gone(20, Kind.EVENT, f"{OFFICE}.ShutdownStarted")
    assert lines(telling) == [
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
    assert rows[0] == (OFFICE, "comes, with a Ready Node", "due Fri 09:00, seen 09:06", ExpectationVerdict.MET)
    assert rows[-1][2:] == ("due Sat 11:00", ExpectationVerdict.WAITING)


def test_a_boundary_is_told_by_its_day_and_hour() -> None:
    telling = Telling()
    telling.machine(9, OFFICE, "Active", closes="2026-03-06T18:00:00Z")
    assert words.boundary(telling.chronicle.sightings[0]) == "closes Fri 18:00"

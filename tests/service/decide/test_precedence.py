import pytest

from service.decide.precedence import precedence_of

MACHINE = {"machineRef": {"name": "desk-machine"}}


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ({"spec": {"priority": 200}}, 200),
        ({"spec": {"priority": 200}, "status": {"phase": "Inactive"}}, 200),
        ({"spec": {"priority": 200}, "status": MACHINE}, 55),
        ({"spec": {"priority": 0}, "status": MACHINE}, 255),
        ({"spec": {}}, 50),
        ({}, 50),
        ({"spec": {"priority": "high"}}, 50),
        ({"spec": {"priority": True}}, 50),
        ({"spec": {"priority": 256}}, 50),
        ({"spec": {"priority": -1}}, 50),
        ({"spec": ["nonsense"], "status": "nonsense"}, 50),
    ],
)
def test_who_has_a_machine_waits_for_its_end_and_who_has_none_for_its_beginning(raw, expected):
    assert precedence_of(raw) == expected

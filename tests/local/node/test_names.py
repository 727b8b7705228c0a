"""DNS messages as pods send them and as they are answered."""

import struct
from ipaddress import IPv4Address

import pytest

from local.node.names import NotUnderstood, Question

NAME = "Fivespot-webhook.5spot-system.svc.cluster.local"


def asked(name: str = NAME, kind: int = 1, questions: int = 1) -> bytes:
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    return struct.pack("!6H", 4660, 256, questions, 0, 0, 0) + labels + b"\0" + struct.pack("!2H", kind, 1)


def counts(answer: bytes) -> tuple[int, int]:
    """The answer's code, and how many records it has."""
    _, flags, _, records, _, _ = struct.unpack_from("!6H", answer)
    return flags & 0xF, records


def test_a_name_is_read_without_its_case():
    assert Question.parse(asked()).name == NAME.lower()


def test_addresses_come_back_under_the_same_number():
    answer = Question.parse(asked()).answer([IPv4Address("10.96.0.7"), IPv4Address("10.96.0.8")])
    assert answer.startswith(struct.pack("!H", 4660))
    assert counts(answer) == (0, 2)
    assert answer.endswith(IPv4Address("10.96.0.8").packed)


def test_a_name_that_is_not_there_differs_from_one_without_such_records():
    assert counts(Question.parse(asked()).answer(None)) == (3, 0)
    assert counts(Question.parse(asked(kind=28)).answer([IPv4Address("10.96.0.7")])) == (0, 0)


@pytest.mark.parametrize("message", [b"", b"\0" * 11, asked()[:-6], asked(questions=2)])
def test_anything_else_is_not_understood(message: bytes):
    with pytest.raises(NotUnderstood):
        Question.parse(message)

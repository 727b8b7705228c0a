"""DNS messages of the one kind that the node's pods need: questions for addresses, and answers with some or none."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address
from typing import Final

HEADER: Final = struct.Struct("!6H")
QUESTION: Final = struct.Struct("!2H")
ANSWER: Final = struct.Struct("!3HIH4s")
ADDRESS, ANY, INTERNET = 1, 255, 1
NO_ERROR, NO_SUCH_NAME = 0, 3
ANSWERED: Final = 0x8580
"""An answer, from who is in charge of the name; recursion is available."""
POINTER_TO_QUESTION: Final = 0xC000 | HEADER.size
TTL: Final = 1


class NotUnderstood(Exception):
    """A message that is no question for one name."""


@dataclass(frozen=True, slots=True)
class Question:
    """What a pod asks: the number of its message, a name, and which kind of record."""

    number: int
    name: str
    kind: int
    raw: bytes

    @classmethod
    def parse(cls, message: bytes) -> "Question":
        """Reads a question; further sections, such as EDNS, are passed over."""
        try:
            number, _, questions, *_ = HEADER.unpack_from(message)
            name, end = _name(message, HEADER.size)
            kind, _ = QUESTION.unpack_from(message, end)
        except (struct.error, IndexError, UnicodeDecodeError) as error:
            raise NotUnderstood(str(error)) from error
        if questions != 1:
            raise NotUnderstood(f"{questions} questions at once")
        return cls(number, name.lower(), kind, message[HEADER.size : end + QUESTION.size])

    def answer(self, addresses: Sequence[IPv4Address] | None) -> bytes:
        """The answer; None says that there is no such name."""
        records = [_record(each) for each in addresses or ()] if self.kind in {ADDRESS, ANY} else []
        code = NO_SUCH_NAME if addresses is None else NO_ERROR
        return HEADER.pack(self.number, ANSWERED | code, 1, len(records), 0, 0) + self.raw + b"".join(records)


def _record(address: IPv4Address) -> bytes:
    return ANSWER.pack(POINTER_TO_QUESTION, ADDRESS, INTERNET, TTL, 4, address.packed)


def _name(message: bytes, at: int) -> tuple[str, int]:
    labels = []
    while length := message[at]:
        if length > 63:
            raise IndexError("a compressed name in a question")
        labels.append(message[at + 1 : at + 1 + length].decode("ascii"))
        at += 1 + length
    return ".".join(labels), at + 1

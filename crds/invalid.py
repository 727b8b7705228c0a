"""The one error that every parser of user input raises; its text is shown to users as it is."""

from dataclasses import dataclass
from typing import Any, Final

SHOWN_MAX: Final = 80


@dataclass(frozen=True, slots=True)
class ValueProblem:
    """One bad item of a list: its position, what stood there, what is wrong with it."""

    index: int
    value: Any
    message: str


class InvalidValue(ValueError):
    """A value that is not allowed; `message` says what is wrong and what is allowed instead."""

    def __init__(self, message: str, problems: tuple[ValueProblem, ...] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.problems = problems

    @classmethod
    def of_items(cls, problems: list[ValueProblem]) -> "InvalidValue":
        """All bad items of a list in one error."""
        return cls("; ".join(f"item {problem.index}: {problem.message}" for problem in problems), tuple(problems))


def shown(value: object) -> str:
    """The value in quotes for a message, control characters escaped and long input cut."""
    text = str(value) if not isinstance(value, str) else value
    cut = text if len(text) <= SHOWN_MAX else text[:SHOWN_MAX] + "…"
    return '"' + "".join(char if char.isprintable() else ascii(char)[1:-1] for char in cut) + '"'

"""Malformed input: the sentence that says where and what, and whether to stop or to count."""

from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

__all__ = ["Gathered", "Malformed", "Meeting", "Problems"]


class Malformed(ValueError):
    """Input that cannot be read; the message names file, line and column, and what was expected there."""

    def __init__(self, file: str, line: int, column: int | str | None, got: str, expected: str) -> None:
        self.file, self.line, self.column, self.got, self.expected = file, line, column, got, expected
        place = f", column {column!r}" if isinstance(column, str) else f", column {column}" if column else ""
        super().__init__(f"{file}, line {line}{place}: got {got}, expected {expected}")

    def __reduce__(self) -> tuple[Any, ...]:
        return Malformed, (self.file, self.line, self.column, self.got, self.expected)


class Meeting(Protocol):
    """What problems are told to."""

    def meet(self, problem: Malformed) -> None:
        """Take note of a problem, or raise it."""
        ...


@dataclass(frozen=True)
class Gathered:
    """Problems that were met out of order, to be met in order of their lines."""

    met: list[Malformed] = field(default_factory=list)

    def meet(self, problem: Malformed) -> None:
        """Keep the problem."""
        self.met.append(problem)

    def told(self, problems: Meeting) -> None:
        """Meet all of them, the first line's first."""
        for problem in sorted(self.met, key=lambda problem: problem.line):
            problems.meet(problem)


@dataclass
class Problems:
    """What to do with malformed input, and what there was of it.

    Parameters
    ----------
    on_error : "raise" stops at the first problem, "skip" leaves the example out and counts
    kept : how many messages are kept

    >>> problems = Problems("skip")
    >>> problems.meet(Malformed("a.vw", 3, 7, "'x'", "a number"))
    >>> problems.count, problems.messages
    (1, ["a.vw, line 3, column 7: got 'x', expected a number"])
    """

    on_error: Literal["raise", "skip"] = "raise"
    kept: int = 5
    count: int = 0
    messages: list[str] = field(default_factory=list)

    def meet(self, problem: Malformed) -> None:
        """Raise the problem, or count it."""
        if self.on_error == "raise":
            raise problem
        self.count += 1
        if len(self.messages) < self.kept:
            self.messages.append(str(problem))

    def take(self, others: "Problems") -> None:
        """Count what others met as met here, and forget it there."""
        self.count += others.count
        self.messages += others.messages[: max(0, self.kept - len(self.messages))]
        others.count, others.messages = 0, []


def shown(token: bytes, most: int = 40) -> str:
    """Return some bytes of the input as they may stand in a message.

    >>> shown(b"caf\\xe9"), shown(b"")
    ("'caf\\\\xe9'", 'nothing')
    """
    if not token:
        return "nothing"
    text = token[:most].decode("utf-8", "backslashreplace")
    text = "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)
    return f"'{text}'" + ("…" if len(token) > most else "")

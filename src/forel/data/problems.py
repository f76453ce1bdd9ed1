"""Malformed input: an error that locates it, and whether to raise or to count."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Literal

__all__ = ["Malformed", "Problems", "excerpt"]

SKIP = "on_error='skip' leaves out such rows"
OTHER_ENCODING = "encoding='latin-1' (--encoding) reads text of Western Europe"


class Malformed(ValueError):
    """Input that cannot be read; the message has file, line and column, and what was expected there."""

    def __init__(self, file: str, line: int, column: int | str | None, got: str, expected: str) -> None:
        self.file, self.line, self.column, self.got, self.expected = file, line, column, got, expected
        place = f", column {column!r}" if isinstance(column, str) else f", column {column}" if column else ""
        super().__init__(f"{file}, line {line}{place}: got {got}, expected {expected}")

    def with_hint(self, hint: str) -> "Malformed":
        """Return the error with one more thing that can be done."""
        return Malformed(self.file, self.line, self.column, self.got, f"{self.expected}; {hint}")

    def __reduce__(self) -> tuple[Any, ...]:
        return Malformed, (self.file, self.line, self.column, self.got, self.expected)


@dataclass
class Problems:
    """How malformed input is handled, and how much there was.

    Parameters
    ----------
    on_error : "raise" stops at the first problem, "skip" leaves out the example and counts it; "later" keeps problems
        found in another order than that of their lines, until another object absorbs them
    max_messages : number of messages that are kept
    words : number of words in place of numbers by column, where these are not problems
    crossed : kinds of namespaces that occurred among crossed features
    warnings : of data that are read, by what they are about
    waiting : problems that are kept

    >>> problems = Problems("skip")
    >>> problems.record(Malformed("a.vw", 3, 7, "'x'", "a number"))
    >>> problems.count, problems.messages
    (1, ["a.vw, line 3, column 7: got 'x', expected a number"])
    """

    on_error: Literal["raise", "skip", "later"] = "raise"
    max_messages: int = 5
    count: int = 0
    messages: list[str] = field(default_factory=list)
    words: Counter[str] = field(default_factory=Counter)
    crossed: set[int] = field(default_factory=set)
    warnings: dict[str, str] = field(default_factory=dict)
    waiting: list[Malformed] = field(default_factory=list)

    def warn(self, about: str, message: str) -> None:
        """Keep the first warning about something."""
        self.warnings.setdefault(about, message)

    def record(self, problem: Malformed) -> None:
        """Raise the problem, count it, or keep it."""
        if self.on_error == "later":
            self.waiting.append(problem)
            return
        if self.on_error == "raise":
            raise problem if ";" in problem.expected else problem.with_hint(SKIP)
        self.count += 1
        if len(self.messages) < self.max_messages:
            self.messages.append(str(problem))

    def absorb(self, others: "Problems") -> None:
        """Add the problems of another object, those that it keeps by line, and clear it."""
        for problem in sorted(others.waiting, key=lambda problem: problem.line):
            self.record(problem)
        self.count += others.count
        self.messages += others.messages[: max(0, self.max_messages - len(self.messages))]
        self.words.update(others.words)
        self.crossed |= others.crossed
        self.warnings = {**others.warnings, **self.warnings}
        others.count, others.messages, others.words, others.waiting = 0, [], Counter(), []


def excerpt(token: bytes, limit: int = 40) -> str:
    """Return some bytes of the input as an error message quotes them.

    >>> excerpt(b"caf\\xe9"), excerpt(b"")
    ("'caf\\\\xe9'", 'nothing')
    """
    if not token:
        return "nothing"
    text = token[:limit].decode("utf-8", "backslashreplace")
    text = "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)
    return f"'{text}'" + ("…" if len(token) > limit else "")

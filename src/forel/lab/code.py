"""The code of a game: its settings, checked, and the program that plays it."""

import ast
import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from forel.lab.parts import GROUPS, MOST, NUMBERS, Part, checked_number
from forel.validation import number, refuse

__all__ = ["Game", "parse"]

MODULES = (
    "theory", "losses", "theory.rates", "theory.algorithms", "theory.analysis.adversaries", "theory.analysis.streams",
)  # fmt: skip
LARGEST = 1e6  # of a coordinate


@dataclass(frozen=True)
class Game:
    """The parts of a game with their numbers; ``moves`` are the gradients of an adversary who is a reader.

    ``settings`` are all of these as text, as in a query.
    """

    parts: Mapping[str, Part]
    numbers: Mapping[str, Any]
    moves: list[list[float]]
    point: list[float]
    settings: dict[str, str] = field(default_factory=dict)

    def _text(self, group: str, template: str | None = None) -> str:
        part = self.parts[group]
        own = {about.name: self.numbers[f"{group}.{about.name}"] for about in part.numbers}
        shared = {about.name: self.numbers[about.name] for about in NUMBERS}
        return (part.code if template is None else template).format(**own, **shared, moves=self.moves, point=self.point)

    @property
    def feasible(self) -> str:
        """The key of the set."""
        return self.parts["algorithm"].feasible or self.parts["feasible"].key

    def _best(self) -> str:
        if not self.parts["adversary"].linear:
            return "trace.best(algorithm.feasible)"
        if "feasible" in self.parts:
            return self._text("feasible", self.parts["feasible"].best)
        return GROUPS["feasible"][self.feasible].best.format(n=self.numbers["n"])

    def algorithm(self) -> str:
        """Return the lines that assemble the algorithm, with what they import."""
        return _with_imports(self._algorithm())

    def _algorithm(self) -> str:
        chosen = self.parts["algorithm"]
        without = {"delay"} | ({"weights"} if not self.parts.get("penalty", chosen).code else set())
        arguments = [self._text(group) for group in chosen.groups if group not in without]
        arguments = [argument for argument in arguments if argument]
        line = f"algorithm = {chosen.code}({', '.join(arguments)})"
        if len(line) > 88:
            line = f"algorithm = {chosen.code}(\n" + "".join(f"    {argument},\n" for argument in arguments) + ")"
        return line + "\n"

    def program(self, ending: str = "") -> str:
        """Return the program that plays the game and evaluates the bound, and then does as ``ending`` says."""
        best = self.parts["comparator"].key == "best"
        delays = self._text("delay") if "delay" in self.parts else ""
        lines = [
            f"losses = {self._text('adversary')}",
            f"trace = play(algorithm, losses, rounds={self.numbers['rounds']}, n={self.numbers['n']}"
            + (f", {delays})" if delays else ")"),
            *(["total = trace.gradients.sum(axis=0)"] if best and self.parts["adversary"].linear else []),
            f"x = {self._best() if best else self._text('comparator')}",
            'limit = bound(trace, x, "losses")',
        ]
        return _with_imports(self._algorithm() + "\n".join(lines) + "\n" + ending)


def parse(query: Mapping[str, str]) -> Game:
    """Return the game of a query, whose names are groups, their numbers as in ``rate.scale``, and NUMBERS.

    >>> game = parse({"rate": "constant", "rate.eta": "0.5", "feasible": "reals", "rounds": "10"})
    >>> game.algorithm().splitlines()[-1]
    'algorithm = FTRL(Constant(0.5), Euclidean())'
    >>> parse({"rate": "fast"})
    Traceback (most recent call last):
    ValueError: rate: got 'fast', expected sqrt or constant or time or ...
    """
    given = dict(query)
    chosen = _take(given, "algorithm")
    groups = ("algorithm", *chosen.groups, "adversary", "comparator")
    parts = {"algorithm": chosen, **{group: _take(given, group) for group in groups[1:]}}
    numbers: dict[str, Any] = {}
    for about in NUMBERS:
        numbers[about.name] = checked_number(about.name, about, given.pop(about.name, about.default))
    for group, part in parts.items():
        for about in part.numbers:
            name = f"{group}.{about.name}"
            numbers[name] = checked_number(name, about, given.pop(name, about.default))
    n, moves, point = numbers["n"], [], [0.0] * numbers["n"]
    if parts["adversary"].key == "you":
        moves = [_coordinates("moves", one, n) for one in given.pop("moves", "").split(";") if one]
        if len(moves) > MOST["rounds"]:
            raise refuse("moves", f"{len(moves)} gradients", f"at most {MOST['rounds']}")
        numbers["rounds"] = max(1, len(moves))
    if parts["comparator"].key == "given" and "point" in given:
        point = _coordinates("point", given.pop("point"), n)
    if given:
        name = min(given)
        known = ", ".join([*parts, *numbers])
        raise ValueError(f"{name}: this game has no such parameter; it has {known}")
    settings = {group: part.key for group, part in parts.items()} | {k: f"{v:.12g}" for k, v in numbers.items()}
    if parts["adversary"].key == "you":
        settings["moves"] = ";".join(_joined(one) for one in moves)
    if parts["comparator"].key == "given":
        settings["point"] = _joined(point)
    return Game(parts, numbers, moves, point, settings)


def _take(given: dict[str, str], group: str) -> Part:
    found = GROUPS[group]
    return found[given.pop(group, found.parts[0].key)]


def _coordinates(name: str, text: str, n: int) -> list[float]:
    expected = f"{n} numbers from {-LARGEST:g} to {LARGEST:g}, separated by commas"
    parts = text.split(",")
    if len(parts) != n:
        raise refuse(name, text, expected)
    return [number(name, part, expected, low=-LARGEST, high=LARGEST) for part in parts]


def _joined(coordinates: list[float]) -> str:
    return ",".join(f"{value:.12g}" for value in coordinates)


@cache
def _homes() -> dict[str, str]:
    """Return the module that each name is imported from."""
    modules = [f"forel.{name}" for name in MODULES]
    return {name: module for module in reversed(modules) for name in importlib.import_module(module).__all__}


def _with_imports(code: str) -> str:
    names = {node.id for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Name)}
    homes = _homes()
    lines = ["import numpy as np"] if "np" in names else []
    for module in sorted({homes[name] for name in names if name in homes}):
        imported = sorted(
            (name for name in names if homes.get(name) == module), key=lambda name: (not name.isupper(), name)
        )
        lines.append(f"from {module} import {', '.join(imported)}")
    return "\n".join(lines) + "\n\n" + code

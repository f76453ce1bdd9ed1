"""A game as the page shows it: every number, or the sentence that says why there is none."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from forel.lab.code import Game, parse
from forel.lab.parts import MOST
from forel.theory.algorithms import Algorithm, Bound
from forel.theory.analysis import Trace, strong_ftrl_lemma
from forel.theory.argmin import SOLVER
from forel.validation import Matrix, Unsupported, Vector, refuse

__all__ = ["answer"]

CIRCLE = 72  # points of a ball's outline
SHOW = """\
print(f"regret {trace.regret(x):.6g}")
print(limit)
"""
LEMMA = """\
parts = strong_ftrl_lemma(trace, x, "losses")
print(f"lemma {parts.regularization:.6g} + {parts.stability.sum():.6g} + {parts.remainder:.6g}")
"""


def answer(query: Mapping[str, str]) -> dict[str, Any]:
    """Return the game of a query: settings, code, points, regret, bound and the Strong FTRL Lemma's parts.

    >>> found = answer({"adversary": "alternating", "rounds": "4"})
    >>> len(found["points"]), found["bound"]["result"], found["regret"][-1] <= found["bound"]["over_rounds"][-1]
    (5, 'Theorem 1', True)
    """
    game = parse(query)
    found: dict[str, Any] = {"settings": game.settings, "outline": outline(game)}
    with np.errstate(all="ignore"):  # what is not finite is refused below
        algorithm = _run(game.algorithm())["algorithm"]
        _check_size(game, algorithm)
        if game.parts["adversary"].key == "you" and not game.moves:
            first = algorithm.play(algorithm.init(game.numbers["n"]))
            found |= {"code": game.algorithm(), "points": [first.tolist()], "gradients": [], "comparator": None}
        else:
            found |= _played(game)
    shown = [*found["points"], *found["outline"], *([found["comparator"]] if found["comparator"] else [])]
    found["extent"] = extent(np.array(shown), 1.6 if game.parts["adversary"].key == "you" else 0.0)
    return found


def _run(code: str) -> dict[str, Any]:
    """Execute a program, which consists of code of the table and of numbers, and return its names."""
    names: dict[str, Any] = {}
    exec(compile(code, "<lab>", "exec"), names)
    return names


def _check_size(game: Game, algorithm: Algorithm) -> None:
    """Raise ValueError where many rounds would each take a solver."""
    argmin = getattr(getattr(algorithm, "mirror", algorithm), "argmin", None)
    kept = (game.settings.get("surrogate", game.settings["algorithm"]), game.settings["adversary"])
    most = MOST["rounds"]
    if (argmin is not None and argmin.method == SOLVER) or kept == ("implicit", "quadratics"):
        most = MOST["solved"]
    if kept in (("exact", "examples"), ("exact", "labels")):
        most = MOST["kept"]
    if game.numbers["rounds"] > most:
        raise refuse("rounds", game.numbers["rounds"], f"at most {most}: each round takes a solver here")


def _played(game: Game) -> dict[str, Any]:
    names = _run(game.program())
    trace, x, limit = names["trace"], names["x"], names["limit"]
    finite = np.isfinite(trace.points).all(axis=1)
    if not finite.all():
        raise ValueError(f"the point of round {int(np.argmin(finite)) + 1} is not finite; use a smaller rate")
    decomposed = lemma(trace, x)
    return {
        "code": game.program(SHOW if "void" in decomposed else SHOW + LEMMA),
        "points": trace.points.tolist(),
        "gradients": trace.gradients.tolist(),
        "losses": trace.values.tolist(),
        "comparator": x.tolist(),
        "regret": trace.regrets(x).tolist(),
        "bound": _bound(limit),
        "lemma": decomposed,
    }


def _bound(limit: Bound) -> dict[str, Any]:
    if limit.void:
        return {"result": limit.result, "void": limit.void}
    return {"result": limit.result, "text": str(limit), "over_rounds": limit.over_rounds.tolist()}


def lemma(trace: Trace, x: Vector) -> dict[str, Any]:
    """Return the Strong FTRL Lemma's parts after every round, or why there are none."""
    try:
        parts = strong_ftrl_lemma(trace, x, "losses")
    except Unsupported as error:
        return {"void": str(error)}
    stages, start = trace.stages, trace.initial(trace.leaders[0])
    regularization = np.array([stage.regularizer(x) + stage.penalties(x) for stage in stages])
    stability = np.cumsum(parts.stability)
    objectives = zip(stages, trace.leaders[1:], strict=True)
    remainder = np.array([stage.objective(leader) - stage.objective(x) - start for stage, leader in objectives])
    if not (np.isfinite(remainder).all() and np.isfinite(regularization).all()):
        return {"void": "the comparator lies where the objective is infinite"}
    values = {
        "regularization": regularization,
        "stability": stability,
        "bound": regularization + stability,
        "remainder": remainder,
        "regret": regularization + stability + remainder,
    }
    return {"result": parts.result, **{name: value.tolist() for name, value in values.items()}}


def outline(game: Game) -> list[list[float]]:
    """Return corners of the set in two dimensions, in order; empty where it has no edge.

    >>> outline(parse({"feasible": "box"}))
    [[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]]
    """
    r = game.numbers.get("feasible.radius", 1.0)
    angles = 2 * np.pi * np.arange(CIRCLE) / CIRCLE
    corners: dict[str, Matrix] = {
        "ball": r * np.column_stack([np.cos(angles), np.sin(angles)]),
        "box": r * np.array([[-1.0, -1], [1, -1], [1, 1], [-1, 1]]),
        "diamond": r * np.array([[1.0, 0], [0, 1], [-1, 0], [0, -1]]),
        "simplex": np.eye(2),
    }
    found: list[list[float]] = corners[game.feasible].tolist() if game.feasible in corners else []
    return found if game.numbers["n"] == 2 else []


def extent(points: Matrix, least: float) -> dict[str, Any]:
    """Return a square around points, with room for arrows: its center, and half its side, of at least ``least``.

    >>> extent(np.array([[0.0, 0.0], [2.0, 1.0]]), 0.0)
    {'center': [1.0, 0.5], 'half': 1.6}
    """
    low, high = points.min(axis=0), points.max(axis=0)
    half = max(0.8 * float((high - low).max()), least)
    return {"center": ((low + high) / 2).tolist(), "half": half or 1.0}

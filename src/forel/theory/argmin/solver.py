"""All other problems: a convex program, compiled once per dimension and then called with parameters."""

import math
from typing import Any

import numpy as np

from forel import cvx
from forel.theory.argmin.problem import Problem, Solve
from forel.theory.penalties import ElasticNet, Penalty
from forel.theory.sets import Box
from forel.validation import Unsupported, Vector


def solver(problem: Problem) -> Solve:
    """Plan a program for cvxpy with Clarabel; raise Unsupported if the extra is not installed.

    Survey: section 2.1
    """
    if not cvx.available():
        raise Unsupported(
            f"no closed form for {problem.geometry}, {_named(problem)} over {problem.feasible}, and no solver; "
            f"{cvx.REMEDY}, or choose a combination with a closed form (docs/argmin.md lists them)"
        )
    compiled: dict[int, tuple[Any, Any, dict[str, Any]]] = {}

    def solve(z: Vector, strength: Any, weight: float) -> Vector:
        if z.size not in compiled:
            compiled[z.size] = _compile(problem, z.size)
        program, x, parameters = compiled[z.size]
        # The solver stops at absolute tolerances, so that the objective is divided by its size, a power of 2.
        size = math.ldexp(1.0, math.frexp(max(np.abs(z).max(), np.max(np.abs(strength)), weight))[1])
        parameters["z"].value = z / size
        parameters["factor"].value = problem.geometry.factor(strength / size)
        parameters["weight"].value = weight / size
        found = cvx.solve(program, x)
        # The solver's answer may be outside by a rounding, where an entropy would be infinite.
        if problem.feasible.on_simplex:
            return np.maximum(found, 0.0)
        return np.clip(found, *problem.feasible.bounds) if isinstance(problem.feasible, Box) else found

    return solve


def _compile(problem: Problem, n: int) -> tuple[Any, Any, dict[str, Any]]:
    cp = cvx.cvxpy()
    x, z, weight = cp.Variable(n), cp.Parameter(n), cp.Parameter(nonneg=True)
    shape = {"scalar": (), "diagonal": (n,), "matrix": (n, n)}[problem.geometry.shape]
    factor = cp.Parameter(shape, nonneg=problem.geometry.shape != "matrix")
    objective = z @ x + problem.geometry.expression(factor, x)
    penalties: tuple[Penalty, ...] = (ElasticNet(problem.l1, problem.l2), *problem.groups, *problem.others)
    for penalty in penalties:
        objective += weight * penalty.expression(x)
    program = cp.Problem(cp.Minimize(objective), problem.feasible.constraints(x))
    return program, x, {"z": z, "factor": factor, "weight": weight}


def _named(problem: Problem) -> str:
    found = [name for name, part in (("l1", problem.l1), ("l2", problem.l2)) if np.any(part)]
    found += [type(p).__name__ for p in (*problem.groups, *problem.others)]
    return " + ".join(found) or "no penalty"

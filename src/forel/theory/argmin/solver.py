"""All other problems: a convex program, compiled once per dimension and then called with parameters."""

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from forel import cvx
from forel.theory.argmin.problem import Problem, Solve
from forel.theory.argmin.shrinkage import coordinate
from forel.theory.penalties import ElasticNet
from forel.theory.sets import Box, Polyhedron, Reals
from forel.validation import Unsupported, Vector


def solver(problem: Problem) -> Solve:
    """Plan a program for cvxpy with Clarabel; raise Unsupported if the extra is not installed.

    A minimizer over all points is exact, and taken if it lies in a polyhedron.

    Survey: section 2.1
    """
    if not cvx.available():
        raise Unsupported(
            f"no closed form for {problem.geometry}, {_named(problem)} over {problem.feasible}, and no solver; "
            f"{cvx.REMEDY}, or choose a combination with a closed form (docs/argmin.md lists them)"
        )
    compiled: dict[int, Program] = {}
    other = bool(problem.groups or problem.others)
    free = coordinate(replace(problem, feasible=Reals())) if isinstance(problem.feasible, Polyhedron) else None

    def solve(z: Vector, strength: Any, weight: float) -> Vector:
        if free and np.isfinite(x := free(z, strength, weight)).all() and problem.feasible.contains(x, 0.0):
            return x
        if z.size not in compiled:
            compiled[z.size] = _compile(problem, z.size)
        program, point, unit, parameters = compiled[z.size]
        # The solver stops at absolute tolerances: it is given x in units of the size of X, and the objective in units
        # of its own, both powers of 2. On a simplex the entropy in other units is the same but for a constant.
        slope, strength = unit * z, strength * (unit if problem.geometry.on_simplex else unit**2)
        penalty = unit * weight * max(np.max(problem.l1), unit * np.max(problem.l2), 1.0 if other else 0.0)
        size = math.ldexp(1.0, math.frexp(max(np.abs(slope).max(), np.max(np.abs(strength)), penalty))[1])
        parameters["z"].value = slope / size
        parameters["factor"].value = problem.geometry.factor(strength / size)
        parameters["weight"].value = unit * weight / size
        found = unit * cvx.solve(program, point)
        # The solver's answer may be outside by a rounding, where an entropy would be infinite.
        if problem.feasible.on_simplex:
            return np.maximum(found, 0.0)
        return np.clip(found, *problem.feasible.bounds) if isinstance(problem.feasible, Box) else found

    return solve


class Program(NamedTuple):
    """A program for the point in units of a size, and its parameters."""

    problem: Any
    x: Any
    unit: float
    parameters: dict[str, Any]


def _compile(problem: Problem, n: int) -> Program:
    cp = cvx.cvxpy()
    radius = problem.feasible.largest_norm(n)
    unit = math.ldexp(1.0, math.frexp(radius)[1]) if 0 < radius < math.inf else 1.0
    x, z, weight = cp.Variable(n), cp.Parameter(n), cp.Parameter(nonneg=True)
    shape = {"scalar": (), "diagonal": (n,), "matrix": (n, n)}[problem.geometry.shape]
    factor = cp.Parameter(shape, nonneg=problem.geometry.shape != "matrix")
    objective = z @ x + problem.geometry.expression(factor, x)
    objective += weight * ElasticNet(problem.l1, unit * problem.l2).expression(x)
    for penalty in (*problem.groups, *problem.others):
        objective += weight * penalty.expression(unit * x) / unit
    limits = [_in_units(limit, unit) for limit in problem.feasible.constraints(unit * x)]
    return Program(cp.Problem(cp.Minimize(objective), limits), x, unit, {"z": z, "factor": factor, "weight": weight})


def _in_units(limit: Any, unit: float) -> Any:
    """Return an equation or inequality divided by the unit; cones, which a user's set may have, stay as they are."""
    if isinstance(limit, cvx.cvxpy().constraints.Equality):
        return limit.expr / unit == 0
    return limit.expr / unit <= 0 if isinstance(limit, cvx.cvxpy().constraints.Inequality) else limit


def _named(problem: Problem) -> str:
    found = [name for name, part in (("l1", problem.l1), ("l2", problem.l2)) if np.any(part)]
    found += [type(p).__name__ for p in (*problem.groups, *problem.others)]
    return " + ".join(found) or "no penalty"

"""The door to an existing solver for convex programs: cvxpy with Clarabel, the extra ``cvx``.

Sets say their ``constraints(x)`` and functions their ``expression(x)`` in cvxpy's words; whatever has no closed form is
solved from those, and the tests check every closed form against them.
"""

import importlib.util
from collections.abc import Sequence
from typing import Any

import numpy as np

from forel.checks import Infeasible, Unbounded, Unsupported, Vector

REMEDY = "install the extra: pip install 'forel[cvx]'"

# Clarabel stops at 1e-8 by default; what algorithms accumulate over many rounds wants more, and it delivers more.
# Where it cannot (bad scaling), its reduced tolerances below are still what the default asks for.
_TIGHT = {"tol_gap_abs": 1e-12, "tol_gap_rel": 1e-12, "tol_feas": 1e-12}
_REDUCED = {"reduced_tol_gap_abs": 1e-8, "reduced_tol_gap_rel": 1e-8, "reduced_tol_feas": 1e-8}


def available() -> bool:
    """Tell whether the extra ``cvx`` is installed, without importing it."""
    return all(importlib.util.find_spec(name) is not None for name in ("cvxpy", "clarabel"))


def cvxpy() -> Any:
    """Return the cvxpy module, or refuse with the name of the extra."""
    if not available():
        raise Unsupported(f"this needs a solver for convex programs; {REMEDY}")
    import cvxpy

    return cvxpy


def solve(problem: Any, variable: Any) -> Vector:
    """Solve a cvxpy problem and return the value of ``variable``."""
    cp = cvxpy()
    try:
        problem.solve(solver=cp.CLARABEL, **_TIGHT, **_REDUCED)
    except cp.error.SolverError as error:
        raise ValueError(f"the solver found no accurate minimum ({error}); rescale the inputs") from None
    if problem.status in (cp.INFEASIBLE, cp.INFEASIBLE_INACCURATE):
        raise Infeasible("the feasible set has no point; loosen one of its constraints")
    if problem.status in (cp.UNBOUNDED, cp.UNBOUNDED_INACCURATE):
        raise Unbounded("the objective has no minimum; add a regularizer or a bounded feasible set")
    return np.asarray(variable.value, dtype=np.float64)


def minimize(n: int, expression: Any, constraints: Sequence[Any] | Any = ()) -> Vector:
    """Minimise ``expression(x)`` over the x in R^n that satisfy ``constraints(x)``."""
    cp = cvxpy()
    x = cp.Variable(n)
    limits = list(constraints(x)) if callable(constraints) else list(constraints)
    return solve(cp.Problem(cp.Minimize(expression(x)), limits), x)

"""Convex programs, solved by cvxpy with Clarabel: the optional extra ``cvx``.

Sets have ``constraints(x)`` and functions ``expression(x)``, both in cvxpy; a problem without a closed form is
solved from these, and the tests check every closed form against the solver.
"""

import importlib.util
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from forel.validation import Infeasible, Unbounded, Unsupported, Vector

REMEDY = "install the extra: pip install 'forel[cvx]'"

# Clarabel stops at 1e-8 by default. Errors accumulate over many rounds, so tighter tolerances are tried first; a result
# within the reduced tolerances is accepted, and if even those fail, the default settings are used.
_ATTEMPTS: tuple[dict[str, float], ...] = (
    {
        **dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), 1e-12),
        **dict.fromkeys(("reduced_tol_gap_abs", "reduced_tol_gap_rel", "reduced_tol_feas"), 1e-9),
    },
    {"tol_feas": 1e-9},
    {},
)


def available() -> bool:
    """Return whether the extra ``cvx`` is installed, without importing it."""
    return all(importlib.util.find_spec(name) is not None for name in ("cvxpy", "clarabel"))


def cvxpy() -> Any:
    """Return the cvxpy module; raise Unsupported, with the name of the extra, if it is not installed."""
    if not available():
        raise Unsupported(f"this needs a solver for convex programs; {REMEDY}")
    import cvxpy

    return cvxpy


def solve(problem: Any, variable: Any) -> Vector:
    """Solve a cvxpy problem and return the value of ``variable``."""
    cp = cvxpy()
    for settings in _ATTEMPTS:
        try:
            with warnings.catch_warnings():
                # "May be inaccurate" means within the reduced tolerances, which is accepted.
                warnings.filterwarnings("ignore", message="Solution may be inaccurate")
                # A warm start keeps the scaling of the previous data, and loses up to all digits on other data.
                problem.solve(solver=cp.CLARABEL, warm_start=False, **settings)
            break
        except cp.error.SolverError:
            continue
    else:
        raise ValueError("the solver found no accurate minimum; rescale the inputs")
    if problem.status in (cp.INFEASIBLE, cp.INFEASIBLE_INACCURATE):
        raise Infeasible("the feasible set has no point; loosen one of its constraints")
    if problem.status in (cp.UNBOUNDED, cp.UNBOUNDED_INACCURATE):
        raise Unbounded("the objective has no minimum; add a regularizer or a bounded feasible set")
    return np.asarray(variable.value, dtype=np.float64)


def minimize(n: int, expression: Any, constraints: Sequence[Any] | Any = ()) -> Vector:
    """Minimize ``expression(x)`` over the x in R^n that satisfy ``constraints(x)``."""
    cp = cvxpy()
    x = cp.Variable(n)
    limits = list(constraints(x)) if callable(constraints) else list(constraints)
    return solve(cp.Problem(cp.Minimize(expression(x)), limits), x)

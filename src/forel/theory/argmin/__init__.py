"""The argmin: z·x + α Ψ(x) + r(x) over X, in closed form wherever there is one.

Each method is one function of a ``Problem`` that returns a solving function or None; ``CLOSED_FORMS`` lists them in the
order in which they are tried, and the generated page ``docs/argmin.md`` lists the method of each combination.
"""

from forel.theory.argmin.dispatch import CLOSED_FORMS, SOLVER, Argmin, Minimizer, argmin, bregman_project, project

__all__ = ["CLOSED_FORMS", "SOLVER", "Argmin", "Minimizer", "argmin", "bregman_project", "project"]

"""Feasible sets X: where an algorithm's points, and the comparators of its bounds, may lie.

Each set has ``contains``, its ``support`` function, its ``largest_norm`` and ``diameter``, and its
``constraints`` for a solver. Projections, in any metric, are argmins: see ``forel.theory.argmin.project``. Sets whose
parameters are single numbers fit any dimension.
"""

from forel.theory.sets.balls import Ball, l1_ball, l2_ball
from forel.theory.sets.boxes import Box, Reals, linf_ball
from forel.theory.sets.feasible import FeasibleSet
from forel.theory.sets.intersection import Intersection, intersect
from forel.theory.sets.linear import Affine, HalfSpace, Polyhedron
from forel.theory.sets.oracle import Oracle
from forel.theory.sets.simplex import Simplex

__all__ = [
    "Affine",
    "Ball",
    "Box",
    "FeasibleSet",
    "HalfSpace",
    "Intersection",
    "Oracle",
    "Polyhedron",
    "Reals",
    "Simplex",
    "intersect",
    "l1_ball",
    "l2_ball",
    "linf_ball",
]

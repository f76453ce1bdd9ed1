"""The method of every combination of geometry, penalty and set: for the docs and the tests."""

from collections.abc import Mapping
from functools import cache

import numpy as np

from forel.theory.argmin.dispatch import Argmin
from forel.theory.geometries import Diagonal, Entropy, Euclidean, FullMatrix, Geometry, SquaredPNorm
from forel.theory.penalties import NONE, ElasticNet, GroupL2, Indicator, Penalty, l1, l2, squared_l2
from forel.theory.sets import (
    Affine,
    Box,
    FeasibleSet,
    HalfSpace,
    Polyhedron,
    Reals,
    Simplex,
    intersect,
    l1_ball,
    l2_ball,
    linf_ball,
)
from forel.validation import Unsupported

REFUSED = "refused"

GEOMETRIES: Mapping[str, Geometry] = {
    "Euclidean": Euclidean(),
    "Diagonal": Diagonal(),
    "FullMatrix": FullMatrix(),
    "Entropy": Entropy(),
    "SquaredPNorm(1.5)": SquaredPNorm(1.5),
}


@cache
def penalties(n: int) -> Mapping[str, Penalty]:
    """Return one penalty of every kind, for dimension n."""
    halves = [0] * (n // 2) + [1] * (n - n // 2)
    return {
        "none": NONE,
        "L1": l1(0.5),
        "squared L2": squared_l2(0.5),
        "elastic net": ElasticNet(0.3, np.linspace(0.1, 0.9, n)),
        "L2": l2(0.5),
        "group L2": GroupL2(0.4, [g if any(halves) else 0 for g in halves]),
        "L1 + group L2": l1(0.2) + GroupL2(0.4),
        "indicator of a box": Indicator(Box(-0.5, 0.75)),
    }


@cache
def sets(n: int) -> Mapping[str, FeasibleSet]:
    """Return one feasible set of every kind, for dimension n."""
    ones, ramp = np.ones(n), np.linspace(-0.2, 0.4, n)
    return {
        "Reals": Reals(),
        "Box": Box(-0.5, ramp + 0.5),
        "L∞ ball": linf_ball(0.7, ramp),
        "L2 ball": l2_ball(0.8),
        "L2 ball, center": l2_ball(0.8, ramp),
        "L1 ball": l1_ball(0.8),
        "L1 ball, center": l1_ball(0.8, ramp),
        "Simplex": Simplex(),
        "HalfSpace": HalfSpace(ramp + 0.5, 0.25),
        "Affine": Affine([ones], [0.5]),
        "Polyhedron": Polyhedron(A=[ramp + 0.5, -ones], b=[0.6, 1.0]),
        "Simplex ∩ HalfSpace": intersect(Simplex(), HalfSpace(ramp, 0.35)),
    }


def method(geometry: Geometry, penalty: Penalty, feasible: FeasibleSet) -> str:
    """Return the name of the method for a combination, ``REFUSED`` if it has none."""
    try:
        return Argmin(geometry, penalty, feasible).method
    except Unsupported:
        return REFUSED

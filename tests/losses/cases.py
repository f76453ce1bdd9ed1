"""Margin losses with their definitions in high precision."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import mpmath as mp
import numpy as np
import pytest

from forel.losses import (
    Absolute,
    Choice,
    EpsilonInsensitive,
    Hinge,
    Huber,
    Logistic,
    Poisson,
    Quantile,
    Squared,
    SquaredError,
    SquaredHinge,
)

EPS = float(np.finfo(np.float64).eps)
TINY = 1e-307  # Below this, numbers are subnormal and no relative accuracy is promised.


@dataclass(frozen=True)
class Case:
    """A margin loss, its definition in high precision, labels to try, and where it has kinks."""

    loss: Any
    exact: Callable[[Any, Any], Any]
    labels: tuple[float, ...]
    kinks: Callable[[float], list[float]] = lambda y: []
    # Where the result is a difference, rounding is relative to its terms.
    terms: Callable[[float, float], float] = lambda m, y: 0.0
    slope_terms: Callable[[float, float], float] = lambda m, y: 0.0
    ranges: tuple[tuple[float, float], ...] = field(default=((0.5, 0.25), (0.5, 0.5), (1.0, 1.0), (3.0, 2.0)))

    def grid(self, label: float) -> np.ndarray:
        """The labels of the domain up to ``label``."""
        domain = self.loss.labels
        if isinstance(domain, Choice):
            return np.array(domain.values, dtype=float)
        return np.linspace(max(domain.low, -label), min(domain.high, label), 5)


def _huber(m: Any, y: Any) -> Any:
    d = abs(m - y)
    return d * d / 2 if d <= mp.mpf(0.75) else mp.mpf(0.75) * (d - mp.mpf(0.75) / 2)


def poisson(m: Any, y: Any, cap: float = 80.0) -> Any:
    return (mp.exp(m) if m <= cap else mp.exp(cap) * (1 + m - cap)) - y * m


REAL = (0.0, 1.0, -2.5, 0.1)
CASES = {
    "squared": Case(Squared(), lambda m, y: (m - y) ** 2 / 2, REAL),
    "squared error": Case(SquaredError(), lambda m, y: (m - y) ** 2, REAL),
    "absolute": Case(Absolute(), lambda m, y: abs(m - y), REAL, lambda y: [y]),
    "epsilon": Case(
        EpsilonInsensitive(0.375),
        lambda m, y: max(mp.mpf(0), abs(m - y) - mp.mpf(0.375)),
        REAL,
        lambda y: [y - 0.375, y + 0.375],
        terms=lambda m, y: abs(m - y),
    ),
    "huber": Case(Huber(0.75), _huber, REAL),
    "quantile": Case(
        Quantile(0.3), lambda m, y: max(mp.mpf(0.3) * (y - m), (1 - mp.mpf(0.3)) * (m - y)), REAL, lambda y: [y]
    ),
    "logistic": Case(
        Logistic(),
        lambda m, y: mp.log(1 + mp.exp(m)) - y * m,
        (0.0, 1.0, 0.3),
        slope_terms=lambda m, y: 0.0 if y in (0, 1) else 1.0,
    ),
    "hinge": Case(
        Hinge(),
        lambda m, y: max(mp.mpf(0), 1 - y * m),
        (-1.0, 1.0),
        lambda y: [y],
        ranges=((1.5, 1.0), (3.0, 1.0)),  # Up to 1 it is linear, and the constants are those of larger ranges.
    ),
    "squared hinge": Case(SquaredHinge(), lambda m, y: max(mp.mpf(0), 1 - y * m) ** 2 / 2, (-1.0, 1.0)),
    "poisson": Case(
        Poisson(),
        poisson,
        (0.0, 1.0, 7.0),
        terms=lambda m, y: abs(y * m),
        slope_terms=lambda m, y: y,
    ),
}
every = pytest.mark.parametrize("case", CASES.values(), ids=CASES)

_random = np.random.default_rng(0)
MARGINS = [0.0, 0.25, 0.5, 1.0, *_random.normal(size=6), *_random.normal(scale=30, size=6)]
MARGINS += [s * m for m in (1e-12, 1e-3, 40.0, 700.0, 1e4, 1e30) for s in (-1, 1)]


def close(got: float, want: Any, terms: float = 0.0, ulps: int = 8) -> bool:
    return math.isfinite(got) and abs(mp.mpf(got) - want) <= ulps * EPS * (abs(want) + terms) + TINY

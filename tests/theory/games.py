"""Games that tests of several topics play: adversaries, comparators, and a game of every algorithm."""

import numpy as np

from forel.losses import (
    Linear,
    Quadratic,
)
from tests.theory.cases import FUNCTIONS


def random_gradients(t, x, rng=None):
    g = np.random.default_rng([7, t]).normal(size=x.size)
    return Linear(g / max(1.0, np.linalg.norm(g)))


def follows_the_player(t, x):
    """The gradient that hurts most: along the point itself, or a corner at the start."""
    length = np.linalg.norm(x)
    return Linear(x / length if length > 1e-9 else np.eye(x.size)[t % x.size])


def curved(t, x):
    return Quadratic(np.random.default_rng([3, t]).normal(size=x.size) / 2)


def combinations():
    return [(g, p, s) for g, p, s in FUNCTIONS if s != "Affine" or g != "FullMatrix"]

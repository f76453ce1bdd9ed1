"""Solutions of the exercises in ``docs/theory``, as checks."""

import numpy as np
import pytest

from forel.losses import Linear
from forel.theory.algorithms import FTRL, gradient_descent
from forel.theory.algorithms.delayed import huber
from forel.theory.analysis import bound, play
from forel.theory.geometries import Euclidean
from forel.theory.rates import Constant


def linear(rows):
    return [Linear(np.atleast_1d(g)) for g in rows]


def test_delay_1_a_repeated_gradient_costs_eta_d_more_in_every_round_after_the_first_d():
    eta, late, g = 0.1, 7, np.array([0.6, -0.8])
    regrets = [play(gradient_descent(eta), linear([g] * 50), delays=d).regrets(-g) for d in (0, late)]
    extra = np.diff(regrets[1] - regrets[0], prepend=0.0)
    np.testing.assert_allclose(extra[late:], eta * late * (g @ g))


def test_delay_2_a_hint_of_zero_gives_the_bound_without_hints():
    assert huber(2.0, 2.0) == 4.0  # the step from 0 to g starts at m = 0: convexity at 0 is an equality
    stream = linear(np.random.default_rng(0).normal(size=(20, 2)))
    plain, hinted = (
        play(FTRL(Constant(0.3), Euclidean(), hint=hint), stream) for hint in (None, lambda t, last: np.zeros(2))
    )
    assert bound(plain, np.ones(2)).total == pytest.approx(bound(hinted, np.ones(2)).total, rel=1e-12)


def test_delay_3_gradient_descent_with_the_last_gradient_as_its_hint():
    g, eta = np.random.default_rng(0).normal(size=(20, 2)), 0.3
    x = play(FTRL(Constant(eta), Euclidean(), hint=lambda t, last: last), linear(g)).points
    np.testing.assert_allclose(x[2:], x[1:-1] - 2 * eta * g[1:] + eta * g[:-1], atol=1e-12)

"""Iterates are correct on streams of any length: points may underflow, the state does not."""

import math

import mpmath
import numpy as np
import pytest

from forel.losses import Linear
from forel.theory.algorithms import FTRL, Implicit, MirrorDescent, as_ftrl_proximal, exponentiated_gradient, hedge
from forel.theory.algorithms.forms import GREEDY, LAZY
from forel.theory.analysis import bound, play, strong_ftrl_lemma
from forel.theory.geometries import Entropy, SquaredPNorm
from forel.theory.penalties import l1
from forel.theory.rates import Constant, InverseSqrt, ScalarAdaGrad
from forel.theory.sets import Reals, Simplex

ROUNDS = 5000
# One expert loses for 5,000 rounds, then another, and at the end they differ a little. Dyadic: sums are exact.
SWITCH = np.array([[1.0, 0.0, 0.75]] * ROUNDS + [[0.0, 1.0, 0.25]] * ROUNDS + [[0.5, 0.0, 1.0]])


def finish(algorithm, *parts):
    """The point after each part of a stream; after the only one, by itself."""
    state, points = algorithm.init(parts[0].shape[1]), []
    for gradients in parts:
        for g in gradients:
            state = algorithm.update(state, Linear(g))
        points.append(algorithm.play(state))
    return points if len(points) > 1 else points[0]


def softmax(exponents):
    """The distribution with these logarithms up to a constant, with digits to spare."""
    with mpmath.workdps(60):
        weights = [mpmath.exp(mpmath.mpf(float(e))) for e in exponents]
        return np.array([float(w / mpmath.fsum(weights)) for w in weights])


ENTROPIC = {
    "exponentiated gradient": lambda eta: exponentiated_gradient(eta),
    "as FTRL-Proximal": lambda eta: as_ftrl_proximal(exponentiated_gradient(eta)),
    "centered FTRL": lambda eta: FTRL(Constant(eta), Entropy(), feasible=Simplex()),
    "proximal FTRL": lambda eta: FTRL(Constant(eta), Entropy(), "played", feasible=Simplex()),
    **{f"lazy {name}": lambda eta, b=build: b(Entropy(), 1 / eta, Simplex()) for name, build in LAZY.items()},
    **{f"greedy {name}": lambda eta, b=build: b(Entropy(), 1 / eta, Simplex()) for name, build in GREEDY.items()},
}


@pytest.mark.parametrize("name", ENTROPIC)
def test_entropic_updates_remember_every_loss(name):
    """With a fixed rate all of them are x ∝ exp(−η g_{1:T}), independent of the order of gradients."""
    half, found = finish(ENTROPIC[name](1.0), SWITCH[:ROUNDS], SWITCH[ROUNDS:])
    assert half.tolist() == [0.0, 1.0, 0.0]  # 5,000 nats are beyond what floats hold
    assert np.allclose(found, softmax(-SWITCH.sum(axis=0)), rtol=1e-8)


def test_hedge_remembers_every_loss():
    found = finish(hedge(3), SWITCH)
    eta = math.sqrt(math.log(3) / (1 + len(SWITCH)))
    assert np.allclose(found, softmax(-eta * SWITCH.sum(axis=0)), rtol=1e-9)


def test_adaptive_proximal_entropy_recovers_from_points_that_underflow():
    """x ∝ exp(−(g_{1:t} − Σ σ_s log x_s)/σ_{0:t}), in which the log x_s are kept, not taken from x_s."""
    gradients = 4 * SWITCH[::4]
    rate = ScalarAdaGrad(2.0, 1.0)
    algorithm = FTRL(rate, Entropy(), "played", feasible=Simplex())
    with mpmath.workdps(50):
        state, logs, linear, strength = rate.init(3), [mpmath.log(mpmath.mpf(1) / 3)] * 3, [mpmath.mpf(0)] * 3, None
        for g in [None, *gradients]:
            before = mpmath.mpf(0) if strength is None else strength
            if g is not None:
                state = rate.update(state, g)
                linear = [z - mpmath.mpf(float(v)) for z, v in zip(linear, g, strict=True)]
            strength = mpmath.mpf(rate.strength(state))
            linear = [z + (strength - before) * u for z, u in zip(linear, logs, strict=True)]
            logs = [z / strength for z in linear]
            norm = max(logs) + mpmath.log(mpmath.fsum(mpmath.exp(v - max(logs)) for v in logs))
            logs = [v - norm for v in logs]
        expected = np.array([float(mpmath.exp(v)) for v in logs])
    assert np.allclose(finish(algorithm, gradients), expected, rtol=1e-7, atol=0)


def test_mirror_descent_with_an_adaptive_rate_and_a_penalty_remembers():
    """log x_{t+1} = log x_t − η_t(g_t + λ) up to a constant; a simplex of another total only scales."""
    rate, penalty = InverseSqrt(5.0, 1), l1([0.0, 0.25, 0.5])
    algorithm = MirrorDescent(rate, Entropy(), penalty, feasible=Simplex(4.0))
    etas = 5.0 / np.sqrt(np.arange(2.0, len(SWITCH) + 2))
    logs = -(etas[:, None] * (SWITCH + penalty.l1)).sum(axis=0)
    assert np.allclose(finish(algorithm, SWITCH), 4 * softmax(logs), rtol=1e-8)


def test_implicit_entropic_updates_remember():
    from forel.losses import Absolute, Example

    implicit = Implicit(Constant(1.0), Entropy(), feasible=Simplex())
    state = implicit.init(2)
    for features in ([1.0, 0.0],) * 1000 + ([0.0, 1.0],) * 1000:  # |a·x + 1| has the slope 1 wherever it can be
        state = implicit.update(state, Example(Absolute(), features, -1.0))
    assert np.allclose(implicit.play(state), 0.5, rtol=1e-9)


@pytest.mark.parametrize("p", [1.001, 1.01, 1.5])
def test_mirror_descent_in_p_norms_remembers(p):
    """For p near 1 all coordinates but the largest underflow in x: their image is what the gradients add up to."""
    gradients = np.array([[1.0, 0.25, 0.0]] * 50 + [[-1.0, 0.25, 0.5]] * 50)
    geometry = SquaredPNorm(p)
    expected = geometry.conjugate_gradient(1.0, -gradients.sum(axis=0))
    mirror = MirrorDescent(Constant(1.0), geometry)
    unconstrained = [build(geometry, 1.0, Reals()) for name, build in GREEDY.items() if name != "projection"]
    for algorithm in (mirror, as_ftrl_proximal(mirror), FTRL(Constant(1.0), geometry, "played"), *unconstrained):
        assert np.allclose(finish(algorithm, gradients), expected, rtol=1e-9)


@pytest.mark.parametrize("name", ["exponentiated gradient", "as FTRL-Proximal", "proximal FTRL"])
def test_bounds_and_lemmas_hold_where_points_underflow(name):
    gradients = 100 * np.array([[1.0, 0.0, 0.75]] * 20 + [[0.0, 1.0, 0.25]] * 20)
    trace = play(ENTROPIC[name](1.0), [Linear(g) for g in gradients])
    assert (trace.points == 0).any()
    for x in (np.eye(3)[0], np.eye(3)[1], np.full(3, 1 / 3)):
        parts = strong_ftrl_lemma(trace, x)
        assert parts.error <= 1e-9
        assert parts.remainder <= 1e-9 * abs(parts.regularization)
        assert trace.regret(x) <= bound(trace, x).total * (1 + 1e-12)


def test_the_image_is_the_gradient_where_nothing_underflows():
    argmin = exponentiated_gradient(1.0).argmin
    x, image = argmin.solve_with_image(np.array([1.0, 2.0, 0.5]), 2.0)
    assert np.allclose(image, Entropy().gradient(1.0, x), rtol=1e-14)
    geometry = SquaredPNorm(1.3)
    x, image = MirrorDescent(Constant(1.0), geometry, l1(0.3)).argmin.solve_with_image(np.array([1.0, -2.0, 0.1]), 2.0)
    assert x[2] == 0
    assert np.allclose(image, geometry.gradient(1.0, x), rtol=1e-14)

"""Optax transformations are the theory engine's algorithms, compiled or not, on any tree of parameters."""

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="jax is an extra: pip install 'forel[optax]'")
optax = pytest.importorskip("optax", reason="optax is an extra: pip install 'forel[optax]'")

from jax import numpy as jnp  # noqa: E402

from forel.losses import Linear  # noqa: E402
from forel.optax import adagrad_dual_averaging, ftrl_proximal  # noqa: E402
from forel.theory import algorithms  # noqa: E402
from forel.theory.penalties import ElasticNet  # noqa: E402

ROUNDS, N = 150, 6
PAIRS = {
    "proximal": (ftrl_proximal(0.3, 0.5, l1=0.7, l2=0.2), algorithms.ad_click(0.3, 0.5, 0.7, 0.2)),
    "averaging": (
        adagrad_dual_averaging(0.3, 2.0, l1=0.7, l2=0.2),
        algorithms.adagrad_dual_averaging(0.3, 2.0, ElasticNet(0.7, 0.2)),
    ),
}


@pytest.fixture
def double():
    """64-bit arrays, as long as the test takes."""
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", False)


def gradients():
    rng = np.random.default_rng(0)
    return rng.normal(size=(ROUNDS, N)) * np.logspace(-3, 2, N) * (rng.random((ROUNDS, N)) < 0.5)


def run(transformation, grads, dtype, start=0.0):
    x = {"a": jnp.full(2, start, dtype), "b": jnp.full((2, 2), start, dtype)}
    state, points, update = transformation.init(x), [], jax.jit(transformation.update)
    for g in grads.astype(dtype):
        updates, state = update({"a": g[:2], "b": g[2:].reshape(2, 2)}, state, x)
        x = optax.apply_updates(x, updates)
        points.append(np.concatenate((x["a"], x["b"].ravel())))
    return np.array(points)


@pytest.mark.parametrize("name", PAIRS)
def test_iterates_are_those_of_the_theory_engine(name, double):
    transformation, algorithm = PAIRS[name]
    grads, state, points = gradients(), algorithm.init(N), []
    for g in grads:
        state = algorithm.update(state, Linear(g))
        points.append(algorithm.play(state))
    found = run(transformation, grads, np.float64)
    np.testing.assert_allclose(found, points, rtol=1e-9, atol=1e-12)
    assert ((found == 0) == (np.array(points) == 0)).all()
    assert (found == 0).any()
    np.testing.assert_allclose(run(transformation, grads, np.float32), points, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("make", [ftrl_proximal, adagrad_dual_averaging])
def test_from_any_start_the_steps_are_those_from_zero_shifted(make, double):
    grads = gradients()
    np.testing.assert_allclose(run(make(), grads, np.float64, 5.0), 5 + run(make(), grads, np.float64), rtol=1e-9)


def test_a_coordinate_that_nothing_determines_stays_and_options_are_validated():
    assert (run(ftrl_proximal(beta=0.0), np.zeros((3, N)), np.float32, 3.0) == 3).all()
    with pytest.raises(ValueError, match="learning_rate: got -1, expected a positive number"):
        ftrl_proximal(-1)
    with pytest.raises(ValueError, match="params: got None"):
        ftrl_proximal().update(jnp.zeros(2), ftrl_proximal().init(jnp.zeros(2)))

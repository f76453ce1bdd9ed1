r"""FTRL-Proximal and AdaGrad dual averaging as optax transformations, with exact zeros.

The steps are those of ``forel.torch``, for dense gradients; there the formula is explained.
"""

from typing import Any, NamedTuple

import jax
import optax
from jax import numpy as jnp

from forel.validation import non_negative, positive

__all__ = ["FTRLState", "adagrad_dual_averaging", "ftrl_proximal"]


class FTRLState(NamedTuple):
    """The dual state, δ² plus the sum of squared gradients, and the centers of dual averaging, as trees."""

    z: Any
    squares: Any
    first: Any


def ftrl_proximal(
    learning_rate: float = 0.1, beta: float = 1.0, l1: float = 0.0, l2: float = 0.0, offset: float = 0.0
) -> optax.GradientTransformation:
    r"""Return FTRL-Proximal, $z \leftarrow z + g - \sigma x$, $x = -\mathrm{sign}(z)\max(|z| - \lambda_1, 0)/(\sigma_{0:t} + \lambda_2)$.

    Parameters
    ----------
    learning_rate : η
    beta : β, strength before any gradient
    l1, l2 : λ1 and λ2 of the penalty, which enters once
    offset : δ

    >>> transformation = ftrl_proximal(learning_rate=1.0, l1=1.0)
    >>> weights = jnp.zeros(2)
    >>> updates, state = transformation.update(jnp.array([3.0, -0.5]), transformation.init(weights), weights)
    >>> optax.apply_updates(weights, updates)
    Array([-0.5,  0. ], dtype=float32)

    Survey: sections 3.4 and 5
    """  # noqa: E501
    return _ftrl(True, learning_rate, beta, l1, l2, offset)


def adagrad_dual_averaging(
    learning_rate: float = 0.1, offset: float = 1.0, l1: float = 0.0, l2: float = 0.0
) -> optax.GradientTransformation:
    r"""Return AdaGrad dual averaging, $x_{t+1} = x_1 - \eta g_{1:t} / \sqrt{\delta^2 + \sum g_s^2}$ without a penalty.

    Parameters
    ----------
    learning_rate : η
    offset : δ, the largest gradient of a coordinate to expect
    l1, l2 : λ1 and λ2 of the penalty, which enters once

    >>> transformation = adagrad_dual_averaging(learning_rate=1.0, offset=3.0)
    >>> weights = jnp.ones(1)
    >>> updates, state = transformation.update(jnp.array([4.0]), transformation.init(weights), weights)
    >>> float(optax.apply_updates(weights, updates)[0])  # 1 - 4/5
    0.19999...

    Survey: section 3.5
    """
    return _ftrl(False, learning_rate, 0.0, l1, l2, offset)


def _ftrl(proximal: bool, lr: float, beta: float, l1: float, l2: float, offset: float) -> optax.GradientTransformation:
    positive("learning_rate", lr)
    for name, value in (("beta", beta), ("l1", l1), ("l2", l2), ("offset", offset)):
        non_negative(name, value)

    def init(params: Any) -> FTRLState:
        z = jax.tree.map(lambda x: -(beta + offset) / lr * x, params)
        squares = jax.tree.map(lambda x: jnp.full_like(x, offset**2), params)
        return FTRLState(z, squares, None if proximal else params)

    def dual(g: Any, z: Any, before: Any, after: Any, center: Any) -> Any:
        return z + g - (jnp.sqrt(after) - jnp.sqrt(before)) / lr * center

    def move(x: Any, z: Any, squares: Any) -> Any:
        strength = (beta + jnp.sqrt(squares)) / lr + l2
        determined = strength > 0  # where nothing determines the minimizer, x stays
        return jnp.where(determined, (jnp.clip(z, -l1, l1) - z) / jnp.where(determined, strength, 1.0) - x, 0.0)

    def update(grads: Any, state: FTRLState, params: Any = None) -> tuple[Any, FTRLState]:
        if params is None:
            raise ValueError("params: got None, expected the parameters; call update(gradients, state, params)")
        squares = jax.tree.map(lambda n, g: n + g * g, state.squares, grads)
        z = jax.tree.map(dual, grads, state.z, state.squares, squares, params if proximal else state.first)
        return jax.tree.map(move, params, z, squares), FTRLState(z, squares, state.first)

    return optax.GradientTransformation(init, update)

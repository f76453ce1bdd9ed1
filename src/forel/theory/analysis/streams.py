"""Streams: losses fixed before the game, drawn with a seed or taken from data.

The same arguments give the same losses, independent of the points; for losses that depend on them see
``forel.theory.analysis.adversaries``.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse

from forel.losses import Example, Linear, Logistic, Loss, MarginLoss, Quadratic, Squared
from forel.theory.norms import L2, Norm
from forel.validation import Matrix, Vector, finite, matrix, non_negative, number, positive, refuse, vector, whole

__all__ = ["classification", "examples_from", "experts", "quadratics", "random_linear", "regression", "switching"]


def regression(n: int, rounds: int, seed: int = 0, noise: float = 0.1) -> tuple[Example, ...]:
    r"""Return squared losses of examples $y_t = w \cdot a_t + \epsilon_t$ with a sparse w.

    Features are standard normal, and so are the entries of w that are not 0: one in five, at least one.

    Parameters
    ----------
    n, rounds : the dimension and the number of losses
    seed : which w, features and noise
    noise : the standard deviation of ε

    >>> first, *_ = regression(n=3, rounds=10, seed=1)
    >>> first.loss, first.features.shape
    (Squared(), (3,))

    Survey: section 1
    """
    n, rounds, rng = _arguments(n, rounds, seed)
    w = np.zeros(n)
    chosen = rng.choice(n, size=max(1, n // 5), replace=False)
    w[chosen] = rng.standard_normal(chosen.size)
    features = rng.standard_normal((rounds, n))
    labels = features @ w + non_negative("noise", noise) * rng.standard_normal(rounds)
    return tuple(Example(Squared(), a, y) for a, y in zip(features, labels, strict=True))


def classification(n: int, rounds: int, seed: int = 0) -> tuple[Example, ...]:
    r"""Return logistic losses of examples whose labels are 1 with probability $1/(1 + e^{-w \cdot a_t})$.

    Features and w are standard normal.

    Parameters
    ----------
    n, rounds : the dimension and the number of losses
    seed : which w, features and labels

    >>> sorted({example.label for example in classification(n=3, rounds=100)})
    [0.0, 1.0]

    Survey: section 1
    """
    n, rounds, rng = _arguments(n, rounds, seed)
    w, features = rng.standard_normal(n), rng.standard_normal((rounds, n))
    labels = rng.random(rounds) < Logistic().link(features @ w)
    return tuple(Example(Logistic(), a, y) for a, y in zip(features, labels.astype(np.float64), strict=True))


def experts(n: int, rounds: int, seed: int = 0, gap: float = 0.1) -> tuple[Linear, ...]:
    r"""Return the losses of n experts, each 0 or 1: 1 with probability $\frac12$, for one expert $\frac12 - \gamma$.

    Coins, and not something smoother, because they vary most among losses in [0, 1].

    Parameters
    ----------
    n, rounds : the number of experts and the number of losses
    seed : which expert is better, and all losses
    gap : γ, from 0 to ½

    >>> total = sum(loss.g for loss in experts(n=3, rounds=10_000, gap=0.25))
    >>> np.sort(np.round(total / 10_000, 1))
    array([0.2, 0.5, 0.5])

    Survey: section 3.6
    """
    n, rounds, rng = _arguments(n, rounds, seed)
    chances = np.full(n, 0.5)
    chances[rng.integers(n)] -= number("gap", gap, "a number from 0 to 0.5", low=0.0, high=0.5)
    return tuple(Linear(g) for g in (rng.random((rounds, n)) < chances).astype(np.float64))


def switching(n: int, rounds: int, period: int = 20, seed: int = 0) -> tuple[Linear, ...]:
    """Return linear losses whose gradient is a unit vector that changes after each period.

    Consecutive gradients have a non-positive inner product, so that the best point changes with each period.

    Parameters
    ----------
    n, rounds : the dimension and the number of losses
    period : the number of rounds between changes
    seed : which gradients

    >>> [float(loss.g[0]) for loss in switching(n=1, rounds=5, period=2)]
    [1.0, 1.0, -1.0, -1.0, 1.0]

    Survey: section 1
    """
    n, rounds, rng = _arguments(n, rounds, seed)
    period = whole("period", period, low=1)
    gradients = [_directions(rng, 1, n, L2)[0]]
    while len(gradients) * period < rounds:
        (g,) = _directions(rng, 1, n, L2)
        gradients.append(g if g @ gradients[-1] <= 0 else -g)
    return tuple(Linear(gradients[t // period]) for t in range(rounds))


def random_linear(n: int, rounds: int, seed: int = 0, norm: Norm = L2, lipschitz: float = 1.0) -> tuple[Linear, ...]:
    r"""Return linear losses whose gradients point anywhere, with $\|g_t\|_\star = G$.

    Parameters
    ----------
    n, rounds : the dimension and the number of losses
    seed : which gradients; their directions are uniform
    norm : the norm of points, in whose dual gradients are measured
    lipschitz : G

    >>> from forel.theory.norms import L1
    >>> [float(abs(loss.g).max()) for loss in random_linear(n=3, rounds=2, norm=L1, lipschitz=2.0)]
    [2.0, 2.0]

    Survey: section 2.3
    """
    n, rounds, rng = _arguments(n, rounds, seed)
    scale = positive("lipschitz", lipschitz)
    return tuple(Linear(scale * g) for g in _directions(rng, rounds, n, norm.dual))


def quadratics(n: int, rounds: int, seed: int = 0) -> tuple[Quadratic, ...]:
    r"""Return losses $\frac12\|x - c_t\|_2^2$ with $c_t$ uniform in the unit ball: 1-strongly convex.

    On the unit ball their gradients have norm at most 2.

    Parameters
    ----------
    n, rounds : the dimension and the number of losses
    seed : which centers

    >>> [loss.strong_convexity for loss in quadratics(n=3, rounds=2)]
    [1.0, 1.0]

    Survey: section 3.7
    """
    n, rounds, rng = _arguments(n, rounds, seed)
    directions = _directions(rng, rounds, n, L2)
    radii = rng.random(rounds) ** (1 / n)  # the share of the ball within radius r is rⁿ
    return tuple(Quadratic(r * c) for r, c in zip(radii, directions, strict=True))


def examples_from(X: Any, y: ArrayLike, loss: MarginLoss) -> tuple[Loss, ...]:
    r"""Return the losses $\ell(a_t \cdot x, y_t)$ of real data, one for each row.

    Parameters
    ----------
    X : the rows a_t, an array or a sparse matrix
    y : the labels, in the domain of the loss
    loss : ℓ; for Softmax the losses are those of the n×K matrix of its margins

    >>> losses = examples_from([[1.0, 2.0], [0.0, 3.0]], [1, 0], Logistic())
    >>> losses[1].features, losses[1].label
    (array([0., 3.]), 0.0)

    Survey: section 1
    """
    sparse = bool(issparse(X))
    rows: Any = X.tocsr() if sparse else matrix("X", X)
    if sparse:
        finite("X", np.asarray(rows.data, dtype=np.float64))
    labels = vector("y", loss.labels.check("y", y))
    if labels.size != rows.shape[0]:
        raise refuse("y", f"{labels.size} labels", f"one for each of the {rows.shape[0]} rows of X")
    # One row at a time: the dense matrix may not fit in memory.
    dense = (rows[[t]].toarray()[0] if sparse else rows[t] for t in range(labels.size))
    return tuple(Example(loss, a, label) for a, label in zip(dense, labels, strict=True))


def _arguments(n: int, rounds: int, seed: int) -> tuple[int, int, np.random.Generator]:
    generator = np.random.default_rng(whole("seed", seed))
    return whole("n", n, low=1), whole("rounds", rounds, low=1), generator


def _directions(rng: np.random.Generator, rounds: int, n: int, dual: Norm) -> Matrix:
    """Return rows of uniform direction and of length 1 in a norm of gradients."""
    normal: Matrix = rng.standard_normal((rounds, n))
    lengths: Vector = np.array([dual(g) for g in normal])
    if not (np.isfinite(lengths).all() and lengths.all()):
        raise refuse("norm", dual, "a norm that is positive and finite in all directions")
    return normal / lengths[:, None]

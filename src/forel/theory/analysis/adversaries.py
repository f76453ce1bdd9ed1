"""Adversaries: losses chosen during the game, as functions of the round t and the point x_t.

All losses here are linear, the worst case for algorithms that linearize. Losses fixed before the game are in
``forel.theory.analysis.streams``.
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from forel.losses import Linear
from forel.theory.analysis.game import Adversary
from forel.theory.norms import L2, DiagonalNorm, MatrixNorm, Norm, PNorm, ScaledNorm
from forel.validation import Matrix, Unsupported, Vector, matrix, non_negative, positive, refuse, vector, whole

__all__ = ["alternating", "bandit", "l1_example", "l1_example_alternating", "orthogonal", "spikes", "worst_linear"]


def worst_linear(norm: Norm = L2, lipschitz: float = 1.0) -> Adversary:
    r"""Return the adversary that makes this round cost most, $g_t = \arg\max_{\|g\|_\star \le G} g \cdot x_t$.

    The loss is then $G\|x_t\|$. At 0, where all gradients cost the same, it plays along the first coordinate.

    Parameters
    ----------
    norm : the norm of points, in whose dual gradients are measured
    lipschitz : G

    >>> from forel.theory.norms import L1, LINF
    >>> [worst_linear(norm, lipschitz=10)(1, np.array([3.0, -4.0])).g for norm in (L2, L1, LINF)]
    [array([ 6., -8.]), array([ 10., -10.]), array([  0., -10.])]

    Survey: section 2.3
    """
    scale = positive("lipschitz", lipschitz)
    n = _dimension(norm)

    def adversary(t: int, x: Vector) -> Linear:
        return Linear(scale * _attaining(norm, vector("x_t", x, n)))

    return adversary


def bandit(losses: ArrayLike, seed: int = 0) -> Adversary:
    r"""Return estimates of losses of which only that of $I_t \sim x_t$ is seen: $g_{t,i}/x_{t,i}$ there, else 0.

    Entropic FTRL against them is EXP3. They depend on the seed, the round and x_t alone.

    Parameters
    ----------
    losses : a row for each round, of numbers of at least 0
    seed : of the draws

    >>> estimate = bandit([[1.0, 1.0]])(1, np.array([0.25, 0.75])).g
    >>> sorted(estimate) in ([0.0, 4.0], [0.0, 4 / 3])
    True

    After Auer et al., "The nonstochastic multiarmed bandit problem" (2002).
    """
    rows = matrix("losses", losses)
    if rows.min() < 0:
        raise refuse("losses", rows.min(), "numbers of at least 0")

    def adversary(t: int, x: Vector) -> Linear:
        p = np.maximum(x, 0.0)
        i = int(np.random.default_rng((seed, t)).choice(p.size, p=p / p.sum()))
        return Linear(np.eye(p.size)[i] * rows[t - 1, i] / p[i])

    return adversary


def orthogonal(lipschitz: float = 1.0) -> Adversary:
    r"""Return the adversary whose $g_t$ has norm G and is orthogonal to $x_t$ and to $g_{1:t-1}$.

    No round costs anything, and yet $\|g_{1:T}\|_2 = G\sqrt T$: against gradient descent with rate $R/(G\sqrt T)$ on
    all of R^n, the regret against the best point of norm R is $RG\sqrt T$, exactly what Theorem 1 allows.

    It keeps $g_{1:t-1}$ and resets it at t = 1, so games may run one after another but not interleaved. In
    three dimensions or more there always is such a g; in two, only while $x_t$ and $g_{1:t-1}$ are parallel.

    Parameters
    ----------
    lipschitz : G

    >>> adversary = orthogonal(2.0)
    >>> adversary(1, np.zeros(3)).g, adversary(2, np.array([-1.0, 0.0, 0.0])).g
    (array([2., 0., 0.]), array([0., 2., 0.]))

    Survey: Theorem 1 and section 3.1
    """
    scale = positive("lipschitz", lipschitz)
    total: Vector = np.zeros(1)

    def adversary(t: int, x: Vector) -> Linear:
        nonlocal total
        before = np.zeros(x.size) if t == 1 else total
        g = scale * _perpendicular(x, before)
        total = before + g
        return Linear(g)

    return adversary


def alternating(lipschitz: float = 1.0) -> Adversary:
    r"""Return the adversary of gradients +G, −G, +G, … along the first coordinate, independent of the points.

    Parameters
    ----------
    lipschitz : G, which is then $\|g_t\|$ in every p-norm

    >>> [alternating(2.0)(t, np.zeros(2)).g for t in (1, 2)]
    [array([2., 0.]), array([-2.,  0.])]

    Survey: appendix D
    """
    scale = positive("lipschitz", lipschitz)

    def adversary(t: int, x: Vector) -> Linear:
        return Linear(_along(0, x.size, scale if t % 2 else -scale))

    return adversary


def spikes(lipschitz: float = 1.0, period: int = 10) -> Adversary:
    r"""Return the adversary of zero gradients, but for −G on one coordinate at the end of each period, in turn.

    Rates that count rounds have become small when a coordinate's gradient comes; AdaGrad's, which count gradients,
    have not.

    Parameters
    ----------
    lipschitz : G, which is then the largest $\|g_t\|$ in every p-norm
    period : the number of rounds from spike to spike

    >>> adversary = spikes(3.0, period=2)
    >>> [adversary(t, np.zeros(2)).g for t in (1, 2, 3, 4)]
    [array([0., 0.]), array([-3.,  0.]), array([0., 0.]), array([ 0., -3.])]

    Survey: section 3.4
    """
    scale, period = positive("lipschitz", lipschitz), whole("period", period, low=1)

    def adversary(t: int, x: Vector) -> Linear:
        return Linear(_along((t // period - 1) % x.size, x.size, 0.0 if t % period else -scale))

    return adversary


def l1_example(lipschitz: float = 11.0, penalty: float = 0.5) -> Adversary:
    r"""Return the adversary that draws Mirror Descent around 0, as section 6.2 words it.

    $g_1 = -\frac12(G + \lambda)$; after that, $g_t = -G$ when $x_t \le 0$ and $G$ when $x_t > 0$. It pushes a point
    that has settled at 0 off it again: Native FTRL, with the survey's numbers, plays 0 in rounds 13 and 14 and leaves
    it in round 15.

    Parameters
    ----------
    lipschitz : G
    penalty : the λ of the algorithms' penalty λ|x|

    >>> adversary = l1_example()
    >>> [float(adversary(t, np.array([x])).g[0]) for t, x in ((1, 0.0), (2, 2.625), (3, 0.0))]
    [-5.75, 11.0, -11.0]

    Survey: section 6.2
    """
    scale, first = _l1_start(lipschitz, penalty)

    def adversary(t: int, x: Vector) -> Linear:
        (point,) = vector("x_t", x, 1)
        return Linear([first if t == 1 else scale if point > 0 else -scale])

    return adversary


def l1_example_alternating(lipschitz: float = 11.0, penalty: float = 0.5) -> Adversary:
    r"""Return the gradients of appendix D's table, $-\frac12(G + \lambda), G, -G, G, \dots$, independent of the points.

    Mirror Descent cannot distinguish it from :func:`l1_example`. Native FTRL can: with the survey's numbers it plays 0
    from round 13 on.

    Parameters
    ----------
    lipschitz : G
    penalty : the λ of the algorithms' penalty λ|x|

    >>> adversary = l1_example_alternating()
    >>> [float(adversary(t, np.array([0.0])).g[0]) for t in (1, 2, 3, 4)]
    [-5.75, 11.0, -11.0, 11.0]

    Survey: appendix D
    """
    scale, first = _l1_start(lipschitz, penalty)

    def adversary(t: int, x: Vector) -> Linear:
        vector("x_t", x, 1)
        return Linear([first if t == 1 else -scale if t % 2 else scale])

    return adversary


def _l1_start(lipschitz: float, penalty: float) -> tuple[float, float]:
    scale = positive("lipschitz", lipschitz)
    return scale, -(scale + non_negative("penalty", penalty)) / 2


def _along(i: int, n: int, value: float) -> Vector:
    g = np.zeros(n)
    g[i] = value
    return g


def _dimension(norm: Norm) -> int | None:
    """Return the dimension of a norm, None if it fits any; raise for norms without a worst gradient."""
    if isinstance(norm, PNorm):
        return None
    if isinstance(norm, ScaledNorm):
        return _dimension(norm.norm)
    diagonal = norm.diagonal if isinstance(norm, MatrixNorm) else norm
    if not isinstance(diagonal, DiagonalNorm):
        raise Unsupported(f"norm: got {norm!r}, expected a PNorm, DiagonalNorm or MatrixNorm, scaled or not")
    if not np.all(np.isfinite(diagonal.entries) & np.greater(diagonal.entries, 0)):
        raise refuse("norm", norm, "a norm that is positive and finite in all directions")
    return diagonal.entries.size if isinstance(diagonal.entries, np.ndarray) else None


def _attaining(norm: Norm, x: Vector) -> Vector:
    """Return a g with ‖g‖⋆ = 1 and g·x = ‖x‖, which is a subgradient of the norm at x."""
    if isinstance(norm, ScaledNorm):
        return norm.factor * _attaining(norm.norm, x)
    largest = float(np.max(np.abs(x)))
    if largest == 0:
        first = _along(0, x.size, 1.0)
        return first / norm.dual(first)
    u = x / largest  # so that no square or power overflows
    if isinstance(norm, MatrixNorm):
        return norm.basis @ _attaining(norm.diagonal, norm.basis.T @ u)
    if isinstance(norm, DiagonalNorm):
        return norm.entries * u / norm(u)
    assert isinstance(norm, PNorm)  # as _dimension has made sure
    if norm.p == math.inf:
        i = int(np.argmax(np.abs(u)))
        return _along(i, x.size, math.copysign(1.0, u[i]))
    return np.asarray(np.sign(u) * (np.abs(u) / norm(u)) ** (norm.p - 1))


def _perpendicular(*vectors: Vector) -> Vector:
    """Return a unit vector orthogonal to all, as near to a coordinate as there is one."""
    n = vectors[0].size
    basis = np.zeros((0, n))
    for v in vectors:
        rest = _without(basis, v)
        if L2(rest) > 1e-12 * L2(v):
            rest = _without(basis, rest / L2(rest))
            basis = np.vstack([basis, rest / L2(rest)])
    if len(basis) == n:
        raise Unsupported(
            f"x_t: got a point of dimension {n} that leaves no direction orthogonal to it and to g_{{1:t−1}}; "
            "play in three dimensions or more"
        )
    # The coordinate farthest from the span of the basis loses least to rounding.
    i = int(np.argmin(np.einsum("ki,ki->i", basis, basis)))
    g = _without(basis, _along(i, n, 1.0))
    g = _without(basis, g / L2(g))
    return g / L2(g)


def _without(basis: Matrix, v: Vector) -> Vector:
    """Return v less its projection on orthonormal rows."""
    return np.asarray(v - basis.T @ (basis @ v))

r"""Online to batch: minimize $F(x) = \frac1N\sum_k f_k(x)$ by playing against its terms."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from forel.losses import Loss, Total
from forel.theory.analysis.game import Trace, dimension
from forel.validation import Vector, refuse, whole

__all__ = ["Batch", "average_loss", "online_to_batch", "passes", "sampled"]


def passes(losses: Sequence[Loss], count: int, seed: int | None = None) -> Iterator[Loss]:
    """Yield all losses ``count`` times, in order, or in a new random order each time when a seed is given.

    >>> from forel.losses import Linear
    >>> len(list(passes([Linear([1.0]), Linear([2.0])], 3)))
    6

    Survey: section 1
    """
    rng = None if seed is None else np.random.default_rng(seed)
    for _ in range(whole("count", count, low=1)):
        order = range(len(losses)) if rng is None else rng.permutation(len(losses))
        yield from (losses[k] for k in order)


def sampled(losses: Sequence[Loss], rounds: int, seed: int = 0) -> Iterator[Loss]:
    """Yield ``rounds`` losses drawn independently, as the convergence statement asks.

    >>> from forel.losses import Linear
    >>> len(list(sampled([Linear([1.0]), Linear([2.0])], 5)))
    5

    Survey: section 1
    """
    if not losses:
        raise refuse("losses", losses, "at least one loss")
    picks = np.random.default_rng(seed).integers(len(losses), size=whole("rounds", rounds, low=1))
    return (losses[k] for k in picks)


def average_loss(losses: Sequence[Loss]) -> Total:
    r"""Return $F = \frac1N\sum_k f_k$ as one loss.

    Played in every round, it makes the convergence statement of :func:`online_to_batch` hold without expectation.

    >>> from forel.losses import Linear
    >>> average_loss([Linear([1.0]), Linear([2.0])])(np.array([2.0]))
    3.0

    Survey: section 1, equation (batch)
    """
    if not losses:
        raise refuse("losses", losses, "at least one loss")
    total = Total.zero(dimension(losses[0]))
    for loss in losses:
        total = total.plus(loss, 1 / len(losses))
    return total


@dataclass(frozen=True, eq=False)
class Batch:
    """Two solutions of the batch problem, and their guarantees.

    ``last`` is x_{T+1}, usually the better one; ``average`` is the mean of x_1, …, x_T, the one with a proof. ``gap``
    is regret over T: by Jensen's inequality F(average) − F(x) ≤ gap, in expectation when the losses were drawn
    independently, and for certain when every round's loss was F itself.

    >>> Batch(np.ones(1), np.zeros(1), 0.1).gap
    0.1

    Survey: section 1
    """

    last: Vector
    average: Vector
    gap: float


def online_to_batch(trace: Trace, x: Vector) -> Batch:
    r"""Return the last point, the average, and $\mathrm{Regret}_T(x)/T$, which bounds $F(\bar x) - F(x)$.

    Parameters
    ----------
    trace : a game against losses from ``sampled``, ``passes`` or ``[average_loss(losses)] * T``
    x : the comparator, such as the minimizer of F

    >>> from forel.theory.algorithms import gradient_descent
    >>> from forel.theory.analysis import play
    >>> from forel.losses import Quadratic
    >>> solved = online_to_batch(play(gradient_descent(0.5), [Quadratic([1.0])] * 20), np.array([1.0]))
    >>> solved.last.round(4), solved.gap > 0
    (array([1.]), True)

    Survey: section 1
    """
    return Batch(trace.points[-1], trace.points[:-1].mean(axis=0), trace.regret(x) / trace.rounds)

"""Fixed share: exponential weights that track the best sequence of experts, and that sequence in hindsight."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from forel.experts.exponential_weights import Posterior, condition
from forel.experts.rule import check_losses
from forel.validation import Vector, floats, number, positive, refuse, whole

__all__ = ["FixedShare", "best_switching"]


@dataclass(frozen=True)
class FixedShare:
    r"""Exponential weights of which a share α is redistributed each round: $w_{t+1} = (1 - c) v_t + c\,\frac1K$.

    Here $v_t \propto w_t e^{-\eta\ell_t}$ and $c = \alpha K/(K - 1)$, so that an expert keeps $1 - \alpha$ of its
    weight and each other expert receives $\alpha/(K - 1)$ of it. This is Bayes' rule over *sequences* of experts: one
    with m switches in T rounds has the prior probability
    $\frac1K (1 - \alpha)^{T-1-m} \bigl(\frac{\alpha}{K-1}\bigr)^m$, and regret against it is at most $\frac1\eta$ times

    $$\log K + m \log(K - 1) + m \log\tfrac1\alpha + (T - 1 - m) \log\tfrac1{1 - \alpha}.$$

    By default $\alpha_t = 1/t$ before round t, so that there is no parameter to choose: the product over all rounds
    telescopes, and the bound is $\log K + \log T + \sum_{i=1}^m \log\bigl((K - 1)(T - i)\bigr)$.

    Parameters
    ----------
    eta : η, positive
    share : α, above 0 and at most (K − 1)/K, at which all weights are equal; None for 1/t

    >>> rule = FixedShare(share=0.1)
    >>> rule.play(rule.update(rule.init(2), [0.0, np.inf]))
    array([0.9, 0.1])

    Survey: section 3.6, with a constant rate; M. Herbster and M. Warmuth, "Tracking the best expert" (1998)
    """

    eta: float = 1.0
    share: float | None = None

    def __post_init__(self) -> None:
        positive("eta", self.eta)
        if self.share is not None:
            number("share", self.share, "a number above 0 and below 1", math.ulp(0.0), math.nextafter(1.0, 0.0))

    @property
    def result(self) -> str:
        """A short description of the bound."""
        over = "" if self.eta == 1 else f" / {self.eta:.6g}"
        return f"fixed share with α = {'1/t' if self.share is None else f'{self.share:.6g}'}, log(1/π){over}"

    def init(self, n: int) -> Posterior:
        """Return uniform weights over n experts."""
        n = whole("n", n, low=1)
        if self.share is not None and n > 1 and self.share > (n - 1) / n:
            raise refuse("share", self.share, f"at most {n - 1}/{n}, at which the weights of {n} experts are equal")
        return Posterior(0, np.full(n, -math.log(n)))

    def play(self, state: Posterior) -> Vector:
        """Return w_{t+1}."""
        return np.exp(state.log_weights)

    def update(self, state: Posterior, losses: ArrayLike) -> Posterior:
        """Multiply each weight by e^{−ηℓ}, and redistribute the share."""
        n = state.log_weights.size
        after = condition(state, self.eta * check_losses(losses, n))
        if n == 1:
            return after
        # Written as a mixture with the uniform distribution, without a difference in which small weights would cancel.
        mixed = (1 / (after.rounds + 1) if self.share is None else self.share) * n / (n - 1)
        kept = math.log1p(-mixed) if mixed < 1 else -math.inf
        return after._replace(log_weights=np.logaddexp(kept + after.log_weights, math.log(mixed / n)))

    def bound(self, state: Posterior, switches: int = 0) -> Vector:
        """Return the bound on regret against any sequence of experts with at most ``switches`` switches."""
        n = state.log_weights.size
        return np.full(n, self.cost(n, state.rounds, switches) / self.eta)

    def cost(self, n: int, rounds: int, switches: int) -> float:
        r"""Return the largest $-\log \pi$ of a sequence of ``n`` experts with at most ``switches`` switches.

        >>> round(FixedShare(share=0.5).cost(n=2, rounds=10, switches=3) / math.log(2), 9)
        10.0
        """
        K, T, m = whole("n", n, low=1), whole("rounds", rounds), whole("switches", switches)
        if m and (K == 1 or m > T - 1):
            raise refuse("switches", m, f"at most {max(T - 1, 0) if K > 1 else 0}, with {K} experts and {T} rounds")
        if K == 1 or T == 0:
            return math.log(K)
        if self.share is None:
            return math.log(K) + math.log(T) + sum(math.log((K - 1) * (T - i)) for i in range(1, m + 1))
        return math.log(K) + m * math.log((K - 1) / self.share) - (T - 1 - m) * math.log1p(-self.share)


def best_switching(losses: ArrayLike, switches: int) -> Vector:
    r"""Return the smallest total loss of a sequence of experts with at most 0, 1, …, m switches.

    $D_{t}(j, k) = \ell_{t,k} + \min\bigl(D_{t-1}(j, k), \min_i D_{t-1}(j - 1, i)\bigr)$, in time T·m·K.

    Parameters
    ----------
    losses : one row per round, one column per expert; may be infinite
    switches : m

    >>> best_switching([[0.0, 1.0], [0.0, 1.0], [1.0, 0.0]], switches=1)
    array([1., 0.])

    Survey: section 3.6; M. Herbster and M. Warmuth, "Tracking the best expert" (1998)
    """
    table, m = floats("losses", losses, "a table of numbers"), whole("switches", switches)
    if table.ndim != 2 or table.size == 0 or not (table > -np.inf).all():
        raise refuse("losses", f"shape {table.shape}", "a table of numbers, one row per round, without NaN")
    best = np.zeros((m + 1, table.shape[1]))
    for row in table:
        best[1:] = np.minimum(best[1:], best[:-1].min(axis=1, keepdims=True))
        best += row
    return np.asarray(best.min(axis=1))

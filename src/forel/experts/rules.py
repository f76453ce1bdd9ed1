"""Rules: weights over experts as three pure functions over a state, and a bound on regret."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from forel.losses.sigmoid import log_normalized
from forel.validation import Vector, floats, frozen, number, positive, refuse, vector, whole

__all__ = ["AdaHedge", "AdaHedgeState", "ExponentialWeights", "FixedShare", "Posterior", "Rule", "best_switching"]

FINITE = "; an infinite loss needs exponential weights, or probabilities kept away from 0 and 1"


class Rule(Protocol):
    """Weights over experts computed from their losses: an algorithm whose points are on the simplex.

    A state has ``rounds``; ``log_weights``, the logarithms of the weights, in which small weights keep full precision;
    and ``void``, the reason why the bound is void, or an empty string.
    """

    @property
    def eta(self) -> float:
        """The η that a pool must have at least for the bound to hold."""
        ...

    @property
    def result(self) -> str:
        """A short description of the bound."""
        ...

    def init(self, n: int) -> Any:
        """Return the state before round 1, for n experts."""
        ...

    def play(self, state: Any) -> Vector:
        """Return the weights for the next round."""
        ...

    def update(self, state: Any, losses: ArrayLike) -> Any:
        """Observe the losses of the experts in this round."""
        ...

    def bound(self, state: Any) -> Vector:
        """Return the bound on regret against each expert."""
        ...


class Posterior(NamedTuple):
    """Number of rounds, log weights, and the reason why the bound is void, if it is."""

    rounds: int
    log_weights: Vector
    void: str = ""


@dataclass(frozen=True, eq=False)
class ExponentialWeights:
    r"""$w_{t+1,k} \propto \pi_k e^{-\eta \ell_{1:t,k}}$: regret against k is at most $\frac1\eta\log\frac1{\pi_k}$.

    The bound holds for pools with $\ell_t \le -\frac1\eta \log \sum_k w_{t,k} e^{-\eta \ell_{t,k}}$, such as weighted
    means under an exp-concave loss. With log-loss, η = 1 and this is Bayes' rule; with a uniform prior, regret is at
    most $\log K$ at any time.

    An expert with infinite loss has weight 0 from then on. If all experts have, the loss of the mixture is infinite,
    weights do not change, and the bound is void.

    Parameters
    ----------
    eta : η, positive
    prior : π, positive numbers in proportion to the weights before round 1; None for uniform weights

    >>> rule = ExponentialWeights(1.0)
    >>> rule.play(rule.update(rule.init(2), [np.log(4), np.log(2)])).round(3)
    array([0.333, 0.667])

    Survey: section 3.6, with a constant rate; V. Vovk, "Aggregating strategies" (1990)
    """

    eta: float
    prior: Vector | None

    def __init__(self, eta: float = 1.0, prior: ArrayLike | None = None) -> None:
        object.__setattr__(self, "eta", positive("eta", eta))
        normalized = None
        if prior is not None:
            raw = vector("prior", prior)
            if not (raw > 0).all():
                raise refuse("prior", float(raw.min()), "positive numbers; leave out experts with prior 0")
            normalized = frozen(raw / raw.sum())
        object.__setattr__(self, "prior", normalized)

    @property
    def result(self) -> str:
        """A short description of the bound."""
        over = "" if self.eta == 1 else f" / {self.eta:.6g}"
        return f"exponential weights, {'log K' if self.prior is None else 'log(1/π)'}{over}"

    def init(self, n: int) -> Posterior:
        """Return the prior as weights of n experts."""
        return Posterior(0, log_prior(self.prior, whole("n", n, low=1)))

    def play(self, state: Posterior) -> Vector:
        """Return w_{t+1}."""
        return np.exp(state.log_weights)

    def update(self, state: Posterior, losses: ArrayLike) -> Posterior:
        """Multiply each weight by e^{−ηℓ}."""
        return condition(state, self.eta * check_losses(losses, state.log_weights.size))

    def bound(self, state: Posterior) -> Vector:
        """Return log(1/π_k)/η."""
        return -log_prior(self.prior, state.log_weights.size) / self.eta


def condition(state: Posterior, losses: Vector) -> Posterior:
    """Return the posterior after the losses: weights times e^{−losses}, unchanged if that leaves no weight."""
    joint = state.log_weights - losses
    total = np.logaddexp.reduce(joint)
    t = state.rounds + 1
    if total == -np.inf:
        reason = f"in round {t} every remaining expert had infinite loss; keep probabilities away from 0 and 1"
        return state._replace(rounds=t, void=state.void or reason)
    return state._replace(rounds=t, log_weights=joint - total)


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


class AdaHedgeState(NamedTuple):
    """Rounds, ℓ_{1:t}, the mixability gap Δ_t, the largest range S, √Σ of squared ranges, and log weights."""

    rounds: int
    totals: Vector
    gap: float
    largest: float
    root: float
    log_weights: Vector
    void: str = ""  # the bound always holds


@dataclass(frozen=True)
class AdaHedge:
    r"""$w_{t+1,k} \propto e^{-\eta_{t+1} \ell_{1:t,k}}$ with $\eta_{t+1} = \log K / \Delta_t$, for losses of any size.

    The mixability gap $\Delta_t = \sum_{s \le t} \bigl(w_s \cdot \ell_s + \frac1{\eta_s}\log\sum_k w_{s,k}
    e^{-\eta_s\ell_{s,k}}\bigr)$ is the cost of mixing; regret is at most $2\Delta_T$, which is known at any time.
    With $s_t$ the range of losses in round t, it is in turn at most
    $\sqrt{\sum_t s_t^2 \log K} + \max_t s_t\,(\frac43\log K + 2)$ (:meth:`worst`). Nothing is assumed about the
    losses, and weights do not depend on their offset or scale.

    >>> rule = AdaHedge()
    >>> state = rule.init(2)
    >>> for losses in ([1.0, 0.0], [0.0, 1.0], [1.0, 0.0]):
    ...     state = rule.update(state, losses)
    >>> rule.play(state).round(3), rule.bound(state)
    (array([0.289, 0.711]), array([1.536..., 1.536...]))

    Survey: section 3.6, with the rate of S. de Rooij, T. van Erven, P. Grünwald and W. Koolen, "Follow the leader if
    you can, hedge if you must" (2014)
    """

    eta: ClassVar[float] = 0.0

    @property
    def result(self) -> str:
        """A short description of the bound."""
        return "AdaHedge, twice the mixability gap"

    def init(self, n: int) -> AdaHedgeState:
        """Return uniform weights over n experts."""
        n = whole("n", n, low=1)
        return AdaHedgeState(0, np.zeros(n), 0.0, 0.0, 0.0, np.full(n, -math.log(n)))

    def play(self, state: AdaHedgeState) -> Vector:
        """Return w_{t+1}."""
        return np.exp(state.log_weights)

    def update(self, state: AdaHedgeState, losses: ArrayLike) -> AdaHedgeState:
        """Add the losses and their mixability gap, and update the rate."""
        losses = _finite(losses, state.totals.size)
        excess = losses - losses.min()  # weights do not depend on an offset; removing it keeps the sums accurate
        expected, mix_loss, log = float(np.exp(state.log_weights) @ excess), 0.0, math.log(losses.size)
        if state.gap > 0:  # before, the rate is infinite and all experts have the same total loss
            mix_loss = -float(np.logaddexp.reduce(state.log_weights - log * (excess / state.gap))) * state.gap / log
        gap = state.gap + max(0.0, expected - mix_loss)
        totals = state.totals + excess
        totals -= totals.min()
        log_weights = log_normalized(-log * (totals / gap)) if gap > 0 else state.log_weights
        span = float(excess.max())
        largest, root = max(state.largest, span), math.hypot(state.root, span)
        return AdaHedgeState(state.rounds + 1, totals, gap, largest, root, log_weights)

    def bound(self, state: AdaHedgeState) -> Vector:
        """Return 2Δ_T, the same for all experts."""
        return np.full(state.totals.size, 2 * state.gap)

    def worst(self, state: AdaHedgeState) -> float:
        """Return the bound in terms of the ranges of losses alone."""
        log = math.log(state.totals.size)
        return state.root * math.sqrt(log) + state.largest * (4 / 3 * log + 2)


def _finite(losses: ArrayLike, n: int) -> Vector:
    try:
        return vector("losses", losses, n)
    except ValueError as error:
        raise ValueError(f"{error}{FINITE if 'inf' in str(error) else ''}") from None


def check_losses(losses: ArrayLike, n: int) -> Vector:
    """Return the losses of n experts as a vector; they may be infinite."""
    array = floats("losses", losses, "a vector of numbers")
    if array.shape != (n,) or not (array > -np.inf).all():
        vector("losses", np.where(array == np.inf, 0.0, array), n)  # raises with the reason
    return array


def log_prior(prior: Vector | None, n: int) -> Vector:
    """Return the logarithms of the prior, uniform by default."""
    if prior is None:
        return np.full(n, -np.log(n))
    if prior.size != n:
        raise ValueError(f"prior: got {prior.size} weights, expected one for each of {n} experts")
    return np.log(prior)

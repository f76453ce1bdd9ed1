"""Exponential weights at a fixed rate: Bayes' rule for log-loss, and its analogue for other exp-concave losses."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from forel.experts.rule import check_losses, log_prior
from forel.validation import Vector, frozen, positive, refuse, vector, whole

__all__ = ["ExponentialWeights", "Posterior", "condition"]


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

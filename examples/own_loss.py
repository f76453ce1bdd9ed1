"""A custom loss: as an object for the theory, with a bound, and as a function for the compiled learner.

A loss needs only a value and a subgradient. This one is the cost of stock: a missing item costs nine times as much as
a surplus item, so that the best estimate is the 90 % quantile of the demand. In the theory it is an object with two
methods, which any algorithm can be played against. For sparse rows it is a function of margin and label, which is
compiled into the same loop as the built-in losses. ``forel.losses.Quantile`` is the same loss.
"""

from dataclasses import dataclass

import numpy as np

from forel.learner.learner import Learner
from forel.learner.settings import Settings
from forel.losses import Quantile
from forel.theory.algorithms import adagrad_ftrl_proximal
from forel.theory.analysis import bound, play
from forel.theory.sets import Box

DAYS = 5000


@dataclass(frozen=True, eq=False)
class Stock:
    """The cost of a stock of x·features for a given demand."""

    features: np.ndarray
    demand: float
    strong_convexity: float = 0.0

    def __call__(self, x: np.ndarray) -> float:
        """Return the cost."""
        d = float(self.features @ x) - self.demand
        return max(-0.9 * d, 0.1 * d)

    def subgradient(self, x: np.ndarray) -> np.ndarray:
        """Return a subgradient of the cost."""
        return (0.1 if self.features @ x > self.demand else -0.9) * self.features


def stock(margin, label):  # type: ignore[no-untyped-def]
    """Return the same cost and its slope, for the compiled learner."""
    d = margin - label
    slope = 0.1 if d > 0 else -0.9
    return slope * d, slope


def main() -> None:
    """Learn the demand of each weekday with both."""
    rng = np.random.default_rng(0)
    days = np.eye(7)[np.arange(DAYS) % 7]
    demand = days @ np.linspace(2, 5, 7) + rng.exponential(size=DAYS)
    best = np.linspace(2, 5, 7) - np.log(0.1)  # the 90 % quantiles

    losses = [Stock(a, y) for a, y in zip(days, demand, strict=True)]
    trace = play(adagrad_ftrl_proximal(10.0, feasible=Box(-10, 10)), losses, n=7)
    print("In the theory: regret against the true quantiles, and its bound")
    print(f"  regret {trace.regret(best):.1f}; {bound(trace, best)}")
    assert trace.regret(best) <= bound(trace, best).total

    print("\nCompiled: stock for Monday to Sunday; the truth is", *(f"{q:.1f}" for q in best))
    for name, loss in {"custom": stock, "built-in": Quantile(0.9)}.items():
        model = Learner(7, Settings(loss, alpha=2.0, bias=False), dtype=np.float64)
        cost = float(model.learn(days, demand)[0]) / DAYS
        print(f"  {name:11}", *(f"{w:.1f}" for w in model.weights[:, 0]), f"  cost per day while learning {cost:.4f}")


if __name__ == "__main__":
    main()

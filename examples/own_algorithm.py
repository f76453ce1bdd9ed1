"""A custom algorithm, whose bound forel checks.

An algorithm has the methods ``init``, ``play`` and ``update``, and ``added``, which returns what a round adds to the
objective. From these alone forel evaluates the theorems and the Strong FTRL Lemma, and recomputes the argmin of each
round: a bound is void where another point was played, so that a wrong update is detected.

The algorithm is AdaGrad FTRL-Proximal in steps: 1/η is rounded up to a power of two, so that it changes rarely and a
division by it only changes an exponent. Theorem 2 holds for it without changes.

Survey: Theorem 2 and Lemma 5
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from forel.losses import linear_bound
from forel.theory.algorithms import Round, adagrad_ftrl_proximal
from forel.theory.analysis import bound, play
from forel.theory.analysis.adversaries import spikes, worst_linear
from forel.theory.analysis.streams import random_linear
from forel.theory.geometries import Diagonal
from forel.theory.penalties import NONE
from forel.theory.regularizers import Regularizer
from forel.theory.sets import Box
from forel.theory.weights import Once


class State(NamedTuple):
    """Sums over rounds: of squared gradients, of gradients less σ_t x_t, and of σ_t, which is 1/η_t."""

    squares: np.ndarray
    z: np.ndarray
    strength: np.ndarray

    def point(self, radius: float) -> np.ndarray:
        """Return the argmin over the box; 0 where all gradients were 0."""
        seen = self.strength > 0
        return np.clip(np.divide(-self.z, self.strength, out=np.zeros_like(self.z), where=seen), -radius, radius)


@dataclass(frozen=True)
class PowersOfTwo:
    """FTRL-Proximal whose 1/η_t is the smallest power of two that is at least √Σg²/(√2 R)."""

    radius: float
    wrong: bool = False  # a deliberate error: strength is added around 0 instead of x_t
    proximal = True
    penalty, weights = NONE, Once()

    @property
    def feasible(self) -> Box:
        """The box of that radius."""
        return Box(-self.radius, self.radius)

    def init(self, n: int) -> State:
        """Return three sums of zero."""
        return State(np.zeros(n), np.zeros(n), np.zeros(n))

    def play(self, state: State) -> np.ndarray:
        """Return x_{t+1}."""
        return state.point(self.radius)

    def update(self, state: State, loss) -> State:  # type: ignore[no-untyped-def]
        """Add g_t, and strength around x_t where 1/η increases."""
        x = self.play(state)
        g = loss.subgradient(x)
        squares = state.squares + g * g
        exact = np.sqrt(squares) / (np.sqrt(2) * self.radius)
        strength = np.where(exact > 0, np.exp2(np.ceil(np.log2(np.where(exact > 0, exact, 1.0)))), 0.0)
        center = 0.0 if self.wrong else x
        return State(squares, state.z + g - (strength - state.strength) * center, strength)

    def initial(self, state: State) -> Regularizer:
        """Return r_0 = 0."""
        return Regularizer.zero(Diagonal(), state.z.size)

    def added(self, before: State, loss, after: State) -> Round:  # type: ignore[no-untyped-def]
        """Return what the round added: the tangent of the loss, and strength around x_t."""
        x = self.play(before)
        step = Regularizer.around(Diagonal(), after.strength - before.strength, x)
        return Round(loss.subgradient(x), linear_bound(loss, x), 0.0, NONE, step)


def main() -> None:
    """Play three algorithms against three adversaries."""
    rounds, n, rng = 300, 3, np.random.default_rng(0)
    comparators = rng.choice([-1.0, 1.0], size=(8, n))
    players = {"AdaGrad": adagrad_ftrl_proximal(1.0), "powers of 2": PowersOfTwo(1.0), "wrong": PowersOfTwo(1.0, True)}
    adversaries = {"worst": worst_linear(), "random": random_linear(n, rounds), "spikes": spikes(period=5)}
    print(f"{'':12} {'adversary':10} {'regret':>9} {'bound':>9}")
    for name, player in players.items():
        detected = False
        for kind, adversary in adversaries.items():
            trace = play(player, adversary, rounds=rounds, n=n)
            x = max(comparators, key=trace.regret)
            limit = bound(trace, x)
            shown = f"{'void':>9}   {limit.void}" if limit.void else f"{limit.total:9.2f}"
            print(f"{name:12} {kind:10} {trace.regret(x):9.2f} {shown}")
            detected |= bool(limit.void)
            assert limit.void or trace.regret(x) <= limit.total
        assert detected == (name == "wrong")


if __name__ == "__main__":
    main()

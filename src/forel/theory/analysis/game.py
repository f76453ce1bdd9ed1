"""The game: an algorithm against losses, round by round, kept as a trace."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike

from forel.cvx import minimize
from forel.losses import Loss, Total
from forel.notebook import card
from forel.theory.algorithms import Algorithm, Observer, Round, delayed
from forel.theory.analysis.declarations import first_misdeclared, first_not_proximal, lemma_stabilities
from forel.theory.analysis.gradient_norms import squared_norms
from forel.theory.analysis.optimality import leaders, suboptimality
from forel.theory.regularizers import Regularizer
from forel.theory.sets import FeasibleSet
from forel.validation import Matrix, Strength, Vector, matrix, refuse, vector, whole

__all__ = ["Adversary", "Stage", "Trace", "play"]

Adversary = Callable[[int, Vector], Loss]


class Stage(NamedTuple):
    """What a round added, and the running sums after it: f_{1:t}, α_{1:t}Ψ and r_{0:t}."""

    added: Round
    losses: Total
    penalties: Total
    regularizer: Regularizer

    @property
    def strength(self) -> Strength:
        """1/η_t, which measures g_t: that of r_{0:t} without what observing the next round's features added to it."""
        return self.regularizer.strength if self.added.strength is None else self.added.strength

    def objective(self, x: Vector) -> float:
        """Return h_{0:t}(x)."""
        return self.losses(x) + self.penalties(x) + self.regularizer(x)


@dataclass(frozen=True, eq=False)
class Trace:
    """A game that was played: the losses, and the algorithm's state before each round and after the last.

    >>> from forel.theory.algorithms import gradient_descent
    >>> from forel.losses import Linear
    >>> play(gradient_descent(1.0), [Linear([1.0, 0.0])])
    Trace of 1 rounds of FTRL in dimension 2

    Survey: section 1
    """

    algorithm: Algorithm
    states: tuple[Any, ...]
    losses: tuple[Loss, ...]

    def __repr__(self) -> str:
        return f"Trace of {self.rounds} rounds of {type(self.algorithm).__name__} in dimension {self.points.shape[1]}"

    def _repr_html_(self) -> str:
        total = np.cumsum(self.values)
        rows = [("rounds", self.rounds), ("dimension", self.points.shape[1]), ("total loss", float(self.values.sum()))]
        return card(type(self.algorithm).__name__, rows, total_loss=total)

    @property
    def rounds(self) -> int:
        """T."""
        return len(self.losses)

    @cached_property
    def points(self) -> Matrix:
        """x_1, …, x_{T+1}, a row each."""
        return np.array([self.algorithm.play(state) for state in self.states])

    @cached_property
    def gradients(self) -> Matrix:
        """g_1, …, g_T, a row each."""
        return np.array([loss.subgradient(x) for loss, x in zip(self.losses, self.points, strict=False)])

    @cached_property
    def values(self) -> Vector:
        """f_t(x_t) for every round."""
        return np.array([loss(x) for loss, x in zip(self.losses, self.points, strict=False)])

    @cached_property
    def penalty_values(self) -> Vector:
        """Ψ(x_1), …, Ψ(x_{T+1})."""
        return np.array([self.algorithm.penalty(x) for x in self.points])

    @cached_property
    def initial(self) -> Regularizer:
        """r_0."""
        return self.algorithm.initial(self.states[0])

    @cached_property
    def added(self) -> tuple[Round, ...]:
        """What each round added to the objective."""
        between = zip(self.states, self.losses, self.states[1:], strict=False)
        return tuple(self.algorithm.added(before, loss, after) for before, loss, after in between)

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        """The running sums after each round."""
        losses = penalties = Total.zero(self.points.shape[1])
        regularizer, found = self.initial, []
        for added in self.added:
            losses = losses.plus(added.loss)
            if added.weight > 0:
                penalties = penalties.plus(cast(Loss, added.penalty), added.weight)  # only values of a sum are used
            regularizer = regularizer + added.regularizer
            found.append(Stage(added, losses, penalties, regularizer))
        return tuple(found)

    @cached_property
    def surrogate_values(self) -> tuple[float, ...]:
        """f_t(x_t) of the losses as the algorithm treats them."""
        return tuple(added.loss(x) for added, x in zip(self.added, self.points, strict=False))

    @cached_property
    def surrogate_penalty_values(self) -> tuple[float, ...]:
        """Ψ(x_t) as the algorithm treats Ψ, exact or as a tangent; 0 in rounds whose α_t is 0."""
        pairs = zip(self.added, self.points, strict=False)
        return tuple(added.penalty(x) if added.weight > 0 else 0.0 for added, x in pairs)

    @cached_property
    def weight_values(self) -> tuple[float, ...]:
        r"""$\alpha_1, \dots, \alpha_T$."""
        return tuple(self.algorithm.weights(t) for t in range(1, self.rounds + 1))

    @cached_property
    def weight_totals(self) -> tuple[float, ...]:
        r"""$\alpha_{1:0}, \dots, \alpha_{1:T}$."""
        return tuple(self.algorithm.weights.total(t) for t in range(self.rounds + 1))

    @cached_property
    def regularizer_values(self) -> tuple[float, ...]:
        """r_t(x_t) for every round."""
        return tuple(added.regularizer(x) for added, x in zip(self.added, self.points, strict=False))

    @cached_property
    def errors(self) -> Matrix:
        """g_t − m_t, a row for each round; the gradients where there are no hints."""
        if getattr(self.algorithm, "hint", None) is None and not hasattr(self.states[0], "hint"):
            return self.gradients
        pairs = zip(self.gradients, self.added, strict=True)
        return np.array([g if added.hint is None else g - added.hint for g, added in pairs])

    @cached_property
    def leaders(self) -> Matrix:
        r"""$w_t = \arg\min_X h_{0:t-1}$ for t = 1, …, T + 1: the points without hints, a row each."""
        return leaders(self.algorithm, self.initial, self.stages, self.points)

    @cached_property
    def gaps(self) -> Vector:
        r"""$h_{0:t-1}(x_t) - h_{0:t-1}(w_t)$ for every round, which a hint costs; 0 without hints."""
        if self.leaders is self.points:
            return np.zeros(self.rounds)
        objectives: list[Callable[[Vector], float]] = [self.initial, *(stage.objective for stage in self.stages[:-1])]
        pairs = zip(objectives, self.points, self.leaders, strict=False)
        return np.array([h(x) - h(w) for h, x, w in pairs])

    @cached_property
    def decreases(self) -> Vector:
        r"""$h_{0:t}(x_t) - h_{0:t}(w_{t+1})$ less the gap, for every round; without hints w is x, and the gap 0."""
        steps = zip(self.stages, self.points, self.leaders[1:], strict=False)
        return (
            np.array([stage.objective(now) - stage.objective(following) for stage, now, following in steps]) - self.gaps
        )

    @cached_property
    def misdeclared(self) -> str:
        """The first round that the algorithm declared wrongly, as a reason why bounds are void; empty if none."""
        return first_misdeclared(self)

    @cached_property
    def not_proximal(self) -> str:
        """The first round whose regularizer is not 0 and smallest at the point played, as a reason; empty if none."""
        return first_not_proximal(self)

    @cached_property
    def spent(self) -> tuple[Vector, Vector]:
        """What the Strong FTRL Lemma says that each round costs, as declared, and the size of the terms."""
        return lemma_stabilities(self)

    @cached_property
    def squared_norms(self) -> tuple[Vector, Vector]:
        r"""$\|g_t\|^2_{(t-1),\star}$ and $\|g_t\|^2_{(t),\star}$, in norms in which the objective is strongly convex.

        The first is that of $r_{0:t-1} + f_{1:t} + \alpha_{1:t-1}\Psi$ (Theorem 1), the second that of
        $r_{0:t} + f_{1:t} + \alpha_{1:t-1}\Psi$ (Theorems 2 and 10).
        """
        return squared_norms(self.initial, self.stages, float(self.points[0].sum()))

    @cached_property
    def suboptimality(self) -> Vector:
        r"""$h_{0:t-1}(x_t) - \min_{x \in X} h_{0:t-1}(x)$ for t = 1, …, T + 1: 0 where every point is an argmin."""
        return suboptimality(self.algorithm, self.initial, self.stages, self.points, self.squared_norms[1])

    def regrets(self, x: ArrayLike, linearized: bool = False) -> Vector:
        r"""Return $\sum_{s \le t} f_s(x_s) - f_s(x)$ for every t; linearized, $\sum_{s \le t} g_s \cdot (x_s - x)$.

        A comparator with T rows is a path: $x^*_s$ in round s, and dynamic regret.
        """
        path = self.path(x if np.ndim(x) == 2 else vector("x", x, self.points.shape[1]))
        if linearized:
            return np.cumsum(np.einsum("ti,ti->t", self.gradients, self.points[:-1] - path))
        return np.cumsum(self.values - [loss(u) for loss, u in zip(self.losses, path, strict=True)])

    def path(self, x: ArrayLike) -> Matrix:
        """Return a comparator as one of a row for each round."""
        rows = matrix("x", np.atleast_2d(x), self.points.shape[1])
        if len(rows) not in (1, self.rounds):
            raise ValueError(f"x: got {len(rows)} rows, expected a point, or one for each of the {self.rounds} rounds")
        return np.broadcast_to(rows, (self.rounds, rows.shape[1]))

    def regret(self, x: ArrayLike, linearized: bool = False) -> float:
        """Return the regret against x after all rounds."""
        return float(self.regrets(x, linearized)[-1])

    def best(self, feasible: FeasibleSet) -> Vector:
        """Return the point of a set with the smallest sum of losses, by the solver: the comparator in hindsight."""
        total = self._total()
        return minimize(total.g.size, total.expression, feasible.constraints)

    def worst_regret(self, feasible: FeasibleSet, linearized: bool = False) -> float:
        """Return the largest regret against a point of a set; in closed form where losses are linear."""
        total = self._total()
        if linearized or (total.quadratic and total.curvature == 0):
            played = float(np.einsum("ti,ti->", self.gradients, self.points[:-1]))
            return played + feasible.support(-self.gradients.sum(axis=0))
        return self.regret(self.best(feasible))

    def _total(self) -> Total:
        total = Total.zero(self.points.shape[1])
        for loss in self.losses:
            total = total.plus(loss)
        return total


def play(
    algorithm: Algorithm,
    losses: Iterable[Loss] | Adversary,
    rounds: int | None = None,
    n: int | None = None,
    progress: Callable[[int], None] | None = None,
    delays: int | Sequence[int] = 0,
) -> Trace:
    """Play rounds of the game and return the trace.

    Parameters
    ----------
    algorithm : chooses x_t
    losses : the losses in order, or an adversary, a function of the round t = 1, 2, … and of x_t that returns f_t
    rounds : the number of rounds; required for an adversary, by default all losses of a sequence
    n : the dimension; required for an adversary, by default that of the first loss
    progress : called with t after each round
    delays : by how many rounds the gradient of round t is late, one number or one for each round; FTRL only

    An algorithm that ``observes`` is shown the features of each round's example before it plays: those of the losses in
    order, or what the adversary's ``features(t, x)`` returns, given the point that would be played without them.

    >>> from forel.theory.algorithms import FTRL
    >>> from forel.theory.geometries import Euclidean
    >>> from forel.losses import Linear
    >>> from forel.theory.rates import Constant
    >>> trace = play(FTRL(Constant(1.0), Euclidean()), [Linear([1.0]), Linear([-1.0])])
    >>> trace.points.ravel(), trace.regret(np.array([0.0]))
    (array([ 0., -1.,  0.]), 1.0)

    Survey: section 1
    """
    if np.any(delays):
        algorithm = delayed(algorithm, delays)
    limit = None if rounds is None else whole("rounds", rounds, low=1)
    if callable(losses):
        if limit is None or n is None:
            raise refuse(
                "rounds, n", (rounds, n), "both, because an adversary has neither a last round nor a dimension"
            )
        return _against(algorithm, losses, getattr(losses, "features", None), limit, whole("n", n, low=1), progress)
    sequence = tuple(losses)[:limit]
    if not sequence:
        raise refuse("losses", sequence, "at least one loss")
    _checked(sequence[0], 1)
    return _against(
        algorithm,
        lambda t, x: sequence[t - 1],
        lambda t, x: _features(sequence[t - 1]),
        len(sequence),
        n or dimension(sequence[0]),
        progress,
    )


def _against(
    algorithm: Algorithm,
    adversary: Adversary,
    features: Callable[[int, Vector], ArrayLike] | None,
    rounds: int,
    n: int,
    progress: Callable[[int], None] | None,
) -> Trace:
    observer = cast(Observer, algorithm) if getattr(algorithm, "observes", False) else None
    if observer is not None and features is None:
        raise refuse("losses", adversary, f"an adversary with features(t, x), which {algorithm.rate} uses")
    state = algorithm.init(n)
    states, losses = [], []
    for t in range(1, rounds + 1):
        if observer is not None and features is not None:
            state = observer.observe(state, vector("features", features(t, algorithm.play(state)), n))
        loss = _checked(adversary(t, algorithm.play(state)), t, n)
        states.append(state)
        losses.append(loss)
        state = algorithm.update(state, loss)
        if progress is not None:
            progress(t)
    return Trace(algorithm, (*states, state), tuple(losses))


def _checked(loss: Loss, t: int, n: int | None = None) -> Loss:
    """Return the loss of a round, or raise if it is none, or has another dimension."""
    if not hasattr(loss, "subgradient"):
        raise refuse(
            "losses", type(loss).__name__, f"a loss in round {t}; one of a gradient g is forel.losses.Linear(g)"
        )
    if n is not None and (found := _dimension(loss)) not in (None, n):
        raise refuse("losses", f"dimension {found} in round {t}", f"{n}, as in the first round or given as n")
    return loss


def _features(loss: Loss) -> Vector:
    """Return the feature of each coordinate of an example's point; raise ValueError if it has none."""
    features: Vector | None = getattr(loss, "features", None)
    if features is None:
        raise refuse("losses", loss, "examples, such as Example, whose features the algorithm can observe")
    return np.repeat(features, getattr(getattr(loss, "loss", None), "classes", 1))


def dimension(loss: Loss) -> int:
    """Return the dimension of a loss; raise ValueError if it has none."""
    if (found := _dimension(loss)) is None:
        raise refuse("n", None, f"the dimension, which {type(loss).__name__} does not have")
    return found


def _dimension(loss: Loss) -> int | None:
    for name in ("g", "features", "center"):
        array = getattr(loss, name, None)
        if array is not None:
            return int(np.size(array)) * int(getattr(getattr(loss, "loss", None), "classes", 1))
    return None

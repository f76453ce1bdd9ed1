"""One step beyond the survey: statements about hints, delay, curvature, potentials, paths, noise and bandits."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from forel.losses import Linear
from forel.theory.algorithms import FTRL, Algorithm, delay_tolerant_adagrad, gradient_descent
from forel.theory.analysis import Bound, Trace, adagrad_proximal_formula, bound, delay_tolerant_formula, play
from forel.theory.analysis.streams import random_linear, switching
from forel.theory.geometries import Diagonal, Entropy, Euclidean
from forel.theory.rates import Constant, DiagonalAdaGrad, InverseSqrt, adagrad_proximal_rate
from forel.theory.sets import Box, Simplex, l2_ball
from forel.theory.survey.games import N, comparators
from forel.theory.survey.result import Outcome, Result, largest
from forel.validation import Matrix, Vector

__all__ = ["BEYOND"]

ROUNDS = 40


def _streams(rounds: int = ROUNDS) -> dict[str, Matrix]:
    """Return gradients of norm at most 1: random, switching, the same, alternating, sparse."""
    rng = np.random.default_rng(0)
    v = rng.normal(size=N) / 4
    return {
        "random": np.array([loss.g for loss in random_linear(N, rounds)]),
        "switching": np.array([loss.g for loss in switching(N, rounds)]),
        "repeated": np.tile(v, (rounds, 1)),
        "alternating": np.outer((-1.0) ** np.arange(rounds), v),
        "sparse": rng.choice([-0.5, 0.0, 0.0, 0.5], size=(rounds, N)),
    }


def _compare(
    name: str, trace: Trace, limit: Callable[[Trace, Vector], Bound], points: Sequence[Vector] = ()
) -> Iterator[Outcome]:
    for x in points or comparators(trace):
        found = limit(trace, x)
        regrets = trace.regrets(x)
        values = np.full(trace.rounds, np.nan) if found.void else found.over_rounds
        yield largest(Outcome(*pair, name) for pair in zip(regrets.tolist(), values.tolist(), strict=True))


def _hinted(kind: str, g: Matrix) -> Callable[[int, Vector], Vector]:
    rng = np.random.default_rng(1)
    guess = {"perfect": g, "opposite": -g, "noisy": g + 0.3 * rng.normal(size=g.shape), "huge": 30 * g[::-1]}.get(kind)
    if guess is None:
        return lambda t, last: last
    return lambda t, last: guess[min(t, len(g)) - 1]


HINTS = ("last", "perfect", "opposite", "noisy", "huge")


def _optimistic(make: Callable[[Any], Algorithm], points: Sequence[Vector] = ()) -> Iterator[tuple[str, Trace]]:
    for stream, g in _streams().items():
        for kind in HINTS:
            yield f"{kind} hints, {stream}", play(make(_hinted(kind, g)), [Linear(v) for v in g])


def _exact(trace: Trace, x: Vector, lag: int) -> Bound:
    """Return O1 and O2: half the square of the hint's error, less what the hint cost at the point itself."""
    found = bound(trace, x)
    strengths = [trace.initial.strength, *(stage.regularizer.strength for stage in trace.stages)][1 - lag :]
    norms = [trace.initial.geometry.norm(s).dual(e) for s, e in zip(strengths, trace.errors, strict=False)]
    return Bound("optimism", found.regularization, 0.5 * np.square(norms) - trace.gaps, found.void)


def optimism_centered() -> Outcome:
    """Compare regret with O1, the squares of the hints' errors in the norm of the round before."""
    games = _optimistic(lambda hint: FTRL(InverseSqrt(0.5, 1), Euclidean(), feasible=l2_ball(1.0), hint=hint))
    return largest(o for name, trace in games for o in _compare(name, trace, lambda t, x: _exact(t, x, 1)))


def optimism_proximal() -> Outcome:
    """Compare regret with O2, for regularizers around x_t."""
    games = _optimistic(lambda hint: FTRL(InverseSqrt(0.5, 1), Euclidean(), True, feasible=Box(-1, 1), hint=hint))
    return largest(o for name, trace in games for o in _compare(name, trace, lambda t, x: _exact(t, x, 0)))


def optimism_huber() -> Outcome:
    """Compare regret with O3, Huber's loss of the hints' errors, in the norms of quadratics and of the entropy."""
    makes: list[Callable[[Any], Algorithm]] = [
        lambda hint: FTRL(Constant(0.5), Euclidean(), hint=hint),
        lambda hint: FTRL(DiagonalAdaGrad(0.5, 1.0), Diagonal(), True, feasible=Box(-1, 1), hint=hint),
        lambda hint: FTRL(InverseSqrt(0.5, 1), Entropy(), feasible=Simplex(), hint=hint),
    ]
    games = (game for make in makes for game in _optimistic(make))
    return largest(o for name, trace in games for o in _compare(name, trace, bound))


def optimistic_adagrad() -> Outcome:
    """Compare regret with O4, 2√2·RΣ√Σ(g − m)², for AdaGrad on the hints' errors."""
    rate = adagrad_proximal_rate(1.0)
    games = _optimistic(lambda hint: FTRL(rate, Diagonal(), True, feasible=Box(-1, 1), hint=hint))
    return largest(
        o for name, trace in games for o in _compare(name, trace, lambda t, x: adagrad_proximal_formula(t, x, 1.0))
    )


def _delays(rounds: int = ROUNDS) -> dict[str, list[int]]:
    rng = np.random.default_rng(2)
    return {
        "1 round late": [1] * rounds,
        "6 rounds late": [6] * rounds,
        "random, in any order": rng.integers(0, 9, rounds).tolist(),
        "in blocks of 8": [7 - t % 8 for t in range(rounds)],
    }


def delay_any() -> Outcome:
    """Compare regret with D1, any delays as hints, for a constant rate and the entropy; with one adversary that knows.

    The adversary repeats its gradient while nothing arrives, and then turns around.
    """
    algorithms: list[Algorithm] = [
        gradient_descent(0.3),
        FTRL(Constant(0.3), Euclidean(), feasible=l2_ball(1.0)),
        FTRL(InverseSqrt(0.5, 1), Entropy(), feasible=Simplex()),
    ]
    streams = _streams() | {"turning": np.sign(np.sin(np.arange(ROUNDS) / 2.5 + 0.1))[:, None] * np.full(N, 0.5)}
    return largest(
        o
        for algorithm in algorithms
        for stream, g in streams.items()
        for kind, delays in _delays().items()
        for o in _compare(f"{kind}, {stream}", play(algorithm, [Linear(v) for v in g], delays=delays), bound)
    )


def delay_exact() -> Outcome:
    """Compare both sides of D2: what is outstanding may help as well as hurt."""
    eta, x, worst = 0.3, np.linspace(-1, 1, N), Outcome(0.0, 0.0)
    for stream, g in _streams().items():
        for kind, delays in _delays().items():
            trace = play(gradient_descent(eta), [Linear(v) for v in g], delays=delays)
            cross = 0.5 * g * g + g * (trace.errors - g)
            left = 0.5 * eta * float(np.sum((g.sum(axis=0) + x / eta) ** 2))
            found = Outcome(trace.regret(x) + left, float(x @ x) / (2 * eta) + eta * cross.sum(), f"{kind}, {stream}")
            worst = max(worst, found, key=lambda o: abs(o.measured - o.bound))
    return worst


def delay_tolerant() -> Outcome:
    """Compare regret with D3, delay-tolerant AdaGrad: only rounds whose delay hurt count."""
    outcomes = []
    for late in (0, 1, 6):
        algorithm = delay_tolerant_adagrad(1.0, 1.0, late, Box(-1, 1))
        for stream, g in _streams().items():
            trace = play(algorithm, [Linear(v) for v in g], delays=late)
            limit = lambda t, x, d=late: delay_tolerant_formula(t, x, 1.0, 1.0, d)  # noqa: E731
            outcomes += list(_compare(f"{late} rounds late, {stream}", trace, limit))
    return largest(outcomes)


HERE, FTRL_HOME = "forel.theory.survey.beyond", "forel.theory.algorithms.ftrl.FTRL"
DELAYED = "forel.theory.algorithms.delayed"
BEYOND = (
    Result("Hints O1", "centered: ½Σ‖g − m‖² − Σ gaps", "≤", FTRL_HOME, optimism_centered),
    Result("Hints O2", "proximal: the same in ‖·‖_(t)", "≤", FTRL_HOME, optimism_proximal),
    Result("Hints O3", "Huber: a hint wrong by a costs ab", "≤", f"{DELAYED}.huber", optimism_huber),
    Result("Hints O4", "AdaGrad on the hints' errors", "≤", FTRL_HOME, optimistic_adagrad),
    Result("Delay D1", "any delays, as hints", "≤", f"{DELAYED}.Delayed", delay_any),
    Result("Delay D2", "delayed gradient descent, exactly", "=", f"{DELAYED}.Delayed", delay_exact),
    Result("Delay D3", "delay-tolerant AdaGrad", "≤", f"{DELAYED}.delay_tolerant_adagrad", delay_tolerant),
)
_ = math

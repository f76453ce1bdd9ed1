"""One step beyond the survey: statements about hints, delay, curvature, potentials, paths, noise and bandits."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from forel.losses import Absolute, Convex, Example, Linear, Logistic, Loss, Squared
from forel.theory.algorithms import (
    FTRL,
    Algorithm,
    CoinBetting,
    Implicit,
    MirrorDescent,
    Squint,
    VovkAzouryWarmuth,
    adagrad_ftrl_proximal,
    coin_bound,
    delay_tolerant_adagrad,
    doubling_trick,
    dual_averaging,
    exp3,
    gradient_descent,
    greedy_projection,
    hedge,
    lazy_projection,
    online_newton_step,
    private_ftrl,
    private_regret,
    strongly_convex_descent,
    zero_concentrated_privacy,
)
from forel.theory.algorithms.private import TreeNoise, tree_nodes
from forel.theory.analysis import (
    Adversary,
    Bound,
    Trace,
    adagrad_proximal_formula,
    bound,
    delay_tolerant_formula,
    local_norm_bound,
    loss_floor,
    path_formula,
    play,
)
from forel.theory.analysis.adversaries import bandit, orthogonal
from forel.theory.analysis.streams import classification, quadratics, random_linear, switching
from forel.theory.geometries import Diagonal, Entropy, Euclidean
from forel.theory.penalties import NONE, ElasticNet, l1
from forel.theory.rates import Constant, DiagonalAdaGrad, InverseSqrt, adagrad_proximal_rate
from forel.theory.sets import Box, Simplex, l2_ball
from forel.theory.survey.games import N, comparators, traces
from forel.theory.survey.result import Outcome, Result, largest
from forel.theory.survey.theorems import compared
from forel.theory.weights import Given
from forel.validation import Matrix, Vector

__all__ = ["BEYOND"]

ROUNDS = 25


def _games() -> Iterator[tuple[str, Trace]]:
    algorithms: dict[str, Algorithm] = {
        "dual averaging": dual_averaging(1.0, 1.0),
        "gradient descent": gradient_descent(0.3),
        "AdaGrad FTRL-Proximal, L1": adagrad_ftrl_proximal(1.0, l1(0.05)),
        "hedge": hedge(N),
    }
    streams: dict[str, Iterable[Loss]] = {"quadratics": quadratics(N, 40), "log-loss": classification(N, 40)}
    for name, algorithm in algorithms.items():
        for adversary, trace in traces(algorithm, rounds=40):
            yield f"{name}, {adversary}", trace
        for stream, losses in streams.items():
            yield f"{name}, {stream}", play(algorithm, losses, n=N)


def dual_value() -> Outcome:
    """Compare the regret to every point of a ball with the gap between the loss and its dual value.

    Survey: Corollary 6, of which this is the Fenchel side
    """
    outcomes = []
    for name, trace in _games():
        for radius in (0.5, 2.0):
            total = trace.gradients.sum(axis=0)
            points = [radius * x / max(1.0, float(np.linalg.norm(x))) for x in comparators(trace)]
            points.append(-radius * total / max(float(np.linalg.norm(total)), 1e-12))
            gap = loss_floor(trace, l2_ball(radius)).regret
            outcomes += [Outcome(trace.regret(x), gap, name) for x in points]
    return largest(outcomes)


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
    for x in points or [*list(comparators(trace))[:10:2], trace.leaders[-1]]:
        found = limit(trace, x)
        regrets = trace.regrets(x)
        values = np.full(trace.rounds, np.nan) if found.void else found.over_rounds
        yield largest(Outcome(*pair, name) for pair in zip(regrets.tolist(), values.tolist(), strict=True))


def _hinted(kind: str, g: Matrix) -> Callable[[int, Vector], Vector]:
    guess = {"opposite": -g, "huge": 30 * g[::-1]}.get(kind)
    if guess is None:
        return lambda t, last: last
    return lambda t, last: guess[min(t, len(g)) - 1]


HINTS = ("last", "opposite", "huge")


def _optimistic(make: Callable[[Any], Algorithm]) -> Iterator[tuple[str, Trace]]:
    for stream, g in _streams().items():
        for kind in HINTS:
            yield f"{kind} hints, {stream}", play(make(_hinted(kind, g)), [Linear(v) for v in g])


def _on_hints(limit: Callable[[Trace, Vector], Bound], *makes: Callable[[Any], Algorithm]) -> Outcome:
    games = (game for make in makes for game in _optimistic(make))
    return largest(o for name, trace in games for o in _compare(name, trace, limit))


def _exact(trace: Trace, x: Vector, lag: int) -> Bound:
    """Return O1 and O2: half the square of the hint's error, less what the hint cost at the point itself."""
    found = bound(trace, x)
    strengths = [trace.initial.strength, *(stage.regularizer.strength for stage in trace.stages)][1 - lag :]
    norms = [trace.initial.geometry.norm(s).dual(e) for s, e in zip(strengths, trace.errors, strict=False)]
    return Bound("optimism", found.regularization, 0.5 * np.square(norms) - trace.gaps, found.void)


def optimism_centered() -> Outcome:
    """Compare regret with O1, the squares of the hints' errors in the norm of the round before."""
    return _on_hints(
        partial(_exact, lag=1),
        lambda hint: FTRL(InverseSqrt(0.5, 1), Euclidean(), feasible=l2_ball(1.0), hint=hint),
        lambda hint: FTRL(Constant(0.5), Euclidean(), hint=hint),
    )


def optimism_proximal() -> Outcome:
    """Compare regret with O2, for regularizers around x_t."""
    return _on_hints(
        partial(_exact, lag=0),
        lambda hint: FTRL(InverseSqrt(0.5, 1), Euclidean(), "played", feasible=Box(-1, 1), hint=hint),
    )


def optimism_huber() -> Outcome:
    """Compare regret with O3, Huber's loss of the hints' errors, in the norms of quadratics and of the entropy."""
    return _on_hints(
        bound,
        lambda hint: FTRL(Constant(0.5), Euclidean(), hint=hint),
        lambda hint: FTRL(DiagonalAdaGrad(0.5, 1.0), Diagonal(), "played", feasible=Box(-1, 1), hint=hint),
        lambda hint: FTRL(InverseSqrt(0.5, 1), Entropy(), feasible=Simplex(), hint=hint),
    )


def _cornered(rounds: int) -> Adversary:
    """Return gradients that go to and fro at −1, and at last push the point to 1; the second coordinate's are the same.

    To and fro every round costs all of its stability, far from the comparator; the way to it costs as much again.
    """
    last = rounds - math.isqrt(2 * rounds)
    return lambda t, x: Linear([-1.0 if t > last or x[0] <= -1 + t**-0.5 else 1.0, 1.0])


def optimistic_adagrad() -> Outcome:
    """Compare regret with O4, 2√2·RΣ√Σ(g − m)², for AdaGrad on the hints' errors."""

    def make(hint: Any) -> Algorithm:
        return FTRL(adagrad_proximal_rate(1.0), Diagonal(), "played", feasible=Box(-1, 1), hint=hint)

    limit = partial(adagrad_proximal_formula, radius=1.0)
    cornered = play(make(lambda t, last: np.array([0.0, 1.0])), _cornered(800), rounds=800, n=2)
    hard = _compare("one coordinate hinted, one cornered", cornered, limit, [np.array([1.0, -1.0])])
    return largest([_on_hints(limit, make), *hard])


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
    algorithms: list[Algorithm] = [gradient_descent(0.3), FTRL(InverseSqrt(0.5, 1), Entropy(), feasible=Simplex())]
    streams = {k: v for k, v in _streams().items() if k != "sparse"} | {
        "turning": np.sign(np.sin(np.arange(ROUNDS) / 2.5 + 0.1))[:, None] * np.full(N, 0.5)
    }
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
            limit = partial(delay_tolerant_formula, radius=1.0, lipschitz=1.0, delay=late)
            outcomes += list(_compare(f"{late} rounds late, {stream}", trace, limit))
    # Pairs that arrive together and undo each other cost all that is counted, and those at last lead to the comparator.
    t = np.arange(800)
    g = np.where((t % 4 < 2) & (t < 740), 1.0, -1.0)
    pairs = play(delay_tolerant_adagrad(1.0, 1.0, 1), [Linear([v]) for v in g], delays=(1 - t % 2).tolist())
    limit = partial(delay_tolerant_formula, radius=1.0, lipschitz=1.0, delay=1)
    return largest([*outcomes, *_compare("in pairs, to and fro", pairs, limit, [np.ones(1)])])


def _examples(loss: Any, rounds: int = ROUNDS) -> list[Example]:
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(rounds, N)) / 2
    labels = rng.choice([-1.0, 1.0], rounds) if isinstance(loss, Squared) else rng.integers(0, 2, rounds)
    return [Example(loss, a, float(y)) for a, y in zip(rows, labels, strict=True)]


def _newton() -> Iterator[tuple[str, float, float, Trace]]:
    """Yield games with their γ and ε."""
    for loss, alpha in ((Squared(), 1 / 9), (Logistic(), math.exp(-1.5))):
        trace = play(online_newton_step(alpha / 4, l2_ball(0.8), epsilon=0.1), _examples(loss))
        yield f"{loss}", alpha / 4, 0.1, trace
    portfolio = np.random.default_rng(4).uniform(0.1, 1, (ROUNDS, N))
    logs = [_logarithm(p) for p in portfolio]
    yield "portfolios", 0.1, 0.1, play(online_newton_step(0.1, l2_ball(0.2, np.ones(N)), 0.1, np.ones(N)), logs, n=N)
    # Squared losses of residuals ±1 are equal to the quadratics that replace them.
    residuals: Adversary = lambda t, x: Example(Squared(), a := 0.03 * np.eye(N)[t % N], a @ x + (-1) ** (t // N))  # noqa: E731
    yield "residuals ±1", 1.0, 1.0, play(online_newton_step(1.0, l2_ball(1.0)), residuals, rounds=ROUNDS, n=N)


def _logarithm(p: Vector) -> Convex:
    return Convex(lambda x: -math.log(p @ x), lambda x: -p / (p @ x))


def newton() -> Outcome:
    """Compare regret with N1, Theorem 1 in the norm of A_t, for squared, logistic and logarithmic losses."""
    return largest(o for name, _, _, trace in _newton() for o in _compare(name, trace, bound))


def newton_logarithm() -> Outcome:
    """Compare Σ gᵀA⁻¹g with N2, n log(1 + Σ‖g‖²/(nε)); equal up to the first order for small gradients."""
    outcomes = []
    for name, gamma, epsilon, trace in _newton():
        spent = float(trace.squared_norms[0].sum()) * gamma
        outcomes.append(Outcome(spent, N * math.log1p(float(np.sum(trace.gradients**2)) / (N * epsilon)), name))
    return largest(outcomes)


def forecaster() -> Outcome:
    """Compare regret with V1, at the ridge regression in hindsight, for labels of any size."""
    outcomes = []
    rows = np.random.default_rng(5).normal(size=(ROUNDS, N))
    streams = {"squared": _examples(Squared()), "repeated": [Example(Squared(), rows[0], 3.0)] * ROUNDS}
    streams["growing"] = [Example(Squared(), a, 1.2**t) for t, a in enumerate(rows)]
    streams["a feature a round"] = [Example(Squared(), a, 1.0) for a in np.eye(N)]  # all that is predicted is 0
    for ridge in (0.1, 10.0):
        algorithm = VovkAzouryWarmuth(ridge)
        for name, stream in streams.items():
            trace = play(algorithm, stream)
            last = trace.states[-1]
            points = (np.linalg.solve(last.matrix, last.target), np.zeros(N))
            outcomes += list(_compare(f"{name}, λ = {ridge}", trace, bound, points))
    return largest(outcomes)


def forecaster_logarithm() -> Outcome:
    """Compare the sum of V1 with V2, ½nY² log(1 + Σ‖a‖²/(nλ))."""
    small = [Example(Squared(), 0.03 * a, 1.0) for a in np.tile(np.eye(N), (ROUNDS // N, 1))]
    outcomes = []
    for name, stream in (("labels ±1", _examples(Squared())), ("small features, in turn", small)):
        spent = float(bound(play(VovkAzouryWarmuth(1.0), stream), np.zeros(N)).stability.sum())
        squares = sum(float(one.features @ one.features) for one in stream)
        outcomes.append(Outcome(spent, 0.5 * N * math.log1p(squares / N), name))
    return largest(outcomes)


def curvature_of_mirror_descent() -> Outcome:
    """Compare the regret of gradient descent with rate 1/(σt) with ½Σ‖g‖²/(σt): logarithmic, as of the leader."""
    trace = play(strongly_convex_descent(), quadratics(N, ROUNDS))
    return largest(_compare("quadratics", trace, bound))


def _betting() -> Iterator[tuple[str, Trace]]:
    toward: Adversary = lambda t, x: Linear(-x / max(1e-9, float(np.linalg.norm(x))) if t > 1 else np.eye(N)[0])  # noqa: E731
    for per_coordinate in (False, True):
        bettor = CoinBetting(0.5, per_coordinate=per_coordinate)
        for stream, g in _streams().items():
            yield stream, play(bettor, [Linear(v) for v in g])
        yield "with the bettor", play(bettor, toward, rounds=ROUNDS, n=N)
        yield "one coin", play(bettor, [Linear([1.0])] * ROUNDS)


def _sizes(trace: Trace) -> list[Vector]:
    total = trace.gradients.sum(axis=0)
    return [-size * total / (float(np.linalg.norm(total)) + 1e-300) for size in (0.0, 0.1, 1.0, 100.0)]


def coin_betting() -> Outcome:
    """Compare regret with K1, for comparators of norms 0 to 100, in the norm and for each coordinate."""
    return largest(o for name, trace in _betting() for o in _compare(name, trace, bound, _sizes(trace)))


def coin_betting_closed() -> Outcome:
    """Compare K1 with K2, ‖x*‖√(T log(1 + 24T²‖x*‖²/ε²)) + ε(1 − 1/(e√(πT)))."""
    T, outcomes = np.array([1.0, 10.0, 1000.0, 1e6]), []
    for size in (0.0, 0.1, 1.0, 30.0):
        at_0 = 0.5 * (1 - 1 / (math.e * np.sqrt(np.pi * T)))
        closed = at_0 + size * np.sqrt(T * np.log1p(24 * T**2 * size**2 / 0.25))
        exact = coin_bound(T, size, 0.5)
        outcomes += [Outcome(*pair, f"‖x*‖ = {size}") for pair in zip(exact.tolist(), closed.tolist(), strict=True)]
    return largest(outcomes)


def _experts(algorithm: Algorithm) -> Iterator[tuple[str, Trace]]:
    rng, heaviest = np.random.default_rng(6), lambda t, x: Linear(np.eye(N)[int(np.argmax(x))])
    yield "uniform losses", play(algorithm, [Linear(g) for g in rng.random((ROUNDS, N))])
    yield "one good expert", play(algorithm, [Linear(g) for g in rng.random((ROUNDS, N)) < np.linspace(0.1, 0.9, N)])
    yield "the heaviest loses", play(algorithm, heaviest, rounds=ROUNDS, n=N)


def _on_experts(algorithms: Sequence[Algorithm], *hard: tuple[str, Trace]) -> Outcome:
    games = [*(game for algorithm in algorithms for game in _experts(algorithm)), *hard]
    return largest(
        o for name, trace in games for o in _compare(name, trace, bound, list(np.eye(trace.points.shape[1])))
    )


def squint() -> Outcome:
    """Compare the regret against every expert with S1, for a grid of rates, from a prior.

    Equal in the limit of small losses, for one rate: all weight then ends on one expert, and none is lost on the way.
    """
    rates = 0.5 * 2.0 ** -np.arange(7)
    doubted = play(Squint([1e-4, 1.0], [0.5]), [Linear([0.0, 0.1])] * 250)
    return _on_experts([Squint(rates=rates), Squint([8, 4, 2, 1], rates)], ("one doubted", doubted))


def squint_improper() -> Outcome:
    """Compare the regret against every expert with S2, for the improper prior on rates.

    Its first term, 2√(V log(1/π)), is attained by an expert whose prior is too small to be believed before the end;
    the others vanish beside it as T and 1/π grow: 0.54 after 300 rounds, 0.63 after 1000, 0.78 after 10,000.
    """
    rounds, prior = 1000, 1e-10
    drift = 1.1 * math.sqrt(math.log(1 / prior) / rounds)  # over which it just becomes credible
    won = np.diff(np.floor(np.arange(rounds + 1) * (0.5 + drift)))
    doubted = play(Squint([prior, 1.0]), [Linear([1 - v, v]) for v in won])
    return _on_experts([Squint(), Squint([8, 4, 2, 1])], ("one doubted, to and fro", doubted))


def _paths(rounds: int) -> list[Matrix]:
    rng = np.random.default_rng(7)
    walk = np.cumsum(0.2 * rng.normal(size=(rounds, N)), axis=0)
    one = np.eye(N)[0]
    return [
        np.tile(one, (rounds, 1)),
        np.repeat([one, -one], [rounds // 2, rounds - rounds // 2], axis=0),
        walk / np.maximum(1.0, np.linalg.norm(walk, axis=1, keepdims=True)),
        np.outer((-1.0) ** np.arange(rounds), one),
    ]


def _dynamic(mirrors: Sequence[Algorithm], limit: Callable[[Trace, Matrix], Bound]) -> Outcome:
    outcomes = []
    for mirror in mirrors:
        for stream, g in _streams().items():
            trace = play(mirror, [Linear(v) for v in g])
            best = -g / np.maximum(np.linalg.norm(g, axis=1, keepdims=True), 1e-12)
            outcomes += [o for u in (*_paths(len(g)), best) for o in _compare(stream, trace, limit, [u])]
    return largest(outcomes)


def dynamic() -> Outcome:
    """Compare dynamic regret with P1, against paths that stay, switch, walk, alternate, and know every gradient."""
    adaptive = MirrorDescent(DiagonalAdaGrad(0.5, 1.0), Diagonal(), feasible=l2_ball(1.0))
    return _dynamic([greedy_projection(0.3, l2_ball(1.0)), adaptive], bound)


def dynamic_length() -> Outcome:
    """Compare dynamic regret with P2, in the length of the path."""
    return _dynamic([greedy_projection(0.3, l2_ball(1.0))], lambda t, u: path_formula(t, u, 2.0))


def dynamic_lazy() -> Outcome:
    """Compare P2's number with the dynamic regret of lazy projection, which is larger: P3, it must be void there."""
    eta, T = 0.1, 400
    g = np.repeat([-1.0, 1.0], T // 2)
    trace, path = play(lazy_projection(eta, Box(-1, 1)), [Linear([v]) for v in g]), -g[:, None]
    claimed = 1 / (2 * eta) + 2 * 2 / eta + eta / 2 * T
    refused = path_formula(trace, path, 2.0).void and bound(trace, path).void
    return Outcome(claimed, trace.regret(path) if refused else float("nan"), "one switch after 200 rounds")


def implicit() -> Outcome:
    """Compare regret with I1, for squared, logistic and absolute losses and a penalty; equal where a loss is linear."""
    outcomes = []
    streams = {f"{loss}": _examples(loss) for loss in (Squared(), Logistic(), Absolute())}
    streams["a label out of reach"] = [Example(Absolute(), np.eye(N)[0], 99.0)] * ROUNDS
    for stream, losses in streams.items():
        for penalty in (NONE, l1(0.05)):
            trace = play(Implicit(InverseSqrt(0.5, 1.0), Euclidean(), penalty), losses)
            values = np.cumsum([penalty(x) for x in trace.points[:-1]])
            for x in comparators(trace):
                limit = bound(trace, x)
                total = trace.regret(x) + float(values[-1]) - trace.rounds * penalty(x)
                outcomes.append(Outcome(total, float("nan") if limit.void else limit.total, f"{stream}, {penalty}"))
    return largest(outcomes)


def increasing_weights() -> Outcome:
    """Compare composite regret with W1, Theorem 10 and Σα_t(Ψ(x_t) − Ψ(x_{t+1})), for weights that go up and down."""
    weights = Given(np.random.default_rng(8).random(ROUNDS) * 2)
    outcomes: list[Outcome] = []
    for penalty in (l1(0.1), ElasticNet(0.1, 0.5)):
        for stream, g in _streams().items():
            algorithm = FTRL(InverseSqrt(0.5, 1.0), Euclidean(), "played", penalty=penalty, weights=weights)
            outcomes += compared(stream, play(algorithm, [Linear(v) for v in g]), bound, "composite")
    return largest(outcomes)


def doubling() -> Outcome:
    """Compare the regret of the doubling trick with the sum of its epochs' bounds."""
    trick = doubling_trick(1.0, 1.0)
    points = [*np.eye(N), *-np.eye(N)]
    games = {name: play(trick, [Linear(v) for v in g]) for name, g in _streams().items()}
    games["orthogonal"] = play(trick, orthogonal(), rounds=1, n=N)
    return largest(o for name, trace in games.items() for o in _compare(name, trace, bound, points))


def privacy() -> Outcome:
    """Compare how many nodes hold a gradient with T1, h = ⌊log₂T⌋ + 1, for every horizon up to 300."""
    outcomes = []
    for T in (*range(1, 70), 127, 128, 300):
        counts = np.zeros(T)
        for start, length in {node for t in range(1, T + 1) for node in tree_nodes(t)}:
            counts[start : start + length] += 1
        outcomes.append(Outcome(counts.max(), 2 * zero_concentrated_privacy(T, 1.0), f"T = {T}"))
    return largest(outcomes)


def _opposed(algorithm: FTRL) -> Adversary:
    """Return the gradients of norm 1 against the noise of their round, which the points give away."""
    assert algorithm.hint is not None
    noise = algorithm.hint

    def adversary(t: int, x: Vector) -> Linear:
        b = noise(t, x)
        return Linear(-b / float(np.linalg.norm(b)) if b.any() else np.eye(x.size)[0])

    return adversary


def private_outcomes() -> Outcome:
    """Compare the regret of private FTRL with T2, for every outcome of its noise."""
    outcomes = []
    for noise in (0.1, 3.0):
        for seed, (stream, g) in enumerate(_streams().items()):
            trace = play(private_ftrl(2.0, noise, feasible=l2_ball(1.0), seed=seed), [Linear(v) for v in g])
            outcomes += list(_compare(f"σ = {noise}, {stream}", trace, bound))
    free = private_ftrl(2.0, 3.0)
    trace = play(free, _opposed(free), rounds=ROUNDS, n=N)
    return largest([*outcomes, *_compare("against the noise", trace, bound, [trace.leaders[-1]])])


def private_expected() -> Outcome:
    """Compare mean regret at 0 with T3, against an adversary that sees the noise, in 64 dimensions."""
    players = [private_ftrl(5.0, 20.0, seed=seed) for seed in range(10)]
    found = [play(player, _opposed(player), rounds=31, n=64).regret(np.zeros(64)) for player in players]
    return Outcome(float(np.mean(found)), private_regret(31, 64, 0.0, 5.0, 20.0), "against the noise, mean of 10 games")


def private_free() -> Outcome:
    """Compare expected regret with T4, for fixed losses: regret is affine in the noise, which averages out."""
    player, g = private_ftrl(5.0, 2.0), _streams(31)["random"]
    x = -g.sum(axis=0) / 5.0
    mirrored = replace(player, hint=lambda t, last: -TreeNoise(2.0)(t, last))
    found = [play(one, [Linear(v) for v in g]).regret(x) for one in (player, mirrored)]
    limit = private_regret(31, N, float(np.linalg.norm(x)), 5.0, 2.0, oblivious=True)
    return Outcome(float(np.mean(found)), limit, "mean over the noise and its opposite")


def bandits() -> Outcome:
    """Compare regret on estimates with E1, in the local norm, for every outcome; equal in the limit of small losses."""
    losses = np.random.default_rng(9).random((ROUNDS, N))
    games = {f"seed {seed}": play(exp3(N), bandit(losses, seed), rounds=ROUNDS, n=N) for seed in range(20)}
    signed = np.random.default_rng(9).normal(size=(ROUNDS, N))
    games["both signs"] = play(exp3(N), [Linear(v) for v in signed])
    certain = FTRL(Constant(1.0), Entropy(), feasible=Simplex())
    games["one without losses"] = play(certain, [Linear(0.05 * (np.arange(N) > 0))] * 400)
    return largest(o for name, trace in games.items() for o in _compare(name, trace, local_norm_bound, list(np.eye(N))))


def bandits_expected() -> Outcome:
    """Compare expected regret with E2, 2√(nT log n): by enumeration of all draws, and for many rounds as a mean.

    All losses are 1, but for one action's: a little better, so that the noise of the others' estimates costs what the
    bound has for it, and 0 at last.
    """
    outcomes = []
    for n, T in ((2, 8), (3, 5)):
        losses, algorithm, expected = _losing(n, T), exp3(n), 0.0
        level = [(1.0, algorithm.init(n))]
        for row in losses:
            following = []
            for weight, state in level:
                p = algorithm.play(state)
                expected += weight * float(p @ row)
                for i in np.flatnonzero(p):
                    estimate = Linear(np.eye(n)[i] * row[i] / p[i])
                    following.append((weight * p[i], algorithm.update(state, estimate)))
            level = following
        regret = expected - float(losses[:, 0].sum())
        outcomes.append(Outcome(regret, 2 * math.sqrt(n * T * math.log(n)), f"n = {n}, T = {T}, by enumeration"))
    n, T = 32, 2000
    losses = _losing(n, T)
    games = [play(exp3(n), bandit(losses, seed), rounds=T, n=n).points[:-1] for seed in range(10)]
    regret = float(np.mean([np.sum(points * losses) for points in games]) - losses[:, 0].sum())
    outcomes.append(Outcome(regret, 2 * math.sqrt(n * T * math.log(n)), f"n = {n}, T = {T}, mean of 10 games"))
    return largest(outcomes)


def _losing(n: int, rounds: int) -> Matrix:
    losses, t = np.ones((rounds, n)), np.arange(1, rounds + 1)
    losses[:, 0] = np.where(t > 0.7 * rounds, 0.0, np.maximum(0.0, 1 - np.sqrt(n * math.log(n) / t) / 2))
    return losses


ALGORITHMS, FORMULAS = "forel.theory.algorithms", "forel.theory.analysis"
FTRL_HOME, NAMED = f"{ALGORITHMS}.ftrl.FTRL", f"{ALGORITHMS}.named"
DELAYED, PRIVATE = f"{ALGORITHMS}.delayed", f"{ALGORITHMS}.private"
COINS, SQUINT = f"{ALGORITHMS}.coin_betting", f"{ALGORITHMS}.squint.Squint"
PATHS, LOCAL = f"{FORMULAS}.dynamic.dynamic_bound", f"{FORMULAS}.formulas.local_norm_bound"
NEWTON, RIDGE = f"{ALGORITHMS}.newton.online_newton_step", f"{ALGORITHMS}.newton.VovkAzouryWarmuth"
BEYOND = (
    Result("Loss floor", "the dual value is below every loss", f"{FORMULAS}.dual.loss_floor", dual_value),
    Result("Hints O1", "centered: ½Σ‖g − m‖² − Σ gaps", FTRL_HOME, optimism_centered),
    Result("Hints O2", "proximal: the same in ‖·‖_(t)", FTRL_HOME, optimism_proximal),
    Result("Hints O3", "Huber: a hint wrong by a costs ab", f"{DELAYED}.huber", optimism_huber),
    Result("Hints O4", "AdaGrad on the hints' errors", FTRL_HOME, optimistic_adagrad),
    Result("Delay D1", "any delays, as hints", f"{DELAYED}.Delayed", delay_any),
    Result("Delay D2", "delayed gradient descent, exactly", f"{DELAYED}.Delayed", delay_exact, "="),
    Result("Delay D3", "delay-tolerant AdaGrad", f"{DELAYED}.delay_tolerant_adagrad", delay_tolerant),
    Result("Newton N1", "online Newton step", NEWTON, newton),
    Result("Newton N2", "Σ gᵀA⁻¹g ≤ n log(1 + Σ‖g‖²/(nε))", NEWTON, newton_logarithm),
    Result("Forecaster V1", "Vovk–Azoury–Warmuth", RIDGE, forecaster),
    Result("Forecaster V2", "½nY² log(1 + Σ‖a‖²/(nλ))", RIDGE, forecaster_logarithm),
    Result(
        "Curvature C1",
        "strongly convex descent: ½Σ‖g‖²/(σt)",
        f"{NAMED}.strongly_convex_descent",
        curvature_of_mirror_descent,
    ),
    Result("Coins K1", "coin betting, exactly", f"{COINS}.CoinBetting", coin_betting),
    Result("Coins K2", "coin betting, in closed form", f"{COINS}.coin_bound", coin_betting_closed),
    Result("Squint S1", "a grid of rates", SQUINT, squint),
    Result("Squint S2", "the improper prior on rates", SQUINT, squint_improper),
    Result("Paths P1", "dynamic regret of Mirror Descent", PATHS, dynamic),
    Result("Paths P2", "in the length of the path", f"{FORMULAS}.dynamic.path_formula", dynamic_length),
    Result("Paths P3", "P2 is false for lazy projection", PATHS, dynamic_lazy),
    Result("Implicit I1", "implicit updates", f"{ALGORITHMS}.implicit.Implicit", implicit),
    Result("Weights W1", "weights α_t that increase", f"{FORMULAS}.bounds.theorem_10", increasing_weights),
    Result("Doubling trick", "the sum of the epochs' bounds", f"{ALGORITHMS}.doubling_trick.DoublingTrick", doubling),
    Result("Private T1", "nodes that hold a gradient", f"{PRIVATE}.zero_concentrated_privacy", privacy),
    Result("Private T2", "for every outcome of the noise", f"{PRIVATE}.private_ftrl", private_outcomes),
    Result("Private T3", "in expectation, any losses", f"{PRIVATE}.private_regret", private_expected),
    Result("Private T4", "fixed losses: the noise is free", f"{PRIVATE}.private_regret", private_free),
    Result("Bandits E1", "local norms, for every outcome", LOCAL, bandits),
    Result("Bandits E2", "EXP3 in expectation: 2√(nT log n)", f"{NAMED}.exp3", bandits_expected),
)

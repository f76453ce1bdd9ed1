"""Section 3 of the survey on one page: the largest regret found for every algorithm, and its bounds."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from forel.losses import Quadratic
from forel.theory.algorithms import (
    FTRL,
    adagrad_dual_averaging,
    adagrad_ftrl_proximal,
    dual_averaging,
    follow_the_leader,
    ftrl_proximal,
    gradient_descent,
    hedge,
)
from forel.theory.analysis import (
    Bound,
    Trace,
    adagrad_proximal_formula,
    bound,
    dual_averaging_formula,
    entropic_formula,
    play,
    proximal_formula,
    strongly_convex_formula,
    tuned_formula,
)
from forel.theory.analysis.adversaries import alternating, orthogonal, spikes, worst_linear
from forel.theory.analysis.streams import experts, quadratics, random_linear, switching
from forel.theory.argmin import project
from forel.theory.norms import L1
from forel.theory.plot.style import COLORS, GREY, figure_of, legend_below, styled_axes
from forel.theory.sets import Box, FeasibleSet, Simplex, l2_ball
from forel.validation import Vector
from reproduce.claim import Claim

N = 4


class Entry(NamedTuple):
    """An algorithm, its comparators, its adversaries, and its closing formula."""

    name: str
    algorithm: FTRL
    comparators: FeasibleSet
    against: Iterable[tuple[str, Any]]
    formula: Callable[[Trace, Vector], Bound] | None


class Row(NamedTuple):
    """The game with the largest ratio of regret to bound."""

    name: str
    adversary: str
    regret: float
    theorem: float
    formula: float | None


def linear(rounds: int) -> Iterator[tuple[str, Any]]:
    """Yield adversaries whose gradients have an L2 norm of at most 1."""
    yield from {
        "random": random_linear(N, rounds),
        "switching": switching(N, rounds),
        "worst": worst_linear(),
        "orthogonal": orthogonal(),
        "alternating": alternating(),
        "spikes": spikes(),
    }.items()


def far(t: int, x: Vector) -> Quadratic:
    """Return ½‖x − c‖² with c at distance 1 from x_t, on alternating sides."""
    return Quadratic(x + (-1.0) ** t * np.eye(x.size)[0])


def entries(T: int) -> Iterator[Entry]:
    """Yield the algorithms of section 3 with R = G = 1."""
    ball, box, games = l2_ball(1.0), Box(-1, 1), list(linear(T))
    yield Entry(
        "3.1 gradient descent, η = R/(G√T)",
        gradient_descent(T**-0.5),
        ball,
        games,
        lambda t, x: tuned_formula(t, x, 1.0, 1.0, T),
    )
    yield Entry(
        "3.2 dual averaging", dual_averaging(1, 1), ball, games, lambda t, x: dual_averaging_formula(t, x, 1.0, 1.0)
    )
    yield Entry("3.3 FTRL-Proximal", ftrl_proximal(1, 1), ball, games, lambda t, x: proximal_formula(t, x, 1.0, 1.0))
    yield Entry(
        "3.4 AdaGrad FTRL-Proximal",
        adagrad_ftrl_proximal(1.0),
        box,
        games,
        lambda t, x: adagrad_proximal_formula(t, x, 1.0),
    )
    yield Entry("3.5 AdaGrad dual averaging", adagrad_dual_averaging(1.0, 1.0, feasible=box), box, games, None)
    advice = {"coins": experts(N, T), "worst": worst_linear(L1), "alternating": alternating()}
    yield Entry("3.6 entropic", hedge(N), Simplex(), advice.items(), lambda t, x: entropic_formula(t, x, 1.0))
    curved = {"random": quadratics(N, T), "far": far}
    yield Entry(
        "3.7 Follow-The-Leader, strongly convex",
        follow_the_leader(),
        l2_ball(2.0),
        curved.items(),
        lambda t, x: strongly_convex_formula(t, x, _largest(t)),
    )


def _largest(trace: Trace) -> float:
    """Return the largest norm of a gradient, as G."""
    return float(np.linalg.norm(trace.gradients, axis=1).max()) * (1 + 1e-12)


def best(trace: Trace, among: FeasibleSet) -> Vector:
    """Return the comparator with the smallest total loss: a mean of centers, or as far down as a linear loss goes."""
    centers = [loss.center for loss in trace.losses if isinstance(loss, Quadratic)]
    return np.mean(centers, axis=0) if centers else project(-1e6 * trace.gradients.sum(axis=0), among)


def hardest(entry: Entry, rounds: int) -> Row:
    """Play all games and return the one with the largest ratio of regret to theorem."""
    found = []
    for name, adversary in entry.against:
        trace = play(entry.algorithm, adversary, rounds=rounds, n=N)
        x = best(trace, entry.comparators)
        formula = entry.formula(trace, x).total if entry.formula else None
        found.append(Row(entry.name, name, trace.regret(x), bound(trace, x).total, formula))
    return max(found, key=lambda row: (round(row.regret / row.theorem, 9), row.regret))


def bounds(rounds: int = 400) -> Claim:
    """Find the hardest game for every algorithm."""
    rows = [hardest(entry, rounds) for entry in entries(rounds)]
    holds = all(r.regret <= r.theorem * (1 + 1e-9) <= (r.formula or np.inf) * (1 + 2e-9) for r in rows)
    ratios = [r.regret / r.theorem for r in rows]
    return Claim(
        "bounds",
        "Section 3 on one page",
        "Every algorithm of section 3 has the regret bound that the theorems give it, and the closed formulas in R, G "
        "and T are no smaller.",
        "McMahan, the survey (2017), Theorems 1 and 2 and section 3",
        f"T = {rounds}, n = {N}, R = G = 1, six adversaries or those that fit the setting, and of all games the one "
        f"with the largest ratio of regret to theorem: {min(ratios):.0%} to {max(ratios):.0%}. No bound was "
        "exceeded in any game.",
        holds,
        [
            ["algorithm", "hardest game", "regret", "theorem, on this game", "closed formula"],
            *(
                [
                    r.name,
                    r.adversary,
                    f"{r.regret:.2f}",
                    f"{r.theorem:.2f}",
                    f"{r.formula:.2f}" if r.formula else "none",
                ]
                for r in rows
            ),
        ],
        lambda: draw(rows),
        "for each algorithm of section 3, regret, theorem and closed formula, as multiples of the theorem",
    )


def draw(rows: list[Row]) -> Any:
    """Draw regret and formula as multiples of the theorem's bound, one line per algorithm."""
    with styled_axes(None, (7.2, 3.8)) as axes:
        places = np.arange(len(rows))[::-1]
        axes.axvline(1, color=GREY, linewidth=1.2, label="theorem, on this game")
        axes.plot([r.regret / r.theorem for r in rows], places, "o", color=COLORS[0], markersize=7, label="regret")
        formulas = [(r.formula / r.theorem, y) for r, y in zip(rows, places, strict=True) if r.formula]
        axes.plot(
            *zip(*formulas, strict=True), "D", color=COLORS[1], markersize=9, fillstyle="none", label="closed formula"
        )
        axes.set_yticks(places, [r.name for r in rows])
        axes.set(xlabel="multiples of the theorem's bound", xlim=(0, None))
        legend_below(axes)
        return figure_of(axes)

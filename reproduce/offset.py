"""The survey's section 3.5: dual averaging with AdaGrad's rates needs a bound G, and its regret grows with it."""

from typing import Any

import numpy as np

from forel.losses import Linear
from forel.theory.algorithms import adagrad_dual_averaging, adagrad_ftrl_proximal
from forel.theory.analysis import bound, play
from forel.theory.plot.style import COLORS, figure_of, legend_below, styled_axes
from forel.theory.sets import Box
from reproduce.claim import Claim

N, PROMISES = 20, (1.0, 3.0, 10.0, 30.0, 100.0)


def stream(rounds: int) -> list[Linear]:
    """Return losses with one gradient of ±1 in one coordinate, more often with one sign in each coordinate."""
    rng = np.random.default_rng(0)
    lean = rng.choice([-1.0, 1.0], N)
    at, with_it = rng.integers(N, size=rounds), rng.random(rounds) < 0.7
    return [Linear(np.eye(N)[i] * lean[i] * (1.0 if w else -1.0)) for i, w in zip(at, with_it, strict=True)]


def offset(rounds: int = 4000) -> Claim:
    """Play both against sparse gradients, dual averaging with a G from correct to 100 times too large."""
    losses, box = stream(rounds), Box(-1, 1)
    best = -np.sign(np.sum([loss.g for loss in losses], axis=0))
    found = {}
    players = {f"dual averaging, G = {G:g}": adagrad_dual_averaging(1.0, G, feasible=box) for G in PROMISES}
    for name, player in (players | {"FTRL-Proximal": adagrad_ftrl_proximal(1.0)}).items():
        trace = play(player, losses)
        found[name] = trace.regret(best), bound(trace, best).total
    *centered, proximal = found.values()
    regrets, bounds = (np.array(column) for column in zip(*centered, strict=True))
    return Claim(
        "offset",
        "Dual averaging needs a bound G",
        "AdaGrad dual averaging has to start from an offset G², because its regularizer cannot depend on this round's "
        "gradient, and its bound depends on that guess; FTRL-Proximal needs none.",
        "McMahan, the survey (2017), sections 2.3 and 3.5",
        f"{N} coordinates, {rounds:,} rounds, gradients of ±1 in one coordinate at a time. With the right G dual "
        f"averaging has a regret of {regrets[0]:.0f}, FTRL-Proximal, which does not use G, {proximal[0]:.0f}; "
        f"with a G {PROMISES[-1]:g} times too large, dual averaging has {regrets[-1]:.0f}, and its bound grows "
        f"from {bounds[0]:.0f} to {bounds[-1]:.0f}.",
        bool(regrets[-1] > 2 * max(regrets[0], proximal[0]) and bounds[-1] > 2 * max(bounds[0], proximal[1])),
        [["algorithm", "regret", "bound"], *([name, f"{r:.1f}", f"{b:.1f}"] for name, (r, b) in found.items())],
        lambda: draw(regrets, bounds, proximal),
        "regret and bound of dual averaging growing with the assumed G, beside FTRL-Proximal's constant ones",
    )


def draw(regrets: np.ndarray, bounds: np.ndarray, proximal: tuple[float, float]) -> Any:
    """Draw regret and bound over the assumed G."""
    with styled_axes(None, (6.4, 4.2)) as axes:
        for values, level, dashes, what in (
            (regrets, proximal[0], "-", "regret"),
            (bounds, proximal[1], "--", "bound"),
        ):
            axes.plot(PROMISES, values, dashes, color=COLORS[0], marker="o", label=f"dual averaging, {what}")
            axes.plot(PROMISES, np.full(len(PROMISES), level), dashes, color=COLORS[1], label=f"FTRL-Proximal, {what}")
        axes.set(xscale="log", yscale="log", xlabel="assumed G (the true one is 1)", ylabel="units of loss")
        legend_below(axes, columns=2)
        return figure_of(axes)

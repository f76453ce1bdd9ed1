"""Vovk (1990): a mixture of settings weighted by their losses is nearly as good as the best of them."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from forel.learner.grid import default_grid
from forel.learner.learner import Learner
from forel.learner.settings import Settings
from forel.theory.plot.style import COLORS
from reproduce.claim import Claim
from reproduce.panels import panels
from reproduce.rates import sets
from reproduce.sources import BITS, Table

SHOWN = ("kitchen", "rcv1", "clicks")


class Learned(NamedTuple):
    """Average losses of the mixture and of its settings, and the largest difference to the best setting, in nats."""

    settings: Settings
    mixture: float
    each: np.ndarray
    behind: float


def learn(table: Table, lanes: int = 16) -> Learned:
    """Learn a grid of settings; after each block, compare the mixture with the best setting."""
    model, behind = Learner(1 << BITS, default_grid(lanes=lanes)), 0.0
    for rows, labels in table.blocks:
        model.learn(rows, labels)
        behind = max(behind, model.loss - float(model.losses.min()))
    return Learned(model.settings, model.loss / table.size, model.losses / table.size, behind)


def compare(measured: Mapping[str, Learned]) -> Claim:
    """Return the claim for the losses on each data set."""
    table = [["set", "mixture", "best setting", "which is", "worst setting", "largest difference, nats in total"]]
    for name, found in measured.items():
        best, words = int(np.argmin(found.each)), found.settings.names
        losses = f"{found.mixture:.4f}", f"{found.each[best]:.4f}", words[best], f"{found.each.max():.4f}"
        table.append([name, *losses, f"{found.behind:.2f}"])
    count, worst = len(next(iter(measured.values())).each), max(found.behind for found in measured.values())
    return Claim(
        "mixing",
        "Nothing to tune",
        "Of K settings mixed by Bayes' rule, the total log-loss of the mixture is at most log K larger than that "
        "of the best, at any time and on any rows.",
        'Vovk, "Aggregating strategies" (1990); Cesa-Bianchi and Lugosi, "Prediction, learning, and games" (2006)',
        f"Progressive log-loss of a grid of {count} settings: the mixture was at most "
        f"{worst:.2f} nats behind the best setting, where log {count} is {np.log(count):.2f}.",
        worst <= np.log(count) + 1e-6,
        table,
        lambda: draw({name: measured[name] for name in SHOWN if name in measured}),
        "progressive log-loss of each setting over its rate, and of the mixture, which is at the bottom of each curve",
    )


def draw(measured: Mapping[str, Learned]) -> Any:
    """Draw the losses of settings over their rates, and the loss of the mixture as a line."""

    def plot(axes: Any, found: Learned) -> None:
        alphas, penalties = np.array(found.settings.alpha), np.array(found.settings.l1)
        for color, marker, penalty in zip(COLORS, "os", np.unique(penalties), strict=False):
            at = penalties == penalty
            axes.plot(alphas[at], found.each[at], color=color, marker=marker, label=f"one setting, λ1 = {penalty:g}")
        axes.axhline(found.mixture, color=COLORS[2], linestyle="--", label="all of them, mixed")

    return panels(measured, plot, 1.0)


def mixing() -> Claim:
    """Compare on five text data sets, and on clicks."""
    return compare({name: learn(table) for name, table in sets().items()})

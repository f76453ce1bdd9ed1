"""Vovk (1990): settings mixed by what they lost are nearly as good as the best of them, which nobody had to find."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from forel.grid import settle
from forel.mixture import Mixture
from forel.plot.canvas import COLORS, drawing, figure_of, legend_below
from forel.settings import Settings
from reproduce.claim import Claim, wanted
from reproduce.rates import FILES
from reproduce.sources import BITS, Table, clicks, read

SHOWN = ("kitchen", "rcv1", "clicks")


class Learned(NamedTuple):
    """Average losses of the mixture and of its settings, and by how much the mixture was behind at most, in nats."""

    settings: Settings
    mixture: float
    each: np.ndarray
    behind: float


def learn(table: Table, lanes: int = 16) -> Learned:
    """Learn what is learned where no rate is given; after each block, see how far the best setting is ahead."""
    model, behind = Mixture(1 << BITS, settle(lanes=lanes)), 0.0
    for rows, labels in table.blocks:
        model.learn(rows, labels)
        behind = max(behind, model.loss - float(model.losses.min()))
    return Learned(model.settings, model.loss / table.size, model.losses / table.size, behind)


def compare(measured: Mapping[str, Learned]) -> Claim:
    """Judge the claim on losses by the names of their sets."""
    table = [["set", "mixture", "best setting", "which is", "worst setting", "behind at most, nats in all"]]
    for name, found in measured.items():
        best, words = int(np.argmin(found.each)), found.settings.names
        losses = f"{found.mixture:.4f}", f"{found.each[best]:.4f}", words[best], f"{found.each.max():.4f}"
        table.append([name, *losses, f"{found.behind:.2f}"])
    count, worst = len(next(iter(measured.values())).each), max(found.behind for found in measured.values())
    return Claim(
        "mixing",
        "Nothing to tune",
        "Of K settings mixed by Bayes' rule, the mixture loses at most log K more log-loss than the best, in all, at "
        "any moment and on any rows.",
        'Vovk, "Aggregating strategies" (1990); Cesa-Bianchi and Lugosi, "Prediction, learning, and games" (2006)',
        f"Progressive log-loss of the {count} settings that are learned where no rate is given: the mixture was at "
        f"most {worst:.2f} nats behind the best setting, where log {count} is {np.log(count):.2f}.",
        worst <= np.log(count) + 1e-6,
        table,
        lambda: draw({name: measured[name] for name in SHOWN if name in measured}),
        "progressive log-loss of each setting over its rate, and of the mixture, which is at the bottom of each curve",
    )


def draw(measured: Mapping[str, Learned]) -> Any:
    """Draw the settings' losses over their rates, and the mixture's beside, a panel a set."""
    with drawing(None, (3.0 * len(measured) + 0.8, 4.0), columns=len(measured)) as first:
        for axes, (name, found) in zip(first.figure.axes, measured.items(), strict=True):
            alphas, penalties = np.array(found.settings.alpha), np.array(found.settings.l1)
            for color, marker, penalty in zip(COLORS, "os", np.unique(penalties), strict=False):
                at = penalties == penalty
                axes.plot(
                    alphas[at], found.each[at], color=color, marker=marker, label=f"one setting, λ1 = {penalty:g}"
                )
            axes.axhline(found.mixture, color=COLORS[2], linestyle="--", label="all of them, mixed")
            axes.set_xscale("log")
            axes.set_title(name, loc="left")
            axes.set_xlabel("scale α of the rate")
        first.set_ylim(0.3, 1.0)
        first.set_ylabel("progressive log-loss (nats)")
        legend_below(first)
        return figure_of(first)


def mixing() -> Claim:
    """Compare on five sets of text, and on clicks."""
    paths = wanted(*FILES.values())
    tables = {name: read(path) for name, path in zip(FILES, paths, strict=True)} | {"clicks": clicks(50_000)}
    return compare({name: learn(table) for name, table in tables.items()})

"""McMahan and Streeter (2010): a rate for each coordinate is better than one rate for all, on sparse data."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from forel.learner.learner import Learner
from forel.learner.settings import Settings
from forel.theory.plot.style import COLORS
from reproduce.claim import Claim, data_files
from reproduce.panels import panels
from reproduce.sources import BITS, Table, clicks, load_table

RATES = {"a rate each (AdaGrad)": None, "one rate, α/√t": 0.5, "one rate, α": 0.0}  # powers of t
SCALES = tuple(2.0**k for k in range(-12, 5))
FILES = {name: f"amazon_{name}.vw.gz" for name in ("books", "dvd", "electronics", "kitchen")} | {
    "rcv1": "rcv1_small.vw.gz"
}

Losses = Mapping[str, np.ndarray]


def losses(table: Table, scales: tuple[float, ...] = SCALES) -> dict[str, np.ndarray]:
    """Return the progressive log-loss of every rate and scale, the scales as lanes of one pass."""
    found = {}
    for name, power in RATES.items():
        if power is None:
            learner = Learner(1 << BITS, Settings(alpha=scales), mixed=False)
            found[name] = sum(learner.learn(rows, labels) for rows, labels in table.blocks) / table.size
        else:
            found[name] = descend(table, np.array(scales), power) / table.size
    return found


def descend(table: Table, scales: np.ndarray, power: float) -> np.ndarray:
    """Return the log-loss of gradient descent with steps α/tᵖ: FTRL-Proximal with one rate and without a penalty."""
    weights, lost, t = np.zeros(((1 << BITS) + 1, scales.size)), np.zeros(scales.size), 0
    for rows, labels in table.blocks:
        for r, y in enumerate(labels):
            part, t = slice(rows.indptr[r], rows.indptr[r + 1]), t + 1
            at, values = np.append(rows.indices[part], 1 << BITS), np.append(rows.values[part], 1.0)
            margin = np.clip(values @ weights[at], -500.0, 500.0)
            lost += np.logaddexp(0.0, -margin if y > 0 else margin)
            weights[at] -= np.outer(values, scales / t**power * (1 / (1 + np.exp(-margin)) - (y > 0)))
    return lost


def compare(measured: Mapping[str, Losses], scales: tuple[float, ...] = SCALES) -> Claim:
    """Return the claim for the losses on each data set."""
    table = [["set", *(f"{name}, best α" for name in RATES), "less than the better global rate"]]
    gains = []
    for name, found in measured.items():
        own, *others = (float(np.min(values)) for values in found.values())
        gains.append(1 - own / min(others))
        table.append([name, f"{own:.4f}", *(f"{v:.4f}" for v in others), f"{gains[-1]:.1%}"])
    return Claim(
        "rates",
        "A rate for each coordinate",
        "On sparse data, a learning rate for each coordinate is better than one rate for all.",
        'McMahan and Streeter, "Adaptive bound optimization for online convex optimization" (2010); McMahan et al., '
        '"Ad click prediction: a view from the trenches" (2013); survey, section 3.4',
        f"Progressive log-loss, FTRL-Proximal, each with the best of {len(scales)} scales in hindsight: a rate for "
        f"each coordinate has {min(gains):.1%} to {max(gains):.1%} less than the better of two global schedules.",
        min(gains) > 0,
        table,
        lambda: draw({name: measured[name] for name in list(measured)[::-2]}, scales),
        "progressive log-loss against the scale α of the rate, on several sets",
    )


def draw(measured: Mapping[str, Losses], scales: tuple[float, ...]) -> Any:
    """Draw the loss over the scale, one line per rate."""

    def plot(axes: Any, found: Losses) -> None:
        for color, marker, (rate, values) in zip(COLORS, "os^", found.items(), strict=False):
            axes.plot(scales, values, color=color, marker=marker, label=rate)

    return panels(measured, plot, 0.8, base=2)


def sets() -> dict[str, Table]:
    """Return five text data sets, and clicks."""
    paths = data_files(*FILES.values())
    return {name: load_table(path) for name, path in zip(FILES, paths, strict=True)} | {"clicks": clicks(50_000)}


def rates() -> Claim:
    """Compare on five text data sets, and on clicks."""
    return compare({name: losses(table) for name, table in sets().items()})

"""Electricity prices: a stream that drifts, and forecasters of which each is the best at some time.

Run with the path of the table of half-hours of the market of New South Wales, with a header, the label last:
``python examples/electricity.py elec2.csv.gz [picture.png]``.

Each forecaster gives a probability before it sees the label. Some predict that the label repeats after a lag, with a
probability estimated from counts; others are lanes of a linear model of the columns. Exponential weights have nearly
the loss of the best forecaster, fixed share nearly that of the best *sequence* of forecasters: each switch has a
cost, which on this stream is smaller than the gain.
"""

import math
import pathlib
import sys

import numpy as np

from forel.experts import FixedShare, Likelihoods, mix
from forel.learner.learner import Learner
from forel.learner.settings import Settings
from forel.theory import plot

LAGS = {"last label": 1, "a day ago": 48, "a week ago": 336}
MEMORY = (20, 200, 2000)
ALPHAS = (0.3, 1.0, 3.0, 10.0, 30.0)


def repeating(labels: np.ndarray, lag: int, memory: int) -> np.ndarray:
    """Return log-probabilities of the labels if each repeats the one ``lag`` before with its recent frequency."""
    repeated, total, logs = 0.5, 1.0, []
    before = np.concatenate([np.zeros(lag), labels])
    for same in (labels == before[: labels.size]).tolist():
        logs.append(math.log(repeated / total if same else 1 - repeated / total))
        repeated = (repeated - 0.5) * (1 - 1 / memory) + same + 0.5
        total = (total - 1) * (1 - 1 / memory) + 1 + 1
    return np.array(logs)


def forecasts(columns: np.ndarray, labels: np.ndarray) -> dict[str, np.ndarray]:
    """Return the log-probability of each label by each forecaster, before the forecaster learns from it."""
    table = {
        f"{name}, memory {memory}": repeating(labels, lag, memory) for name, lag in LAGS.items() for memory in MEMORY
    }
    model = Learner(columns.shape[1], Settings(alpha=list(ALPHAS), rate="scale_free"), mixed=False)
    margins = model.progress(columns.astype(np.float32), labels).astype(float)  # of each row, before it is learned
    logs = -np.logaddexp(0, np.where(labels[:, None] == 1, -margins, margins))
    return table | {f"linear, alpha {alpha:g}": logs[:, k] for k, alpha in enumerate(ALPHAS)}


def report(table: dict[str, np.ndarray], picture: str | None) -> None:
    """Print log-losses per half-hour, and the guarantees of both mixtures for several numbers of switches."""
    pool = Likelihoods(log=True)
    fixed = mix(table, pool=pool)
    T = fixed.losses.size
    print(f"{T} half-hours, {len(table)} forecasters; progressive log-loss per half-hour\n")
    for k in np.argsort(fixed.totals):
        print(f"  {fixed.totals[k] / T:.5f}  {fixed.names[k]}")
    for share in (0.01, None):
        shared = mix(table, pool=pool, rule=FixedShare(share=share))
        print(f"  {shared.loss / T:.5f}  fixed share, {'α = 1/t' if share is None else f'α = {share}'}")
    print(f"  {fixed.loss / T:.5f}  exponential weights\n")
    print(f"Exponential weights: {fixed.guarantee()}.")
    for switches in (0, 10, 100):
        print(f"Fixed share: {shared.guarantee(switches=switches)}.")
    if picture:
        figure = plot.posterior(shared.weights, shared.names)
        print(f"\nWeights of fixed share over time are in {plot.save(figure, picture)}")


def main() -> None:
    """Read the table named on the command line."""
    path = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else None
    if path is None or not path.exists():
        print(f"No table{f' at {path}' if path else ''}; run with the path of one, as elec2.csv.gz")
        return
    data = np.loadtxt(path, delimiter=",", skiprows=1)
    report(forecasts(data[:, :-1], data[:, -1]), sys.argv[2] if len(sys.argv) > 2 else None)


if __name__ == "__main__":
    main()

"""Does the price of electricity go up? A stream that drifts, and forecasters that take turns at being best.

Run with the path of the table of half-hours of the market of New South Wales, with a header, the label last:
``python examples/electricity.py elec2.csv.gz [picture.png]``.

Each forecaster gives a probability before it sees the label: some say that the label repeats itself after a while, and
learn from counts how often it does; others are lanes of a linear model on the columns. Exponential weights stay near
the best of them, fixed share near the best *sequence* of them: it pays for every switch, and on this stream gains more.
"""

import math
import pathlib
import sys

import numpy as np

from forel.experts import FixedShare, Likelihoods, mix
from forel.experts.plot import posterior
from forel.learner.linear import Linear, Settings
from forel.theory import plot

LAGS = {"as just now": 1, "as yesterday": 48, "as last week": 336}
MEMORY = (20, 200, 2000)
ALPHAS = (0.3, 1.0, 3.0, 10.0, 30.0)


def repeating(labels: np.ndarray, lag: int, memory: int) -> np.ndarray:
    """Return log-probabilities given to each label by "as it was ``lag`` ago", trusted as often as it held of late."""
    held, seen, found = 0.5, 1.0, []
    before = np.concatenate([np.zeros(lag), labels])
    for same in (labels == before[: labels.size]).tolist():
        found.append(math.log(held / seen if same else 1 - held / seen))
        held, seen = (held - 0.5) * (1 - 1 / memory) + same + 0.5, (seen - 1) * (1 - 1 / memory) + 1 + 1
    return np.array(found)


def forecasts(columns: np.ndarray, labels: np.ndarray) -> dict[str, np.ndarray]:
    """Return the log-probability that each forecaster gave to each label, before it learned from it."""
    table = {
        f"{name}, memory {memory}": repeating(labels, lag, memory) for name, lag in LAGS.items() for memory in MEMORY
    }
    model = Linear(columns.shape[1], Settings(alpha=list(ALPHAS), rate="scale_free"))
    rows = columns.astype(np.float32)
    lost = np.array([model.learn(rows[t : t + 1], labels[t : t + 1]) for t in range(len(labels))])
    return table | {f"linear, alpha {alpha:g}": -lost[:, k] for k, alpha in enumerate(ALPHAS)}


def report(table: dict[str, np.ndarray], picture: str | None) -> None:
    """Print log-losses per half-hour, what is proved of both mixtures, and how many switches pay."""
    pool = Likelihoods(log=True)
    fixed = mix(table, pool=pool)
    T = fixed.losses.size
    print(
        f"{T} half-hours, {len(table)} forecasters; log-loss per half-hour, each predicted before its label is seen\n"
    )
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
        print(f"\nWeights of fixed share over time are in {plot.save(posterior(shared), picture)}")


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

"""Blum, Kalai and Langford (1999): the loss of rows before the model learns from them estimates that of unseen rows."""

from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from forel.learner.learner import Learner
from forel.learner.settings import Settings
from forel.theory.plot.style import COLORS, figure_of, styled_axes
from reproduce.claim import Claim
from reproduce.sources import BITS, clicks

WINDOWS = 20
ERRORS = 3.0  # largest accepted difference, in standard errors


def progressive(rows: int = 160_000, unseen: int = 160_000) -> Claim:
    """Learn from clicks; after each block, measure the loss on held-out rows."""
    (*blocks, (held, held_labels)) = _split(clicks(rows + unseen).blocks, rows)
    learner = Learner(1 << BITS, Settings(alpha=0.1))
    judged = [_losses(learner.margins(held), held_labels)]
    suffered, seen = [], [0]
    for part, labels in blocks:
        suffered.append(_losses(learner.progress(part, labels), labels))
        judged.append(_losses(learner.margins(held), held_labels))
        seen.append(seen[-1] + labels.size)
    windows, judges = (np.array([losses.mean() for losses in part]) for part in (suffered, judged))
    between = (judges[1:] + judges[:-1]) / 2  # a window's rows were predicted by the models between its two ends
    errors = np.array([np.std(losses) / losses.size**0.5 for losses in suffered])
    held_error = float(np.std(judged[-1]) / held_labels.size**0.5)
    # In the first window the model changes too much to be compared at its two ends.
    apart = abs(float(windows[1:].mean() - between[1:].mean()))
    own_error = float(np.std(np.concatenate(suffered[1:])) / (rows - seen[1]) ** 0.5)
    error = float(np.hypot(own_error, held_error))
    picks = sorted({1, len(windows) // 2, len(windows) - 1})
    return Claim(
        "progressive",
        "Progressive loss estimates held-out loss",
        "The average loss of rows that are predicted before they are learned from estimates the loss on new rows, and "
        "needs no separate test rows.",
        'Blum, Kalai and Langford, "Beating the hold-out: bounds for k-fold and progressive cross-validation" (1999); '
        'McMahan et al., "Ad click prediction: a view from the trenches" (2013)',
        f"{rows:,} synthetic clicks in windows of {seen[1]:,}, compared with {unseen:,} held-out rows. After the "
        f"first window the averages are {apart:.4f} nats apart, with a standard error of {error:.4f}, to which the "
        f"held-out rows contribute {held_error:.4f} and the progressive loss {own_error:.4f}.",
        apart <= ERRORS * error,
        [
            ["rows learned from", "progressive log-loss of the window", "held-out log-loss", "standard error"],
            *(
                [f"{seen[k + 1]:,}", f"{windows[k]:.4f}", f"{between[k]:.4f}", f"{np.hypot(errors[k], held_error):.4f}"]
                for k in picks
            ),
            ["all but the first", f"{windows[1:].mean():.4f}", f"{between[1:].mean():.4f}", f"{error:.4f}"],
        ],
        lambda: draw(seen, windows, judges),
        "progressive and held-out log-loss over rows learned from; both fall together",
    )


def _split(blocks: list[Any], rows: int) -> list[Any]:
    """Return the blocks of the first rows, cut into windows, and one of all the others."""
    tables = [sparse.csr_array((b.values, b.indices, b.indptr), shape=(b.number, 1 << BITS)) for b, _ in blocks]
    table, labels = sparse.vstack(tables, format="csr"), np.concatenate([y for _, y in blocks])
    ends = [0, *np.linspace(rows // WINDOWS, rows, WINDOWS).astype(int), labels.size]
    return [(table[a:b], labels[a:b]) for a, b in pairwise(ends)]


def _losses(margins: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the log-loss of each row."""
    margin = margins[:, 0].astype(np.float64)
    return np.logaddexp(0, np.where(labels > 0, -margin, margin))


def draw(seen: list[int], windows: np.ndarray, judges: np.ndarray) -> Any:
    """Draw both losses over the rows learned from."""
    with styled_axes(None) as axes:
        middles = (np.array(seen[1:]) + seen[:-1]) / 2
        axes.plot(middles, windows, "o", color=COLORS[0], label="progressive, each window")
        axes.plot(seen, judges, color=COLORS[1], label="held out, the model at that moment")
        axes.set(xlabel="rows learned from", ylabel="log-loss (nats)")
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axes.legend(frameon=False)
        return figure_of(axes)

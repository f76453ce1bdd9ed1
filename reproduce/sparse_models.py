"""McMahan (2011): FTRL-Proximal and RDA give far sparser models than FOBOS at equal AUC."""

from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np

from benchmarks import sparsity
from forel.learner.learner import Learner
from forel.learner.settings import Settings
from forel.theory.plot.style import COLORS, figure_of, legend_below, styled_axes
from reproduce.claim import Claim, data_files

ALGORITHMS = {"FTRL-Proximal": "proximal", "RDA": "centered", "FOBOS": "mirror"}
WITHIN = 0.02

Curve = list[sparsity.Line]


def curve(task: sparsity.Task, penalties: tuple[float, ...], scales: tuple[float, ...]) -> Curve:
    """Return the best model of each algorithm for each λ, every setting a lane of one pass."""
    grid = list(product(penalties, scales))
    models = {}
    for name, algorithm in ALGORITHMS.items():
        settings = Settings(
            algorithm=algorithm,  # type: ignore[arg-type]
            alpha=tuple(c for _, c in grid),
            l1=tuple(p for p, _ in grid),
            penalty_weight="every",
            bias=False,
        )
        learner = Learner(task.examples.shape[1], settings, dtype=np.float64, mixed=False)
        progressive = learner.learn(task.examples, task.labels) / task.labels.size
        margins, nonzeros = learner.margins(task.unseen), np.count_nonzero(learner.weights, axis=0)
        for k, (penalty, scale) in enumerate(grid):
            auc = sparsity.auc(margins[:, k], task.unseen_labels)
            models[name, penalty, scale] = sparsity.Model(float(progressive[k]), auc, int(nonzeros[k]))
    return sparsity.curve(task, penalties, models)


def smallest(lines: Curve) -> dict[str, sparsity.Model]:
    """Return each algorithm's model with fewest weights, of any λ, whose AUC is near what all three can reach."""
    reached = min(max(line.best[name][1].auc for line in lines) for name in ALGORITHMS) - WITHIN
    near = {name: [m for line in lines if (m := line.best[name][1]).auc >= reached] for name in ALGORITHMS}
    return {name: min(models, key=lambda m: m.nonzeros) for name, models in near.items()}


def compare(curves: Mapping[str, Curve]) -> Claim:
    """Return the claim for the curves of each data set."""
    table = [["set", "features", *(f"{name}: {what}" for name in ALGORITHMS for what in ("weights", "AUC"))]]
    ratios = []
    for name, lines in curves.items():
        found = smallest(lines)
        cells = [cell for model in found.values() for cell in (f"{model.nonzeros:,}", f"{model.auc:.3f}")]
        table.append([name, f"{lines[0].features:,}", *cells])
        ratios.append(found["FOBOS"].nonzeros / max(found["FTRL-Proximal"].nonzeros, found["RDA"].nonzeros))
    return Claim(
        "sparse_models",
        "FTRL finds sparser models than FOBOS",
        "With L1 in every round, FTRL-Proximal and RDA give far sparser models than FOBOS at equal AUC.",
        'McMahan, "Follow-the-regularized-leader and mirror descent: equivalence theorems and L1 regularization" '
        "(2011); survey, section 6.2",
        f"At AUCs within {WITHIN} of what all three reach, FOBOS keeps {min(ratios):.1f} to {max(ratios):.1f} times as "
        "many weights as the denser of the other two. One pass over 1,600 reviews, AUC on 400 others; the rate of each "
        "model is chosen by its progressive loss.",
        min(ratios) >= 3,
        table,
        lambda: draw({name: curves[name] for name in list(curves)[::2]}),
        "AUC against the number of weights that are not zero, for three algorithms and several penalties",
    )


def draw(curves: Mapping[str, Curve]) -> Any:
    """Draw AUC over the number of weights, one panel per data set."""
    with styled_axes(None, (4.0 * len(curves) + 0.8, 4.0), columns=len(curves)) as first:
        for axes, (name, lines) in zip(first.figure.axes, curves.items(), strict=True):
            for color, marker, algorithm in zip(COLORS, "os^", ALGORITHMS, strict=False):
                models = [line.best[algorithm][1] for line in lines]
                axes.plot(
                    [m.nonzeros for m in models],
                    [m.auc for m in models],
                    color=color,
                    marker=marker,
                    markersize=5,
                    label=algorithm,
                )
            axes.set_xscale("log")
            axes.set_title(name, loc="left")
            axes.set_xlabel("weights that are not zero")
        first.set_ylabel("AUC on reviews not learned from")
        legend_below(first)
        return figure_of(first)


def sparse_models() -> Claim:
    """Compare on the four Amazon sets."""
    data_files(*(f"amazon_{name}.vw.gz" for name in sparsity.SETS))
    return compare({name: curve(sparsity.read(name), sparsity.LAMBDAS, sparsity.SCALES) for name in sparsity.SETS})

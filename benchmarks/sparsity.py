"""Sparsity with L1 of FTRL-Proximal and dual averaging (RDA).

Peer: FOBOS, with the same reference engine; AUC and the number of non-zero weights are compared, not speed.
Input: Amazon reviews of four product categories from ``FOREL_DATA``: one pass over the first 1,600 rows of each, AUC on
the other 400. The penalty is λ‖x‖₁ in every round and rates are η = c / (1 + √Σg²); for each λ and algorithm, c is the
value of the grid with the smallest progressive logistic loss, so the test rows choose nothing. There is no intercept,
because half of the reviews are positive.
Output: a Markdown table per category, and the sparsest model of each algorithm at comparable AUC.

Survey: section 6.2; McMahan, "Follow-the-regularized-leader and mirror descent: equivalence theorems and L1
regularization" (2011).
"""

import argparse
import gzip
import os
import pathlib
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from itertools import product
from multiprocessing import get_context
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.stats import rankdata

from forel.losses import Logistic
from forel.theory.algorithms import FTRL, Algorithm, MirrorDescent
from forel.theory.geometries import Diagonal
from forel.theory.penalties import l1
from forel.theory.rates import DiagonalAdaGrad
from forel.theory.weights import EveryRound
from forel.validation import Vector

DATA = pathlib.Path(os.environ.get("FOREL_DATA", pathlib.Path(__file__).parents[1].parent / "shared" / "data"))
SETS = ("books", "dvd", "electronics", "kitchen")
LEARNED = 1600
LAMBDAS = (0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01)
SCALES = (0.02, 0.05, 0.1, 0.2, 0.5)
QUICK = (0.0005, 0.001, 0.002), (0.05, 0.2)
LOGISTIC = Logistic()


class Task(NamedTuple):
    """Training and test examples, over the features of the training examples; labels are 0 and 1."""

    examples: csr_array
    labels: Vector
    unseen: csr_array
    unseen_labels: Vector


class Model(NamedTuple):
    """Result of a run: progressive loss, AUC and number of non-zero weights."""

    progressive: float
    auc: float
    nonzeros: int


class Line(NamedTuple):
    """The three algorithms at one λ, each with its best scale c."""

    penalty: float
    features: int
    best: dict[str, tuple[float, Model]]

    @property
    def spread(self) -> float:
        """Largest difference between AUCs."""
        aucs = [model.auc for _, model in self.best.values()]
        return max(aucs) - min(aucs)

    @property
    def ratio(self) -> float:
        """Non-zero weights of FOBOS over those of the denser of the other two."""
        nonzeros = {name: model.nonzeros for name, (_, model) in self.best.items()}
        return nonzeros["FOBOS"] / max(nonzeros["FTRL-Proximal"], nonzeros["RDA"], 1)


@dataclass(frozen=True, eq=False)
class SparseExample:
    """Logistic loss of a sparse example."""

    indices: Any
    values: Vector
    label: float
    strong_convexity: ClassVar[float] = 0.0

    def margin(self, x: Vector) -> float:
        return float(self.values @ x[self.indices])

    def __call__(self, x: Vector) -> float:
        return float(LOGISTIC(self.margin(x), self.label))

    def subgradient(self, x: Vector) -> Vector:
        g = np.zeros(x.size)
        g[self.indices] = LOGISTIC.slope(self.margin(x), self.label) * self.values
        return g

    def expression(self, x: Any) -> Any:
        return LOGISTIC.expression(self.values @ x[self.indices], self.label)


def proximal(scale: float, penalty: float) -> Algorithm:
    return FTRL(DiagonalAdaGrad(scale, beta=1), Diagonal(), "played", penalty=l1(penalty), weights=EveryRound())


def dual_averaging(scale: float, penalty: float) -> Algorithm:
    return FTRL(DiagonalAdaGrad(scale, beta=1), Diagonal(), "first", penalty=l1(penalty), weights=EveryRound())


def fobos(scale: float, penalty: float) -> Algorithm:
    return MirrorDescent(DiagonalAdaGrad(scale, beta=1), Diagonal(), l1(penalty), EveryRound())


ALGORITHMS: dict[str, Callable[[float, float], Algorithm]] = {
    "FTRL-Proximal": proximal,
    "RDA": dual_averaging,
    "FOBOS": fobos,
}


@cache
def read(name: str) -> Task:
    """Read a set of reviews from lines ``label |f word:count …``."""
    with gzip.open(DATA / f"amazon_{name}.vw.gz", "rt", encoding="utf-8") as lines:
        rows = [line.split() for line in lines]
    labels = np.array([float(row[0]) > 0 for row in rows], dtype=np.float64)
    counts = [[word.rpartition(":")[::2] for word in row[2:]] for row in rows]
    # Features that occur only in test rows have weight 0 in every algorithm.
    index: dict[str, int] = {}
    for row in counts[:LEARNED]:
        for word, _ in row:
            index.setdefault(word, len(index))
    examples, unseen = (_table(part, index) for part in (counts[:LEARNED], counts[LEARNED:]))
    return Task(examples, labels[:LEARNED], unseen, labels[LEARNED:])


def _table(rows: list[list[tuple[str, str]]], index: dict[str, int]) -> csr_array:
    known = [[(index[word], float(count)) for word, count in row if word in index] for row in rows]
    ends = np.cumsum([0, *map(len, known)])
    columns, values = zip(*(pair for row in known for pair in row), strict=True)
    return csr_array((values, columns, ends), shape=(len(rows), len(index)))


def losses(task: Task) -> Iterator[SparseExample]:
    """Losses of the training examples, in order."""
    table = task.examples
    for start, end, label in zip(table.indptr, table.indptr[1:], task.labels, strict=False):
        yield SparseExample(table.indices[start:end], table.data[start:end], float(label))


def auc(margins: Vector, labels: Vector) -> float:
    """Area under the ROC curve.

    >>> auc(np.array([0.0, 1.0, 1.0]), np.array([0.0, 1.0, 0.0]))
    0.75
    """
    ones = int(np.sum(labels))
    above = np.sum(rankdata(margins)[labels == 1]) - ones * (ones + 1) / 2
    return float(above / (ones * (labels.size - ones)))


def fit(algorithm: Algorithm, task: Task) -> tuple[float, Vector]:
    """Play one round per example; return the average progressive loss and the last point."""
    state, total = algorithm.init(task.examples.shape[1]), 0.0
    for loss in losses(task):
        total += loss(algorithm.play(state))
        state = algorithm.update(state, loss)
    return total / task.labels.size, algorithm.play(state)


def learn(algorithm: Algorithm, task: Task) -> Model:
    """Fit, and evaluate the last point on the test rows."""
    progressive, x = fit(algorithm, task)
    return Model(progressive, auc(task.unseen @ x, task.unseen_labels), int(np.count_nonzero(x)))


def run(set_name: str, algorithm: str, penalty: float, scale: float) -> Model:
    return learn(ALGORITHMS[algorithm](scale, penalty), read(set_name))


def choose(models: dict[float, Model]) -> tuple[float, Model]:
    """Scale with the smallest progressive loss, and its model."""
    return min(models.items(), key=lambda item: item[1].progressive)


def curve(task: Task, penalties: Sequence[float], models: dict[tuple[str, float, float], Model]) -> list[Line]:
    """Best model of each algorithm for each λ, from all models by algorithm, λ and scale."""
    best = {
        penalty: {
            name: choose({c: model for (a, p, c), model in models.items() if (a, p) == (name, penalty)})
            for name in ALGORITHMS
        }
        for penalty in penalties
    }
    return [Line(penalty, task.examples.shape[1], best[penalty]) for penalty in penalties]


def markdown(lines: Sequence[Line]) -> str:
    """Markdown table with c, AUC, non-zeros and density of each algorithm."""
    header = ["λ", *(f"{name}: {what}" for name in ALGORITHMS for what in ("c", "AUC", "non-zeros", "density"))]
    header += ["AUC range", "FOBOS / denser of the others"]
    rows = [header, ["---:"] * len(header)]
    for line in lines:
        cells = [f"{line.penalty:g}"]
        for scale, model in line.best.values():
            cells += [f"{scale:g}", f"{model.auc:.3f}", f"{model.nonzeros:,}", f"{model.nonzeros / line.features:.4f}"]
        rows.append([*cells, f"{line.spread:.3f}", f"{line.ratio:.1f}"])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def sparsest(lines: Sequence[Line], within: float = 0.02) -> str:
    """Sentence with the sparsest model of each algorithm whose AUC is near what all three reach."""
    reached = min(max(line.best[name][1].auc for line in lines) for name in ALGORITHMS) - within
    found = []
    for name in ALGORITHMS:
        near = [(line.best[name][1], line.penalty) for line in lines if line.best[name][1].auc >= reached]
        model, penalty = min(near, key=lambda pair: pair[0].nonzeros)
        found.append(f"{name} {model.nonzeros:,} (λ = {penalty:g}, AUC {model.auc:.3f})")
    return f"Fewest non-zeros with an AUC of at least {reached:.3f}, for any λ: {', '.join(found)}."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sets", default=",".join(SETS), help="comma-separated names (default: all)")
    parser.add_argument("--quick", action="store_true", help="three λ and two scales instead of seven and five")
    parser.add_argument("--processes", type=int, default=2, help="number of worker processes (default: 2)")
    args = parser.parse_args()
    names = args.sets.split(",")
    if unknown := sorted(set(names) - set(SETS)):
        parser.error(f"--sets: got {', '.join(unknown)}, expected some of {', '.join(SETS)}")
    if not DATA.is_dir():
        parser.error(f"FOREL_DATA: got {DATA}, expected a directory with the reviews")
    penalties, scales = QUICK if args.quick else (LAMBDAS, SCALES)
    start = time.perf_counter()
    # BLAS threads of several workers compete for cores; spawned workers read this variable.
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    with ProcessPoolExecutor(args.processes, get_context("spawn")) as pool:
        for name in names:
            settings = list(product(ALGORITHMS, penalties, scales))
            models = {}
            for setting, model in zip(
                settings, pool.map(partial(run, name), *zip(*settings, strict=True)), strict=True
            ):
                models[setting] = model
                seconds = time.perf_counter() - start
                print(f"\r{name}: {len(models)} of {len(settings)} runs, {seconds:.0f} s ", end="", file=sys.stderr)
            print(file=sys.stderr)
            lines = curve(read(name), penalties, models)
            held = [f"{line.penalty:g}" for line in lines if line.spread <= 0.02 and line.ratio >= 3]
            print(f"### {name}: {lines[0].features:,} features\n\n{markdown(lines)}\n")
            print(f"AUCs within 0.02 and at least 3× fewer non-zeros at λ = {', '.join(held) or 'none'}.")
            print(f"{sparsest(lines)}\n", flush=True)


if __name__ == "__main__":
    main()
